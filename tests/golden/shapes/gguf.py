# SPDX-License-Identifier: MIT
"""GGUF files of the folders, with the keys, names and orders of rows of the format's own converters. None where a file
cannot say what the folder says."""
import struct

import numpy as np

F32, BF16 = 0, 30
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9

LLAMA = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    **{
        "self_attn.%s_proj.%s" % (a, e): "attn_%s.%s" % (b, e)
        for a, b in zip("qkvo", ("q", "k", "v", "output"))
        for e in ("weight", "bias")
    },
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    **{"mlp.%s_proj.weight" % n: "ffn_%s.weight" % n for n in ("gate", "up", "down")},
    "mlp.gate.weight": "ffn_gate_inp.weight",
}
AFTER = {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
}
GEMMA = {**AFTER, "pre_feedforward_layernorm.weight": "ffn_norm.weight"}
HYBRID = {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.in_proj_ba.weight": "ssm_ba.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
    **{"mlp.shared_expert.%s_proj.weight" % n: "ffn_%s_shexp.weight" % n for n in ("gate", "up", "down")},
}
LFM2 = {
    "operator_norm.weight": "attn_norm.weight",
    "self_attn.out_proj.weight": "attn_output.weight",
    "self_attn.q_layernorm.weight": "attn_q_norm.weight",
    "self_attn.k_layernorm.weight": "attn_k_norm.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    "conv.in_proj.weight": "shortconv.in_proj.weight",
    "conv.conv.weight": "shortconv.conv.weight",
    "conv.out_proj.weight": "shortconv.out_proj.weight",
    "feed_forward.w1.weight": "ffn_gate.weight",
    "feed_forward.w3.weight": "ffn_up.weight",
    "feed_forward.w2.weight": "ffn_down.weight",
    "feed_forward.gate.weight": "ffn_gate_inp.weight",
    "feed_forward.expert_bias": "exp_probs_b.bias",
}
GEMMA4 = {
    **GEMMA,
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "router.proj.weight": "ffn_gate_inp.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    "per_layer_input_gate.weight": "inp_gate.weight",
    "per_layer_projection.weight": "proj.weight",
    "post_per_layer_input_norm.weight": "post_norm.weight",
    "layer_scalar": "layer_output_scale.weight",
}
# Architecture, names of layers beside Llama's, whether pairs of a rotation are neighbours.
FAMILIES = {
    "llama": ("llama", {}, True),
    "mistral": ("llama", {}, True),
    "ministral3": ("mistral3", {}, True),
    "smollm3": ("smollm3", {}, True),
    "granite": ("granite", {}, True),
    "granitemoe": ("granitemoe", {"block_sparse_moe.router.layer.weight": "ffn_gate_inp.weight"}, True),
    "qwen2": ("qwen2", {}, False),
    "qwen3": ("qwen3", {}, False),
    "qwen3_moe": ("qwen3moe", {}, False),
    "phi3": (
        "phi3",
        {"self_attn.qkv_proj.weight": "attn_qkv.weight", "mlp.gate_up_proj.weight": "ffn_up.weight"},
        False,
    ),
    "olmo2": ("olmo2", AFTER, False),
    "olmo3": ("olmo2", AFTER, False),
    "hunyuan_v1_dense": (
        "hunyuan-dense",
        {
            "self_attn.query_layernorm.weight": "attn_q_norm.weight",
            "self_attn.key_layernorm.weight": "attn_k_norm.weight",
        },
        False,
    ),
    "gemma3_text": ("gemma3", GEMMA, False),
    "gemma4_text": ("gemma4", GEMMA4, False),
    "gpt_oss": (
        "gpt-oss",
        {
            "post_attention_layernorm.weight": "post_attention_norm.weight",
            "self_attn.sinks": "attn_sinks.weight",
            "mlp.router.weight": "ffn_gate_inp.weight",
            "mlp.router.bias": "ffn_gate_inp.bias",
        },
        False,
    ),
    "maple": ("maple", {}, False),
    "qwen3_5_text": ("qwen35", HYBRID, False),
    "qwen3_5_moe_text": ("qwen35moe", HYBRID, False),
    "qwen3_next": ("qwen3next", HYBRID, False),
    "lfm2": ("lfm2", LFM2, False),
    "lfm2_moe": ("lfm2moe", LFM2, False),
}
ENDS = {
    "embed_tokens.weight": "token_embd.weight",
    "word_embeddings.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "embedding_norm.weight": "token_embd_norm.weight",
    "embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
}


def neighbours(w, n_heads):
    """Rows of pairs half a head apart become neighbours."""
    return w.reshape(n_heads, 2, -1, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


class File:
    def __init__(self, config, tensors):
        self.c, self.keys, self.tensors, self.source = config, [], {}, tensors
        self.kind = config["model_type"]
        self.arch, self.names, self.is_adjacent = FAMILIES[self.kind]
        self.prefix = next(p for p in ("model.language_model.", "model.") if any(n.startswith(p) for n in tensors))
        self.adds_one = self.kind in ("gemma3_text", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")

    def key(self, name, kind, value):
        self.keys.append((name if "general" in name or "tokenizer" in name else self.arch + "." + name, kind, value))

    # Keys.

    def scaling(self):
        """False where the file has no form for it."""
        c = self.c
        given = c.get("rope_parameters") or c.get("rope_scaling") or {}
        kind = given.get("rope_type") or given.get("type") or "default"
        if kind == "linear":
            self.key("rope.scaling.type", STRING, "linear")
            self.key("rope.scaling.factor", FLOAT, given["factor"])
        elif kind == "llama3":
            size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
            f = (c.get("rope_theta") or given["rope_theta"]) ** (-2 * np.arange(size // 2) / size)
            low, high, old = (
                given["low_freq_factor"],
                given["high_freq_factor"],
                given["original_max_position_embeddings"],
            )
            s = np.clip((old * f / (2 * np.pi) - low) / (high - low), 0, 1)
            self.tensors["rope_freqs.weight"] = (1 / ((1 - s) / given["factor"] + s)).astype("<f4")
        elif kind == "yarn" and given.get("truncate", True) and "attention_factor" not in given:
            self.key("rope.scaling.type", STRING, "yarn")
            self.key("rope.scaling.factor", FLOAT, given["factor"])
            self.key("rope.scaling.original_context_length", U32, given["original_max_position_embeddings"])
            for name in ("beta_fast", "beta_slow"):
                if name in given:
                    self.key("rope.scaling.yarn_" + name, FLOAT, given[name])
            if "mscale_all_dim" in given:
                self.key("rope.scaling.yarn_log_multiplier", FLOAT, given["mscale_all_dim"])
            if "llama_4_scaling_beta" in given:
                self.key("attention.temperature_scale", FLOAT, given["llama_4_scaling_beta"])
        elif kind == "longrope":
            self.key("rope.scaling.type", STRING, "longrope")
            self.key("rope.scaling.original_context_length", U32, c["original_max_position_embeddings"])
            for n in ("short", "long"):
                self.tensors["rope_factors_%s.weight" % n] = np.asarray(given[n + "_factor"], "<f4")
        elif kind == "dynamic":
            return "alpha" in given
        elif kind not in ("default", "proportional"):
            return False
        return True

    def kinds(self, name):
        return [t == name for t in self.c["layer_types"]]

    def set_keys(self):
        c, n = self.c, self.c["num_hidden_layers"]
        heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
        size = c.get("head_dim") or c["hidden_size"] // heads
        self.key("general.architecture", STRING, self.arch)
        self.key("tokenizer.ggml.model", STRING, "no_vocab")
        self.key("block_count", U32, n)
        self.key("context_length", U32, c["max_position_embeddings"])
        self.key("embedding_length", U32, c["hidden_size"])
        self.key("vocab_size", U32, c["vocab_size"])
        self.key("attention.head_count", U32, heads)
        self.key("attention.layer_norm_rms_epsilon", FLOAT, c.get("rms_norm_eps") or c["norm_eps"])
        part = c.get("partial_rotary_factor") or (c.get("rope_parameters") or {}).get("partial_rotary_factor", 1.0)
        theta = c.get("rope_theta") or (c.get("rope_parameters") or {}).get("rope_theta", 1e6)
        special = getattr(self, "keys_of_" + self.kind, None)
        own = special() if special else {}
        if own is None or not self.scaling():
            return False
        if self.kind == "hunyuan_v1_dense":
            theta *= c["rope_scaling"]["alpha"] ** (size / (size - 2))
        for name, kind, value in (
            ("attention.key_length", U32, size),
            ("attention.value_length", U32, size),
            ("attention.head_count_kv", U32, kv),
            ("feed_forward_length", U32, c["intermediate_size"]),
            ("rope.dimension_count", U32, int(size * part)),
            ("rope.freq_base", FLOAT, theta),
        ):
            if name not in own:
                self.key(name, kind, value)
        for name, (kind, value) in own.items():
            if value is not None:
                self.key(name, kind, value)
        return True

    def experts(self, width=None):
        c = self.c
        own = {
            "expert_count": (U32, c.get("num_experts") or c["num_local_experts"]),
            "expert_used_count": (U32, c.get("num_experts_per_tok") or c["top_k_experts"]),
        }
        if width or c.get("moe_intermediate_size"):
            own["expert_feed_forward_length"] = (U32, width or c["moe_intermediate_size"])
        return own

    def window(self, pattern=None):
        own = {"attention.sliding_window": (U32, self.c["sliding_window"])}
        if pattern is not None:
            own["attention.sliding_window_pattern"] = (ARRAY, pattern)
        return own

    def keys_of_mistral(self):
        return None if self.c["sliding_window"] else {}

    def keys_of_smollm3(self):
        return {} if self.c["no_rope_layer_interval"] == 4 and "no_rope_layers" not in self.c else None

    def keys_of_granite(self):
        names = ("attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier")
        theirs = ("attention.scale", "embedding_scale", "logit_scale", "residual_scale")
        return {t: (FLOAT, self.c[n]) for n, t in zip(names, theirs)}

    def keys_of_granitemoe(self):
        return {**self.keys_of_granite(), **self.experts()}

    def keys_of_qwen3_moe(self):
        return self.experts() if self.c["norm_topk_prob"] and not self.c["mlp_only_layers"] else None

    def keys_of_phi3(self):
        return None if self.c["sliding_window"] else {}

    def keys_of_olmo3(self):
        return self.window(self.kinds("sliding_attention"))

    def keys_of_gemma3_text(self):
        c = self.c
        if c["query_pre_attn_scalar"] != c["head_dim"] or "layer_types" in c:
            return None
        return {**self.window(), "attention.sliding_window_pattern": (U32, c["sliding_window_pattern"])}

    def keys_of_gemma4_text(self):
        c, n = self.c, self.c["num_hidden_layers"]
        near, shared = self.kinds("sliding_attention"), c["num_kv_shared_layers"]
        wide = [c["intermediate_size"] * (2 if i >= n - shared and c["use_double_wide_mlp"] else 1) for i in range(n)]
        far_kv = c["num_global_key_value_heads"] if c["attention_k_eq_v"] else c["num_key_value_heads"]
        f, full = c["rope_parameters"]["full_attention"], c["global_head_dim"]
        turned = int(f["partial_rotary_factor"] * full / 2)
        self.tensors["rope_freqs.weight"] = np.where(np.arange(full // 2) < turned, 1, 1e30).astype("<f4")
        own = {
            **self.window(near),
            "attention.key_length": (U32, full),
            "attention.value_length": (U32, full),
            "attention.key_length_swa": (U32, c["head_dim"]),
            "attention.value_length_swa": (U32, c["head_dim"]),
            "rope.dimension_count": (U32, full),
            "rope.dimension_count_swa": (U32, c["head_dim"]),
            "rope.freq_base": (FLOAT, f["rope_theta"]),
            "rope.freq_base_swa": (FLOAT, c["rope_parameters"]["sliding_attention"]["rope_theta"]),
            "attention.head_count_kv": (ARRAY, [c["num_key_value_heads"] if s else far_kv for s in near]),
            "feed_forward_length": (ARRAY, wide),
            "attention.shared_kv_layers": (U32, shared),
            "embedding_length_per_layer_input": (U32, c["hidden_size_per_layer_input"]),
            "final_logit_softcapping": (FLOAT, c["final_logit_softcapping"] or 0.0),
        }
        return {**own, **self.experts()} if c["enable_moe_block"] else own

    def keys_of_gpt_oss(self):
        near = self.kinds("sliding_attention")
        if near != [i % 2 == 0 for i in range(len(near))]:
            return None
        return {**self.window(), **self.experts(self.c["intermediate_size"])}

    def keys_of_maple(self):
        c = self.c
        return {
            **self.window(self.kinds("sliding_attention")),
            **self.experts(),
            "rope.dimension_count": (U32, 0),
            "rope.dimension_count_swa": (U32, int(c["head_dim"] * c["partial_rotary_factor"])),
            "expert_gating_func": (U32, 1),
            "expert_weights_norm": (BOOL, True),
            "swiglu_clamp_exp": (ARRAY, [7.0] * c["num_hidden_layers"]),
        }

    def keys_of_qwen3_5_text(self):
        c = self.c
        own = {
            "ssm.conv_kernel": (U32, c["linear_conv_kernel_dim"]),
            "ssm.state_size": (U32, c["linear_key_head_dim"]),
            "ssm.group_count": (U32, c["linear_num_key_heads"]),
            "ssm.time_step_rank": (U32, c["linear_num_value_heads"]),
            "ssm.inner_size": (U32, c["linear_num_value_heads"] * c["linear_value_head_dim"]),
            "full_attention_interval": (U32, c["full_attention_interval"]),
        }
        if "layer_types" in c:
            own["attention.recurrent_layers"] = (ARRAY, self.kinds("linear_attention"))
        return own

    def keys_of_qwen3_5_moe_text(self):
        shared = {"expert_shared_feed_forward_length": (U32, self.c["shared_expert_intermediate_size"])}
        return {**self.keys_of_qwen3_5_text(), **self.experts(), **shared}

    keys_of_qwen3_next = keys_of_qwen3_5_moe_text

    def keys_of_lfm2(self):
        c = self.c
        return {
            "attention.head_count_kv": (
                ARRAY,
                [c["num_key_value_heads"] if f else 0 for f in self.kinds("full_attention")],
            ),
            "shortconv.l_cache": (U32, c["conv_L_cache"]),
        }

    def keys_of_lfm2_moe(self):
        c = self.c
        return {
            **self.keys_of_lfm2(),
            **self.experts(),
            "leading_dense_block_count": (U32, c["num_dense_layers"]),
            "expert_gating_func": (U32, 2),
            "expert_weights_norm": (BOOL, c["norm_topk_prob"]),
            "expert_weights_scale": (FLOAT, c["routed_scaling_factor"]),
        }

    # Tensors.

    def tiled(self, w, n_first, size):
        """Value heads of `size` rows, grouped by key head, after n_first rows."""
        if self.kind == "qwen3_next":
            return w
        nk, nv = self.c["linear_num_key_heads"], self.c["linear_num_value_heads"]
        heads = w[n_first:].reshape(nk, nv // nk, size, *w.shape[1:]).swapaxes(0, 1)
        return np.concatenate([w[:n_first], heads.reshape(w[n_first:].shape)])

    def delta_tensor(self, name, w):
        c = self.c
        nk, nv, dk, dv = (
            c["linear_" + n] for n in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
        )
        if name == "in_proj_qkv.weight":
            return self.tiled(w, 2 * nk * dk, dv)
        if name == "conv1d.weight":
            return self.tiled(w[:, 0], 2 * nk * dk, dv)
        if name == "in_proj_z.weight":
            return self.tiled(w, 0, dv)
        if name in ("in_proj_b.weight", "in_proj_a.weight", "dt_bias"):
            return self.tiled(w, 0, 1)
        if name == "A_log":
            return self.tiled(-np.exp(w), 0, 1)
        if name == "out_proj.weight":
            return self.tiled(w.T, 0, dv).T
        return w

    def layer_tensor(self, i, name, w):
        c, out = self.c, lambda theirs, value: self.tensors.__setitem__("blk.%d.%s" % (i, theirs), value)
        heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
        if ".experts." in name and name.split(".experts.")[1][0].isdigit():
            return  # stacked below
        if name == "linear_attn.in_proj_qkvz.weight":
            nk, r, dk, dv = (
                c["linear_num_key_heads"],
                c["linear_num_value_heads"],
                c["linear_key_head_dim"],
                c["linear_value_head_dim"],
            )
            r //= nk
            q, k, v, z = np.split(w.reshape(nk, -1, w.shape[1]), [dk, 2 * dk, 2 * dk + r * dv], 1)
            out("attn_qkv.weight", np.concatenate([y.reshape(-1, w.shape[1]) for y in (q, k, v)]))
            return out("attn_gate.weight", z.reshape(-1, w.shape[1]))
        if name.endswith("experts.gate_up_proj") and self.kind != "gemma4_text":
            w = (
                w.swapaxes(1, 2).reshape(len(w), -1, 2, w.shape[1]).swapaxes(1, 2)
                if self.kind == "gpt_oss"
                else np.split(w, 2, 1)
            )
            for n, half in zip(("gate", "up"), (w[:, 0], w[:, 1]) if self.kind == "gpt_oss" else w):
                out("ffn_%s_exps.weight" % n, half)
            return
        if name.endswith("experts.gate_up_proj_bias"):
            out("ffn_gate_exps.bias", w[:, ::2])
            return out("ffn_up_exps.bias", w[:, 1::2])
        if name.endswith("experts.down_proj_bias"):
            return out("ffn_down_exps.bias", w)
        if name.endswith("experts.down_proj"):
            return out("ffn_down_exps.weight", w.swapaxes(1, 2) if self.kind == "gpt_oss" else w)
        if name == "block_sparse_moe.input_linear.weight":
            for n, half in zip(("gate", "up"), np.split(w, 2, 1)):
                out("ffn_%s_exps.weight" % n, half)
            return
        if name == "block_sparse_moe.output_linear.weight":
            return out("ffn_down_exps.weight", w)
        if name.startswith("linear_attn."):
            w = self.delta_tensor(name[len("linear_attn.") :], w)
        if name == "mlp.shared_expert_gate.weight":
            w = w[0]
        if name == "conv.conv.weight":
            w = w[:, 0]
        if self.is_adjacent and name in ("self_attn.q_proj.weight", "self_attn.k_proj.weight"):
            w = neighbours(w, heads if "q_proj" in name else kv)
        if self.adds_one and name.endswith("norm.weight") and not name.startswith("linear_attn"):
            w = w + 1
        out({**LLAMA, **self.names}[name], w)

    def stack(self):
        """Experts of a matrix each become one tensor a layer."""
        c = self.c
        forms = (
            ("mlp.experts.%d.%s_proj.weight", ("gate", "up", "down")),
            ("feed_forward.experts.%d.%s.weight", ("w1", "w3", "w2")),
        )
        for i in range(c["num_hidden_layers"]):
            for form, names in forms:
                at = self.prefix + "layers.%d." % i + form
                if at % (0, names[0]) in self.source:
                    for theirs, n in zip(names, ("gate", "up", "down")):
                        each = [self.source[at % (e, theirs)] for e in range(c["num_experts"])]
                        self.tensors["blk.%d.ffn_%s_exps.weight" % (i, n)] = np.stack(each)

    def set_tensors(self):
        for name, w in self.source.items():
            short = name[len(self.prefix) :] if name.startswith(self.prefix) else name
            if name == "lm_head.weight":
                self.tensors["output.weight"] = w
            elif short.startswith("layers."):
                i, rest = short[len("layers.") :].split(".", 1)
                self.layer_tensor(int(i), rest, w)
            else:
                self.tensors[ENDS[short]] = w + 1 if self.adds_one and short == "norm.weight" else w
        self.stack()

    # Bytes.

    def value(self, kind, value):
        if kind == STRING:
            return struct.pack("<Q", len(value)) + value.encode()
        if kind == ARRAY:
            inner = BOOL if isinstance(value[0], bool) else FLOAT if isinstance(value[0], float) else I32
            return struct.pack("<IQ", inner, len(value)) + b"".join(self.value(inner, v) for v in value)
        return struct.pack({U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}[kind], value)

    def write(self, path):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys))
        for name, kind, value in self.keys:
            head += self.value(STRING, name) + struct.pack("<I", kind) + self.value(kind, value)
        body, at = [], 0
        for name, w in self.tensors.items():
            w = np.ascontiguousarray(w, "<f4")
            is_float = (
                w.ndim == 1 or "ffn_gate_inp" in name or "conv" in name and "proj" not in name or name.endswith("bias")
            )
            data = w.tobytes() if is_float else (w.view("<u4") >> 16).astype("<u2").tobytes()
            head += self.value(STRING, name) + struct.pack("<I", w.ndim)
            head += b"".join(struct.pack("<Q", d) for d in reversed(w.shape)) + struct.pack(
                "<IQ", F32 if is_float else BF16, at
            )
            data += bytes(-len(data) % 32)
            body.append(data)
            at += len(data)
        with open(path, "wb") as out:
            out.write(head + bytes(-len(head) % 32))
            out.writelines(body)


def write(path, config, tensors):
    """Returns whether there is a form for it."""
    file = File(config.get("text_config", config), tensors)
    if not file.set_keys():
        return False
    file.set_tensors()
    file.write(path)
    return True
