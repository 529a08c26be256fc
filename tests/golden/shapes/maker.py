# SPDX-License-Identifier: MIT
"""Folders of the families with random shapes and weights, named as Hugging Face's."""
import random

import numpy as np


def exact(x):
    """The nearest numbers that bfloat16 and float16 both hold."""
    bits = np.asarray(x, "<f4").view("<u4")
    y = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("<u4").view("<f4")
    return np.where(np.abs(y) < 2.0**-14, 0, y).astype("<f4")


class Maker:
    def __init__(self, seed):
        self.rng, self.np, self.tensors = random.Random(seed), np.random.default_rng(seed), {}

    def matrix(self, name, *shape, gain=1.2):
        self.tensors[name] = exact(self.np.standard_normal(shape) * gain / np.sqrt(shape[-1]))

    def vector(self, name, n, mean=1.0, spread=0.3):
        self.tensors[name] = exact(mean + spread * self.np.standard_normal(n))

    def linear(self, name, rows, columns, bias=False, gain=1.2):
        self.matrix(name + ".weight", rows, columns, gain=gain)
        if bias:
            self.vector(name + ".bias", rows, 0.0)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def kinds(self, other, n):
        """Kinds of n layers, one of them at least with attention."""
        kinds = ["full_attention"] + [self.pick(other, "full_attention") for _ in range(n - 1)]
        self.rng.shuffle(kinds)
        return kinds

    def ends(self, p, c, tied_key="tie_word_embeddings", embed="embed_tokens", final="norm", mean=1.0):
        self.matrix(p + embed + ".weight", c["vocab_size"], c["hidden_size"], gain=0.25 * np.sqrt(c["hidden_size"]))
        self.vector(p + final + ".weight", c["hidden_size"], mean)
        if not c.get(tied_key, True):
            self.matrix("lm_head.weight", c["vocab_size"], c["hidden_size"], gain=3)

    def attention(
        self, p, c, bias=False, qk=None, mean=1.0, q_times=1, split=False, out="o_proj", names=("q_norm", "k_norm")
    ):
        d, size, heads, kv = c["hidden_size"], c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
        if split:
            self.linear(p + "qkv_proj", (heads + 2 * kv) * size, d)
        else:
            self.linear(p + "q_proj", heads * size * q_times, d, bias)
            self.linear(p + "k_proj", kv * size, d, bias)
            self.linear(p + "v_proj", kv * size, d, bias)
        self.linear(p + out, d, heads * size, bias and out == "o_proj" and c["model_type"] == "gpt_oss")
        if qk:
            self.vector(p + names[0] + ".weight", heads * size if qk == "whole" else size, mean)
            self.vector(p + names[1] + ".weight", kv * size if qk == "whole" else size, mean)

    def mlp(self, p, c, width=None, names=("gate_proj", "up_proj", "down_proj")):
        f, d = width or c["intermediate_size"], c["hidden_size"]
        self.linear(p + names[0], f, d)
        self.linear(p + names[1], f, d)
        self.linear(p + names[2], d, f)

    def stacked(self, p, e, f, d):
        self.matrix(p + "gate_up_proj", e, 2 * f, d)
        self.matrix(p + "down_proj", e, d, f)

    def base(self, kind, arch, **more):
        kv = self.pick(1, 2, 3)
        heads = kv * self.pick(1, 2, 3, 4)
        size = self.pick(16, 32, 48, 64)
        return {
            "architectures": [arch],
            "model_type": kind,
            "hidden_size": self.pick(64, 96, 128, 160, 192),
            "intermediate_size": self.pick(64, 96, 160, 224),
            "num_hidden_layers": self.pick(2, 3, 4, 5),
            "num_attention_heads": heads,
            "num_key_value_heads": kv,
            "head_dim": size,
            "vocab_size": self.pick(256, 384, 517),
            "rms_norm_eps": self.pick(1e-6, 1e-5),
            "max_position_embeddings": 2048,
            "hidden_act": "silu",
            "rope_theta": self.pick(1e4, 5e5, 1e6),
            "tie_word_embeddings": self.pick(True, False),
            "bos_token_id": 1,
            "eos_token_id": 2,
            "dtype": "bfloat16",
            **more,
        }

    def fit(self, c):
        """Families whose head size is hidden / heads."""
        c["hidden_size"] = c["num_attention_heads"] * c["head_dim"]
        while c["hidden_size"] % 32:
            c["head_dim"] *= 2
            c["hidden_size"] *= 2

    def dense_layers(self, c, p="model.", **how):
        bias, qk = how.get("bias", False), how.get("qk")
        for i in range(c["num_hidden_layers"]):
            at = p + "layers.%d." % i
            for n in how.get("norms", ("input_layernorm", "post_attention_layernorm")):
                self.vector(at + n + ".weight", c["hidden_size"], how.get("mean", 1.0))
            self.attention(
                at + "self_attn.",
                c,
                bias,
                qk,
                how.get("mean", 1.0),
                split=how.get("split"),
                names=how.get("names", ("q_norm", "k_norm")),
            )
            how.get("ffn", lambda i, at: self.mlp(at + "mlp.", c))(i, at)
        self.ends(p, c, embed=how.get("embed", "embed_tokens"), mean=how.get("mean", 1.0))

    def scaling(self, c):
        """One of the scalings that any of the Llamas may have, or none."""
        kind = self.pick("none", "none", "linear", "llama3", "yarn")
        if kind == "linear":
            c["rope_scaling"] = {"type": "linear", "factor": self.pick(2.0, 4.0)}
        elif kind == "llama3":
            c["rope_scaling"] = {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        elif kind == "yarn":
            c["rope_scaling"] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
            if self.pick(0, 1):
                c["rope_scaling"]["attention_factor"] = 1.05
        if self.pick(0, 1) and c.get("rope_scaling"):
            c["rope_parameters"] = {"rope_theta": c.pop("rope_theta"), **c.pop("rope_scaling")}
            if "type" in c["rope_parameters"]:
                c["rope_parameters"]["rope_type"] = c["rope_parameters"].pop("type")

    def llama(self):
        c = self.base("llama", "LlamaForCausalLM")
        self.scaling(c)
        self.dense_layers(c)
        return c

    def qwen2(self):
        c = self.base("qwen2", "Qwen2ForCausalLM")
        self.fit(c)
        del c["head_dim"]
        c["head_dim"] = c["hidden_size"] // c["num_attention_heads"]
        self.dense_layers(c, bias=True)
        del c["head_dim"]
        return c

    def qwen3(self):
        c = self.base("qwen3", "Qwen3ForCausalLM")
        self.scaling(c)
        self.dense_layers(c, qk="head")
        return c

    def qwen3_moe(self):
        c = self.base(
            "qwen3_moe",
            "Qwen3MoeForCausalLM",
            num_experts=self.pick(4, 7, 16),
            moe_intermediate_size=self.pick(16, 32, 48),
            norm_topk_prob=self.pick(True, True, False),
            decoder_sparse_step=1,
            mlp_only_layers=[],
        )
        c["num_experts_per_tok"] = self.pick(1, 2, 3, 4)
        if self.pick(0, 0, 1):
            c["mlp_only_layers"] = [0]
        stacked = self.pick(True, False)

        def ffn(i, at):
            if i in c["mlp_only_layers"]:
                return self.mlp(at + "mlp.", c)
            self.linear(at + "mlp.gate", c["num_experts"], c["hidden_size"], gain=3)
            if stacked:
                return self.stacked(at + "mlp.experts.", c["num_experts"], c["moe_intermediate_size"], c["hidden_size"])
            for e in range(c["num_experts"]):
                self.mlp(at + "mlp.experts.%d." % e, c, c["moe_intermediate_size"])

        self.dense_layers(c, qk="head", ffn=ffn)
        return c

    def mistral(self):
        c = self.base("mistral", "MistralForCausalLM", sliding_window=self.pick(7, 20, 33, None))
        self.dense_layers(c)
        return c

    def ministral3(self):
        c = self.base("ministral3", "Ministral3ForCausalLM")
        c["rope_parameters"] = {
            "rope_type": "yarn",
            "type": "yarn",
            "factor": self.pick(4.0, 16.0),
            "rope_theta": c.pop("rope_theta"),
            "beta_fast": 4.0,
            "beta_slow": 0.25,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
            "original_max_position_embeddings": self.pick(32, 64),
        }
        self.dense_layers(c)
        return c

    def smollm3(self):
        c = self.base("smollm3", "SmolLM3ForCausalLM")
        self.fit(c)
        n = c["num_hidden_layers"]
        c["no_rope_layer_interval"] = self.pick(2, 3, 4)
        if self.pick(0, 1):
            c["no_rope_layers"] = [self.pick(0, 1) for _ in range(n)]
        self.dense_layers(c)
        del c["head_dim"]
        return c

    def granite(self):
        c = self.base(
            "granite",
            "GraniteForCausalLM",
            attention_multiplier=self.pick(0.05, 0.125),
            embedding_multiplier=self.pick(4.0, 12.0),
            logits_scaling=self.pick(2.0, 8.0),
            residual_multiplier=self.pick(0.22, 0.5),
        )
        self.fit(c)
        self.dense_layers(c)
        del c["head_dim"]
        return c

    def granitemoe(self):
        c = self.base(
            "granitemoe",
            "GraniteMoeForCausalLM",
            attention_multiplier=0.125,
            embedding_multiplier=6.0,
            logits_scaling=4.0,
            residual_multiplier=0.3,
            num_local_experts=self.pick(4, 6),
            num_experts_per_tok=self.pick(2, 3),
        )
        self.fit(c)

        def ffn(i, at):
            at += "block_sparse_moe."
            self.linear(at + "router.layer", c["num_local_experts"], c["hidden_size"], gain=3)
            self.matrix(
                at + "input_linear.weight", c["num_local_experts"], 2 * c["intermediate_size"], c["hidden_size"]
            )
            self.matrix(at + "output_linear.weight", c["num_local_experts"], c["hidden_size"], c["intermediate_size"])

        self.dense_layers(c, ffn=ffn)
        del c["head_dim"]
        return c

    def phi3(self):
        c = self.base(
            "phi3",
            "Phi3ForCausalLM",
            partial_rotary_factor=self.pick(1.0, 0.75, 0.5),
            sliding_window=self.pick(None, 12),
            original_max_position_embeddings=64,
            max_position_embeddings=256,
            pad_token_id=0,
        )
        self.fit(c)
        half = int(c["head_dim"] * c["partial_rotary_factor"]) // 2
        if self.pick(0, 1):
            c["rope_scaling"] = {
                "type": "longrope",
                "short_factor": [1 + 0.1 * i for i in range(half)],
                "long_factor": [1 + 0.4 * i for i in range(half)],
            }
        self.dense_layers(
            c,
            split=True,
            ffn=lambda i, at: (
                self.linear(at + "mlp.gate_up_proj", 2 * c["intermediate_size"], c["hidden_size"]),
                self.linear(at + "mlp.down_proj", c["hidden_size"], c["intermediate_size"]),
            ),
        )
        del c["head_dim"]
        return c

    def olmo2(self):
        c = self.base("olmo2", "Olmo2ForCausalLM")
        self.fit(c)
        self.dense_layers(c, qk="whole", norms=("post_attention_layernorm", "post_feedforward_layernorm"))
        del c["head_dim"]
        return c

    def olmo3(self):
        c = self.base("olmo3", "Olmo3ForCausalLM", sliding_window=self.pick(5, 17))
        self.fit(c)
        c["layer_types"] = [self.pick("sliding_attention", "full_attention") for _ in range(c["num_hidden_layers"])]
        self.dense_layers(c, qk="whole", norms=("post_attention_layernorm", "post_feedforward_layernorm"))
        del c["head_dim"]
        return c

    def hunyuan_v1_dense(self):
        c = self.base(
            "hunyuan_v1_dense",
            "HunYuanDenseV1ForCausalLM",
            use_qk_norm=True,
            tie_word_embeddings=True,
            rope_scaling={"type": "dynamic", "alpha": self.pick(10.0, 1000.0), "factor": 1.0},
        )
        c["attention_head_dim"] = c["head_dim"]
        self.dense_layers(c, qk="head", names=("query_layernorm", "key_layernorm"))
        return c

    def gemma3(self):
        c = self.base(
            "gemma3_text",
            "Gemma3ForCausalLM",
            hidden_activation="gelu_pytorch_tanh",
            sliding_window=self.pick(6, 19),
            query_pre_attn_scalar=self.pick(16, 32, 100),
            attn_logit_softcapping=None,
            final_logit_softcapping=None,
            tie_word_embeddings=True,
        )
        n = c["num_hidden_layers"]
        if self.pick(0, 1):
            c["layer_types"] = [self.pick("sliding_attention", "full_attention") for _ in range(n)]
            c["rope_parameters"] = {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": c.pop("rope_theta")},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }
        else:
            c["sliding_window_pattern"], c["rope_local_base_freq"] = self.pick(2, 3, 6), 1e4
            if self.pick(0, 1):
                c["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
        self.dense_layers(
            c,
            qk="head",
            mean=0.0,
            norms=(
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            ),
        )
        return c

    def gpt_oss(self):
        c = self.base(
            "gpt_oss",
            "GptOssForCausalLM",
            num_local_experts=self.pick(4, 6),
            num_experts_per_tok=self.pick(1, 2, 4),
            sliding_window=self.pick(6, 20),
            swiglu_limit=7.0,
            attention_bias=True,
            tie_word_embeddings=False,
        )
        n = c["num_hidden_layers"]
        c["experts_per_token"] = c["num_experts_per_tok"]
        c["layer_types"] = [self.pick("sliding_attention", "full_attention") for _ in range(n)]
        c["rope_scaling"] = {
            "rope_type": "yarn",
            "factor": 8.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": self.pick(True, False),
            "original_max_position_embeddings": 64,
        }
        e, f, d = c["num_local_experts"], c["intermediate_size"], c["hidden_size"]

        def ffn(i, at):
            self.vector(at + "self_attn.sinks", c["num_attention_heads"], 0.0, 1.0)
            self.linear(at + "mlp.router", e, d, True, gain=3)
            at += "mlp.experts."
            self.tensors[at + "gate_up_proj"] = exact(self.np.standard_normal((e, d, 2 * f)) / np.sqrt(d))
            self.tensors[at + "down_proj"] = exact(self.np.standard_normal((e, f, d)) / np.sqrt(f))
            self.tensors[at + "gate_up_proj_bias"] = exact(self.np.standard_normal((e, 2 * f)) * 0.3)
            self.tensors[at + "down_proj_bias"] = exact(self.np.standard_normal((e, d)) * 0.3)

        self.dense_layers(c, bias=True, ffn=ffn)
        return c

    def maple(self):
        c = self.base(
            "maple",
            "MapleForCausalLM",
            num_experts=self.pick(5, 8),
            num_experts_per_tok=self.pick(2, 3),
            norm_topk_prob=True,
            moe_intermediate_size=self.pick(32, 64),
            partial_rotary_factor=self.pick(0.5, 1.0),
            sliding_window=self.pick(5, 11),
            tie_word_embeddings=False,
            use_bias=False,
        )
        c["layer_types"] = [self.pick("sliding_attention", "full_attention") for _ in range(c["num_hidden_layers"])]

        def ffn(i, at):
            self.linear(at + "mlp.gate", c["num_experts"], c["hidden_size"], gain=3)
            for e in range(c["num_experts"]):
                self.mlp(at + "mlp.experts.%d." % e, c, c["moe_intermediate_size"])

        self.dense_layers(c, qk="head", ffn=ffn, embed="word_embeddings")
        return c

    def hybrid(self, c, p, ffn, joined=False):
        n, d = c["num_hidden_layers"], c["hidden_size"]
        nk = self.pick(1, 2, 3)
        nv = nk * self.pick(1, 2, 3, 4)
        dk = self.pick(16, 32, 64)
        c.update(
            linear_num_key_heads=nk,
            linear_num_value_heads=nv,
            linear_key_head_dim=dk,
            linear_value_head_dim=dk,
            linear_conv_kernel_dim=self.pick(2, 3, 4),
            attn_output_gate=True,
            rms_norm_eps=1e-6,
        )
        c["full_attention_interval"] = self.pick(2, 3, 4)
        c["full_attention_interval"] = min(c["full_attention_interval"], n)
        if self.pick(0, 1):
            c["layer_types"] = self.kinds("linear_attention", n)
        full = (
            lambda i: c["layer_types"][i] == "full_attention"
            if "layer_types" in c
            else (i + 1) % c["full_attention_interval"] == 0
        )
        for i in range(n):
            at = p + "layers.%d." % i
            for name in ("input_layernorm", "post_attention_layernorm"):
                self.vector(at + name + ".weight", d, 0.0)
            if full(i):
                self.attention(at + "self_attn.", c, qk="head", mean=0.0, q_times=2)
            else:
                at_net = at + "linear_attn."
                if joined:
                    self.linear(at_net + "in_proj_qkvz", 2 * nk * dk + 2 * nv * dk, d)
                    self.linear(at_net + "in_proj_ba", 2 * nv, d)
                else:
                    self.linear(at_net + "in_proj_qkv", 2 * nk * dk + nv * dk, d)
                    self.linear(at_net + "in_proj_z", nv * dk, d)
                    self.linear(at_net + "in_proj_b", nv, d)
                    self.linear(at_net + "in_proj_a", nv, d)
                self.matrix(at_net + "conv1d.weight", 2 * nk * dk + nv * dk, 1, c["linear_conv_kernel_dim"])
                self.vector(at_net + "A_log", nv, 0.5, 0.7)
                self.vector(at_net + "dt_bias", nv, -1.0, 0.7)
                self.vector(at_net + "norm.weight", dk)
                self.linear(at_net + "out_proj", d, nv * dk)
            ffn(i, at)
        self.ends(p, c, mean=0.0)

    def qwen3_5(self):
        inner = self.base("qwen3_5_text", "x")
        del inner["architectures"]
        self.hybrid_rope(inner)
        self.hybrid(inner, "model.language_model.", lambda i, at: self.mlp(at + "mlp.", inner))
        return {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "model_type": "qwen3_5",
            "text_config": inner,
            "tie_word_embeddings": inner["tie_word_embeddings"],
        }

    def hybrid_rope(self, c):
        c["head_dim"] = self.pick(32, 64, 128)
        c["rope_parameters"] = {
            "rope_type": "default",
            "rope_theta": c.pop("rope_theta"),
            "partial_rotary_factor": self.pick(0.25, 0.5),
        }

    def shared_experts(self, c):
        c.update(
            num_experts=self.pick(4, 8),
            moe_intermediate_size=self.pick(32, 48),
            num_experts_per_tok=self.pick(1, 2, 3),
            shared_expert_intermediate_size=self.pick(32, 64),
        )

        def ffn(i, at):
            self.linear(at + "mlp.gate", c["num_experts"], c["hidden_size"], gain=3)
            if c["model_type"] == "qwen3_next":
                for e in range(c["num_experts"]):
                    self.mlp(at + "mlp.experts.%d." % e, c, c["moe_intermediate_size"])
            else:
                self.stacked(at + "mlp.experts.", c["num_experts"], c["moe_intermediate_size"], c["hidden_size"])
            self.mlp(at + "mlp.shared_expert.", c, c["shared_expert_intermediate_size"])
            self.linear(at + "mlp.shared_expert_gate", 1, c["hidden_size"])

        return ffn

    def qwen3_5_moe(self):
        inner = self.base("qwen3_5_moe_text", "x")
        del inner["architectures"]
        self.hybrid_rope(inner)
        self.hybrid(inner, "model.language_model.", self.shared_experts(inner))
        return {
            "architectures": ["Qwen3_5MoeForConditionalGeneration"],
            "model_type": "qwen3_5_moe",
            "text_config": inner,
            "tie_word_embeddings": inner["tie_word_embeddings"],
        }

    def qwen3_next(self):
        c = self.base(
            "qwen3_next", "Qwen3NextForCausalLM", norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[]
        )
        c["head_dim"], c["partial_rotary_factor"] = self.pick(32, 64), self.pick(0.25, 0.5)
        self.hybrid(c, "model.", self.shared_experts(c), joined=True)
        return c

    def lfm2_layers(self, c, ffn):
        self.fit(c)
        d, n = c["hidden_size"], c["num_hidden_layers"]
        c["norm_eps"] = c.pop("rms_norm_eps")
        c["conv_L_cache"], c["conv_bias"] = self.pick(3, 3, 4), False
        c["layer_types"] = self.kinds("conv", n)
        for i in range(n):
            at = "model.layers.%d." % i
            self.vector(at + "operator_norm.weight", d)
            self.vector(at + "ffn_norm.weight", d)
            if c["layer_types"][i] == "conv":
                self.linear(at + "conv.in_proj", 3 * d, d)
                self.matrix(at + "conv.conv.weight", d, 1, c["conv_L_cache"])
                self.linear(at + "conv.out_proj", d, d)
            else:
                self.attention(at + "self_attn.", c, qk="head", out="out_proj", names=("q_layernorm", "k_layernorm"))
            ffn(i, at)
        c["tie_word_embeddings"] = True
        self.ends("model.", c, final="embedding_norm")
        del c["head_dim"]
        return c

    def lfm2(self):
        c = self.base("lfm2", "Lfm2ForCausalLM", block_auto_adjust_ff_dim=False)
        c["block_ff_dim"] = c["intermediate_size"]
        return self.lfm2_layers(c, lambda i, at: self.mlp(at + "feed_forward.", c, names=("w1", "w3", "w2")))

    def lfm2_moe(self):
        c = self.base(
            "lfm2_moe",
            "Lfm2MoeForCausalLM",
            num_experts=self.pick(4, 8),
            num_experts_per_tok=self.pick(1, 2, 3),
            moe_intermediate_size=self.pick(32, 48),
            num_dense_layers=self.pick(0, 1),
            norm_topk_prob=self.pick(True, False),
            routed_scaling_factor=self.pick(1.0, 2.5),
            use_expert_bias=True,
        )

        def ffn(i, at):
            at += "feed_forward."
            if i < c["num_dense_layers"]:
                return self.mlp(at, c, names=("w1", "w3", "w2"))
            self.linear(at + "gate", c["num_experts"], c["hidden_size"], gain=3)
            self.vector(at + "expert_bias", c["num_experts"], 0.0, 0.2)
            for e in range(c["num_experts"]):
                self.mlp(at + "experts.%d." % e, c, c["moe_intermediate_size"], ("w1", "w3", "w2"))

        return self.lfm2_layers(c, ffn)

    def gemma4(self):
        c = self.base(
            "gemma4_text",
            "Gemma4ForCausalLM",
            hidden_activation="gelu_pytorch_tanh",
            sliding_window=self.pick(5, 13),
            final_logit_softcapping=self.pick(30.0, 10.0, None),
            tie_word_embeddings=True,
        )
        n, d, heads = c["num_hidden_layers"], c["hidden_size"], c["num_attention_heads"]
        c.update(
            head_dim=self.pick(16, 32),
            global_head_dim=self.pick(32, 64),
            attention_k_eq_v=self.pick(True, False),
            enable_moe_block=self.pick(True, False),
            hidden_size_per_layer_input=self.pick(0, 32),
            use_double_wide_mlp=False,
            num_kv_shared_layers=0,
            num_global_key_value_heads=None,
        )
        if c["attention_k_eq_v"]:
            c["num_global_key_value_heads"] = self.pick(*[k for k in (1, 2, 3) if heads % k == 0])
        c["layer_types"] = [self.pick("sliding_attention", "full_attention") for _ in range(n)]
        kinds = set(c["layer_types"])
        if self.pick(0, 1):
            own = max(c["layer_types"].index(k) for k in kinds) + 1
            if own < n:
                c["num_kv_shared_layers"], c["use_double_wide_mlp"] = self.rng.randrange(1, n - own + 1), self.pick(
                    True, False
                )
        c["rope_parameters"] = {
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": self.pick(0.25, 0.5),
                "rope_theta": 1e6,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        }
        del c["rope_theta"]
        c["vocab_size_per_layer_input"] = c["vocab_size"]
        per, p = c["hidden_size_per_layer_input"], "model."
        if c["enable_moe_block"]:
            c.update(
                num_experts=self.pick(4, 8), top_k_experts=self.pick(1, 2, 3), moe_intermediate_size=self.pick(32, 48)
            )
        for i in range(n):
            at = p + "layers.%d." % i
            full, shared = c["layer_types"][i] == "full_attention", i >= n - c["num_kv_shared_layers"]
            size = c["global_head_dim"] if full else c["head_dim"]
            kv = c["num_global_key_value_heads"] if full and c["attention_k_eq_v"] else c["num_key_value_heads"]
            for name in (
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            ):
                self.vector(at + name + ".weight", d)
            self.linear(at + "self_attn.q_proj", heads * size, d)
            self.linear(at + "self_attn.o_proj", d, heads * size)
            self.vector(at + "self_attn.q_norm.weight", size, 0.4, 0.1)
            if not shared:
                self.linear(at + "self_attn.k_proj", kv * size, d)
                self.vector(at + "self_attn.k_norm.weight", size, 0.4, 0.1)
                if not (full and c["attention_k_eq_v"]):
                    self.linear(at + "self_attn.v_proj", kv * size, d)
            self.mlp(at + "mlp.", c, c["intermediate_size"] * (2 if shared and c["use_double_wide_mlp"] else 1))
            if c["enable_moe_block"]:
                for name in (
                    "post_feedforward_layernorm_1",
                    "post_feedforward_layernorm_2",
                    "pre_feedforward_layernorm_2",
                ):
                    self.vector(at + name + ".weight", d)
                self.linear(at + "router.proj", c["num_experts"], d, gain=3 * np.sqrt(d))
                self.vector(at + "router.scale", d)
                self.vector(at + "router.per_expert_scale", c["num_experts"])
                self.stacked(at + "experts.", c["num_experts"], c["moe_intermediate_size"], d)
            if per:
                self.linear(at + "per_layer_input_gate", per, d)
                self.linear(at + "per_layer_projection", d, per)
                self.vector(at + "post_per_layer_input_norm.weight", d)
            self.vector(at + "layer_scalar", 1, 0.8, 0.1)
        if per:
            self.matrix(p + "embed_tokens_per_layer.weight", c["vocab_size"], n * per, gain=np.sqrt(n * per) * 0.2)
            self.linear(p + "per_layer_model_projection", n * per, d)
            self.vector(p + "per_layer_projection_norm.weight", per)
        self.ends(p, c)
        return c
