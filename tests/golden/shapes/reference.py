# SPDX-License-Identifier: MIT
"""Logits of the families in double precision, all positions at once, from a Hugging Face folder's configuration and
tensors. Written from the families' formulas alone; shares no code with the program under test."""
import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, weight, eps, plus=0.0):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y if weight is None else y * (weight + plus)


class Rope:
    """Pairs (i, i + n / 2) of the first n of a head's numbers."""

    def __init__(self, frequencies, factor=1.0):
        self.frequencies, self.factor = np.asarray(frequencies, float), factor

    def __call__(self, x):  # (tokens, heads, head size)
        half = len(self.frequencies)
        angle = np.arange(len(x))[:, None] * self.frequencies[None]
        cos, sin = np.cos(angle)[:, None] * self.factor, np.sin(angle)[:, None] * self.factor
        a, b = x[..., :half], x[..., half : 2 * half]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], -1)


def plain_rope(theta, n):
    return Rope(theta ** (-2 * np.arange(n // 2) / n))


def scaled_rope(theta, n, scaling, config, n_tokens):
    f = theta ** (-2 * np.arange(n // 2) / n)
    kind = (scaling or {}).get("rope_type") or (scaling or {}).get("type") or "default"
    most = config["max_position_embeddings"]
    if kind == "linear":
        return Rope(f / scaling["factor"])
    if kind == "llama3":
        old, low, high = (
            scaling[k] for k in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor")
        )
        share = np.clip((old * f / (2 * math.pi) - low) / (high - low), 0, 1)
        return Rope(f * ((1 - share) / scaling["factor"] + share))
    if kind == "yarn":
        factor, old = scaling["factor"], scaling.get("original_max_position_embeddings", most)
        turn = lambda r: n * math.log(old / (2 * math.pi * r)) / (2 * math.log(theta))
        low, high = turn(scaling.get("beta_fast", 32)), turn(scaling.get("beta_slow", 1))
        if scaling.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, n - 1)
        ramp = np.clip((np.arange(n // 2) - low) / (high - low if high != low else 0.001), 0, 1)
        growth = lambda a: 0.1 * a * math.log(factor) + 1 if factor > 1 else 1.0
        m = scaling.get("attention_factor")
        if m is None:
            a, b = scaling.get("mscale"), scaling.get("mscale_all_dim")
            m = growth(a) / growth(b) if a and b else growth(1)
        return Rope(f * (1 - ramp) + f / factor * ramp, m)
    if kind == "longrope":
        old = config["original_max_position_embeddings"]
        extra = scaling["long_factor" if n_tokens > old else "short_factor"]
        factor = most / old
        m = scaling.get("attention_factor") or (math.sqrt(1 + math.log(factor) / math.log(old)) if factor > 1 else 1.0)
        return Rope(f / np.asarray(extra), m)
    if kind == "dynamic" and scaling.get("alpha"):
        return plain_rope(theta * scaling["alpha"] ** (n / (n - 2)), n)
    assert kind == "default", kind
    return Rope(f)


def attend(q, k, v, scale, window=0, sinks=None):
    """(tokens, heads, size) each; query head h reads key head h / (heads / key heads)."""
    n, heads = q.shape[:2]
    group = heads // k.shape[1]
    place = np.arange(n)
    hidden = place[None] > place[:, None]
    if window:
        hidden |= place[:, None] - place[None] >= window
    out = np.empty((n, heads, v.shape[-1]))
    for h in range(heads):
        scores = np.where(hidden, -np.inf, q[:, h] @ k[:, h // group].T * scale)
        if sinks is None:
            p = softmax(scores)
        else:
            p = softmax(np.concatenate([scores, np.full((n, 1), sinks[h])], 1))[:, :n]
        out[:, h] = p @ v[:, h // group]
    return out


def convolve(u, taps):
    """(tokens, channels), (channels, taps): the last tap meets the newest."""
    n_taps = taps.shape[1]
    padded = np.concatenate([np.zeros((n_taps - 1, u.shape[1])), u])
    return sum(padded[j : j + len(u)] * taps[:, j] for j in range(n_taps))


def delta_rule(q, k, v, beta, g):
    """Heads of q and k are those of v already."""
    n, heads, dk = q.shape
    state, out = np.zeros((heads, dk, v.shape[-1])), np.empty(v.shape)
    for t in range(n):
        state *= np.exp(g[t])[:, None, None]
        known = np.einsum("hkv,hk->hv", state, k[t])
        state += np.einsum("hk,hv->hkv", k[t], beta[t][:, None] * (v[t] - known))
        out[t] = np.einsum("hkv,hk->hv", state, q[t])
    return out


def swiglu(x, gate, up, down, act=silu):
    return (act(x @ gate.T) * (x @ up.T)) @ down.T


def mixture(weights, chosen, expert):
    """weights, chosen: (tokens, taken); expert(e, rows) -> outputs of those tokens."""
    out = 0
    for rank in range(chosen.shape[1]):
        for e in np.unique(chosen[:, rank]):
            rows = np.nonzero(chosen[:, rank] == e)[0]
            y = expert(e, rows)
            if np.isscalar(out):
                out = np.zeros((len(chosen), y.shape[1]))
            out[rows] += weights[rows, rank][:, None] * y
    return out


def take(scores, k):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, 1)


class Reference:
    def __init__(self, config, tensors):
        self.outer, self.c = config, {**config, **config.get("text_config", {})}
        self.tensors = tensors
        self.margin = math.inf  # smallest distance of a choice of experts
        names = list(tensors)
        self.prefix = next(p for p in ("model.language_model.", "model.") if any(n.startswith(p) for n in names))

    def w(self, name):
        return np.asarray(self.tensors[self.prefix + name], float)

    def has(self, name):
        return self.prefix + name in self.tensors

    def layer(self, i, name):
        return self.w("layers.%d.%s" % (i, name))

    def matrix(self, i, name):
        return self.layer(i, name + ".weight")

    def project(self, i, name, x):
        y = x @ self.matrix(i, name).T
        bias = "layers.%d.%s.bias" % (i, name)
        return y + self.w(bias) if self.has(bias) else y

    def choose(self, scores, k):
        order, _ = take(scores, min(k + 1, scores.shape[1]))
        if scores.shape[1] > k:
            two = np.take_along_axis(scores, order[:, k - 1 : k + 1], 1)
            self.margin = min(self.margin, (two[:, 0] - two[:, 1]).min())
        return order[:, :k]

    def head(self, x):
        tied = self.c.get("tie_word_embeddings", self.c.get("tie_embedding", True))
        name = "word_embeddings.weight" if self.has("word_embeddings.weight") else "embed_tokens.weight"
        return x @ (self.w(name) if tied else np.asarray(self.tensors["lm_head.weight"], float)).T

    def logits(self, ids):
        kind = self.c["model_type"].replace("_text", "") if self.c["model_type"] != "gemma3_text" else "gemma3"
        return getattr(self, kind)(np.asarray(ids))

    # Transformers of one kind of layer, with what each family adds.

    def llama_like(
        self,
        ids,
        *,
        qk="none",
        windows=None,
        ropes=None,
        scale=None,
        embed=1.0,
        residual=1.0,
        divide=1.0,
        ffn=None,
        norms=("input_layernorm", "post_attention_layernorm"),
        after=(None, None),
        plus=0.0,
        act=silu,
        split=None,
        q_factor=None,
        sinks=False,
        qk_names=("q_norm", "k_norm"),
        final="norm",
        embed_name="embed_tokens"
    ):
        c = self.c
        heads, kv = c["num_attention_heads"], c.get("num_key_value_heads") or c["num_attention_heads"]
        size = c.get("head_dim") or c["hidden_size"] // heads
        eps = c["rms_norm_eps"]
        x = self.w(embed_name + ".weight")[ids] * embed
        for i in range(c["num_hidden_layers"]):
            h = rms(x, self.matrix(i, norms[0]), eps, plus) if norms[0] else x
            if split:
                both = self.project(i, "self_attn.qkv_proj", h)
                q, k, v = np.split(both, [heads * size, (heads + kv) * size], 1)
            else:
                q, k, v = (self.project(i, "self_attn.%s_proj" % n, h) for n in "qkv")
            if qk == "whole":
                q, k = (rms(y, self.matrix(i, "self_attn." + n), eps) for y, n in zip((q, k), qk_names))
            q, k, v = q.reshape(-1, heads, size), k.reshape(-1, kv, size), v.reshape(-1, kv, size)
            if qk == "before":
                q, k = (rms(y, self.matrix(i, "self_attn." + n), eps, plus) for y, n in zip((q, k), qk_names))
            rope = ropes(i)
            if rope:
                q, k = rope(q), rope(k)
            if qk == "after":
                q, k = (rms(y, self.matrix(i, "self_attn." + n), eps) for y, n in zip((q, k), qk_names))
            if q_factor is not None:
                q = q * q_factor(np.arange(len(ids)))[:, None, None]
            y = attend(
                q,
                k,
                v,
                scale or size**-0.5,
                windows(i) if windows else 0,
                self.layer(i, "self_attn.sinks") if sinks else None,
            )
            y = self.project(i, "self_attn.o_proj", y.reshape(len(ids), -1))
            if after[0]:
                y = rms(y, self.matrix(i, after[0]), eps, plus)
            x = x + residual * y
            h = rms(x, self.matrix(i, norms[1]), eps, plus) if norms[1] else x
            y = (
                ffn(i, h)
                if ffn
                else swiglu(h, *(self.matrix(i, "mlp.%s_proj" % n) for n in ("gate", "up", "down")), act)
            )
            if after[1]:
                y = rms(y, self.matrix(i, after[1]), eps, plus)
            x = x + residual * y
        return self.head(rms(x, self.w(final + ".weight"), eps, plus)) / divide

    def rope_of(self, n_tokens, part=1.0):
        c = self.c
        given = c.get("rope_parameters") or c.get("rope_scaling") or {}
        size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
        theta = c.get("rope_theta") or given.get("rope_theta") or 10000.0
        return scaled_rope(theta, int(size * part), given, c, n_tokens)

    def llama(self, ids):
        rope = self.rope_of(len(ids))
        return self.llama_like(ids, ropes=lambda i: rope)

    def qwen3(self, ids):
        rope = self.rope_of(len(ids))
        return self.llama_like(ids, qk="before", ropes=lambda i: rope)

    def qwen2(self, ids):
        return self.llama(ids)

    def qwen3_moe(self, ids):
        rope = self.rope_of(len(ids))
        return self.llama_like(ids, qk="before", ropes=lambda i: rope, ffn=self.qwen_ffn)

    def qwen_ffn(self, i, h, shared=False):
        c = self.c
        if not shared and (i in c.get("mlp_only_layers", []) or (i + 1) % c.get("decoder_sparse_step", 1)):
            return swiglu(h, *(self.matrix(i, "mlp.%s_proj" % n) for n in ("gate", "up", "down")))
        scores = h @ self.matrix(i, "mlp.gate").T
        chosen = self.choose(scores, c["num_experts_per_tok"])
        p = np.take_along_axis(softmax(scores), chosen, 1)
        if shared or c.get("norm_topk_prob", False):
            p = p / p.sum(1, keepdims=True)
        out = mixture(p, chosen, lambda e, rows: self.expert(i, e, h[rows]))
        if shared:
            y = swiglu(h, *(self.matrix(i, "mlp.shared_expert.%s_proj" % n) for n in ("gate", "up", "down")))
            out = out + sigmoid(h @ self.matrix(i, "mlp.shared_expert_gate").T) * y
        return out

    def expert(self, i, e, x):
        if self.has("layers.%d.mlp.experts.gate_up_proj" % i):
            gate, up = np.split(self.layer(i, "mlp.experts.gate_up_proj")[e], 2)
            return swiglu(x, gate, up, self.layer(i, "mlp.experts.down_proj")[e])
        return swiglu(x, *(self.matrix(i, "mlp.experts.%d.%s_proj" % (e, n)) for n in ("gate", "up", "down")))

    def mistral(self, ids):
        rope, window = self.rope_of(len(ids)), self.c.get("sliding_window") or 0
        return self.llama_like(ids, ropes=lambda i: rope, windows=lambda i: window)

    def ministral3(self, ids):
        given, rope = self.c["rope_parameters"], self.rope_of(len(ids))
        beta, old = given["llama_4_scaling_beta"], given["original_max_position_embeddings"]
        return self.llama_like(ids, ropes=lambda i: rope, q_factor=lambda t: 1 + beta * np.log(1 + t // old))

    def smollm3(self, ids):
        c, rope = self.c, self.rope_of(len(ids))
        step = c.get("no_rope_layer_interval", 4)
        turns = c.get("no_rope_layers") or [int((i + 1) % step != 0) for i in range(c["num_hidden_layers"])]
        return self.llama_like(ids, ropes=lambda i: rope if turns[i] else None)

    def granite(self, ids, ffn=None):
        c, rope = self.c, self.rope_of(len(ids))
        return self.llama_like(
            ids,
            ropes=lambda i: rope,
            scale=c["attention_multiplier"],
            embed=c["embedding_multiplier"],
            residual=c["residual_multiplier"],
            divide=c["logits_scaling"],
            ffn=ffn,
        )

    def granitemoe(self, ids):
        def ffn(i, h):
            scores = h @ self.matrix(i, "block_sparse_moe.router.layer").T
            chosen = self.choose(scores, self.c["num_experts_per_tok"])
            p = softmax(np.take_along_axis(scores, chosen, 1))

            def expert(e, rows):
                gate, up = np.split(self.matrix(i, "block_sparse_moe.input_linear")[e], 2)
                return swiglu(h[rows], gate, up, self.matrix(i, "block_sparse_moe.output_linear")[e])

            return mixture(p, chosen, expert)

        return self.granite(ids, ffn)

    def phi3(self, ids):
        c, rope = self.c, self.rope_of(len(ids), self.c.get("partial_rotary_factor", 1.0))

        def ffn(i, h):
            gate, up = np.split(h @ self.matrix(i, "mlp.gate_up_proj").T, 2, 1)
            return (silu(gate) * up) @ self.matrix(i, "mlp.down_proj").T

        window = c.get("sliding_window") or 0
        return self.llama_like(ids, ropes=lambda i: rope, split=True, ffn=ffn, windows=lambda i: window)

    def olmo(self, ids, window):
        rope = self.rope_of(len(ids))
        return self.llama_like(
            ids,
            qk="whole",
            ropes=lambda i: rope,
            norms=(None, None),
            windows=window,
            after=("post_attention_layernorm", "post_feedforward_layernorm"),
        )

    def olmo2(self, ids):
        return self.olmo(ids, None)

    def olmo3(self, ids):
        c = self.c
        return self.olmo(ids, lambda i: c["sliding_window"] if c["layer_types"][i] == "sliding_attention" else 0)

    def hunyuan_v1_dense(self, ids):
        rope = self.rope_of(len(ids))
        return self.llama_like(ids, qk="after", qk_names=("query_layernorm", "key_layernorm"), ropes=lambda i: rope)

    def gemma3(self, ids):
        c, n = self.c, len(ids)
        given = c.get("rope_parameters")
        if given:
            far = scaled_rope(given["full_attention"]["rope_theta"], c["head_dim"], given["full_attention"], c, n)
            near = plain_rope(given["sliding_attention"]["rope_theta"], c["head_dim"])
        else:
            far = scaled_rope(c["rope_theta"], c["head_dim"], c.get("rope_scaling"), c, n)
            near = plain_rope(c["rope_local_base_freq"], c["head_dim"])
        types, step = c.get("layer_types"), c.get("sliding_window_pattern", 6)
        full = lambda i: types[i] == "full_attention" if types else (i + 1) % step == 0
        return self.llama_like(
            ids,
            qk="before",
            plus=1.0,
            act=gelu,
            embed=math.sqrt(c["hidden_size"]),
            ropes=lambda i: far if full(i) else near,
            windows=lambda i: 0 if full(i) else c["sliding_window"],
            scale=c["query_pre_attn_scalar"] ** -0.5,
            norms=("input_layernorm", "pre_feedforward_layernorm"),
            after=("post_attention_layernorm", "post_feedforward_layernorm"),
        )

    def gpt_oss(self, ids):
        c, rope = self.c, self.rope_of(len(ids))
        limit = c.get("swiglu_limit", 7.0)

        def ffn(i, h):
            scores = self.project(i, "mlp.router", h)
            chosen = self.choose(scores, c["num_experts_per_tok"])
            p = softmax(np.take_along_axis(scores, chosen, 1))

            def expert(e, rows):
                both = (
                    h[rows] @ self.layer(i, "mlp.experts.gate_up_proj")[e]
                    + self.layer(i, "mlp.experts.gate_up_proj_bias")[e]
                )
                gate, up = np.minimum(both[:, ::2], limit), np.clip(both[:, 1::2], -limit, limit)
                y = (up + 1) * gate * sigmoid(1.702 * gate)
                return y @ self.layer(i, "mlp.experts.down_proj")[e] + self.layer(i, "mlp.experts.down_proj_bias")[e]

            return mixture(p, chosen, expert)

        types = c["layer_types"]
        return self.llama_like(
            ids,
            ropes=lambda i: rope,
            sinks=True,
            ffn=ffn,
            windows=lambda i: c["sliding_window"] if types[i] == "sliding_attention" else 0,
        )

    def maple(self, ids):
        c = self.c
        rope = self.rope_of(len(ids), c.get("partial_rotary_factor", 1.0))
        near = lambda i: c["layer_types"][i] == "sliding_attention"

        def ffn(i, h):
            scores = h @ self.matrix(i, "mlp.gate").T
            chosen = self.choose(scores, c["num_experts_per_tok"])
            p = np.take_along_axis(softmax(scores), chosen, 1)
            if c.get("norm_topk_prob", True):
                p = p / (p.sum(1, keepdims=True) + 1e-20)

            def expert(e, rows):
                gate, up, down = (self.matrix(i, "mlp.experts.%d.%s_proj" % (e, n)) for n in ("gate", "up", "down"))
                return (silu(np.minimum(h[rows] @ gate.T, 7)) * np.clip(h[rows] @ up.T, -7, 7)) @ down.T

            return mixture(p, chosen, expert)

        return self.llama_like(
            ids,
            qk="before",
            ropes=lambda i: rope if near(i) else None,
            ffn=ffn,
            windows=lambda i: c["sliding_window"] if near(i) else 0,
            embed_name="word_embeddings",
        )

    # Hybrids.

    def is_full(self, i):
        c = self.c
        if c.get("layer_types"):
            return c["layer_types"][i] == "full_attention"
        if c.get("full_attn_idxs") is not None:
            return i in c["full_attn_idxs"]
        return (i + 1) % c.get("full_attention_interval", 4) == 0

    def gated_attention(self, i, h, rope):
        c = self.c
        heads, kv, size, eps = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["rms_norm_eps"]
        both = self.project(i, "self_attn.q_proj", h).reshape(len(h), heads, 2 * size)
        q, gate = both[..., :size], both[..., size:]
        k, v = (self.project(i, "self_attn.%s_proj" % n, h).reshape(len(h), kv, size) for n in "kv")
        q, k = rms(q, self.matrix(i, "self_attn.q_norm"), eps, 1), rms(k, self.matrix(i, "self_attn.k_norm"), eps, 1)
        y = attend(rope(q), rope(k), v, size**-0.5) * sigmoid(gate)
        return self.project(i, "self_attn.o_proj", y.reshape(len(h), -1))

    def delta_inputs(self, i, h):
        c = self.c
        nk, nv, dk, dv = (
            c["linear_" + n] for n in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
        )
        n, r = len(h), c["linear_num_value_heads"] // c["linear_num_key_heads"]
        at = lambda name: h @ self.matrix(i, "linear_attn." + name).T
        if not self.has("layers.%d.linear_attn.in_proj_qkvz.weight" % i):
            return at("in_proj_qkv"), at("in_proj_z"), at("in_proj_b"), at("in_proj_a")
        per = at("in_proj_qkvz").reshape(n, nk, 2 * dk + 2 * r * dv)
        q, k, v, z = np.split(per, [dk, 2 * dk, 2 * dk + r * dv], 2)
        b, a = np.split(at("in_proj_ba").reshape(n, nk, 2 * r), 2, 2)
        flat = lambda y: y.reshape(n, -1)
        return np.concatenate([flat(q), flat(k), flat(v)], 1), flat(z), flat(b), flat(a)

    def delta_net(self, i, h):
        c, n = self.c, len(h)
        nk, nv, dk, dv = (
            c["linear_" + n] for n in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
        )
        mixed, z, b, a = self.delta_inputs(i, h)
        mixed = silu(convolve(mixed, self.matrix(i, "linear_attn.conv1d")[:, 0]))
        q, k, v = np.split(mixed, [nk * dk, 2 * nk * dk], 1)
        unit = lambda y: y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6)
        q, k = (np.repeat(unit(y.reshape(n, nk, dk)), nv // nk, axis=1) for y in (q, k))
        g = -np.exp(self.layer(i, "linear_attn.A_log")) * np.logaddexp(0, a + self.layer(i, "linear_attn.dt_bias"))
        y = delta_rule(q / math.sqrt(dk), k, v.reshape(n, nv, dv), sigmoid(b), g)
        y = rms(y, self.matrix(i, "linear_attn.norm"), c["rms_norm_eps"]) * silu(z.reshape(n, nv, dv))
        return y.reshape(n, -1) @ self.matrix(i, "linear_attn.out_proj").T

    def qwen_hybrid(self, ids, ffn):
        c, eps = self.c, self.c["rms_norm_eps"]
        part = c.get("partial_rotary_factor") or (c.get("rope_parameters") or {}).get("partial_rotary_factor", 0.25)
        rope = self.rope_of(len(ids), part)
        x = self.w("embed_tokens.weight")[ids]
        for i in range(c["num_hidden_layers"]):
            h = rms(x, self.matrix(i, "input_layernorm"), eps, 1)
            x = x + (self.gated_attention(i, h, rope) if self.is_full(i) else self.delta_net(i, h))
            x = x + ffn(i, rms(x, self.matrix(i, "post_attention_layernorm"), eps, 1))
        return self.head(rms(x, self.w("norm.weight"), eps, 1))

    def qwen3_5(self, ids):
        return self.qwen_hybrid(
            ids, lambda i, h: swiglu(h, *(self.matrix(i, "mlp.%s_proj" % n) for n in ("gate", "up", "down")))
        )

    def qwen3_5_moe(self, ids):
        return self.qwen_hybrid(ids, lambda i, h: self.qwen_ffn(i, h, True))

    def qwen3_next(self, ids):
        return self.qwen3_5_moe(ids)

    def lfm2(self, ids, ffn=None):
        c, eps = self.c, self.c["norm_eps"]
        heads, kv, n = c["num_attention_heads"], c["num_key_value_heads"], len(ids)
        size = c["hidden_size"] // heads
        given = c.get("rope_parameters") or {}
        rope = plain_rope(c.get("rope_theta") or given["rope_theta"], size)
        x = self.w("embed_tokens.weight")[ids]
        for i in range(c["num_hidden_layers"]):
            h = rms(x, self.matrix(i, "operator_norm"), eps)
            if self.is_full(i):
                q, k, v = (self.project(i, "self_attn.%s_proj" % t, h).reshape(n, -1, size) for t in "qkv")
                q, k = (rms(y, self.matrix(i, "self_attn.%s_layernorm" % t), eps) for y, t in ((q, "q"), (k, "k")))
                y = attend(rope(q), rope(k), v, size**-0.5).reshape(n, -1)
                x = x + self.project(i, "self_attn.out_proj", y)
            else:
                b, g, u = np.split(self.project(i, "conv.in_proj", h), 3, 1)
                y = convolve(b * u, self.matrix(i, "conv.conv")[:, 0])
                if self.has("layers.%d.conv.conv.bias" % i):
                    y = y + self.layer(i, "conv.conv.bias")
                x = x + self.project(i, "conv.out_proj", g * y)
            h = rms(x, self.matrix(i, "ffn_norm"), eps)
            dense = lambda p, y: swiglu(y, *(self.matrix(i, "%s.%s" % (p, t)) for t in ("w1", "w3", "w2")))
            x = x + (ffn(i, h, dense) if ffn else dense("feed_forward", h))
        return self.head(rms(x, self.w("embedding_norm.weight"), eps))

    def lfm2_moe(self, ids):
        c = self.c

        def ffn(i, h, dense):
            if i < c["num_dense_layers"]:
                return dense("feed_forward", h)
            s = sigmoid(h @ self.matrix(i, "feed_forward.gate").T)
            chosen = self.choose(
                s + self.layer(i, "feed_forward.expert_bias") if c.get("use_expert_bias") else s,
                c["num_experts_per_tok"],
            )
            p = np.take_along_axis(s, chosen, 1)
            if c.get("norm_topk_prob", True):
                p = p / (p.sum(1, keepdims=True) + 1e-6)
            p = p * c.get("routed_scaling_factor", 1.0)
            return mixture(p, chosen, lambda e, rows: dense("feed_forward.experts.%d" % e, h[rows]))

        return self.lfm2(ids, ffn)

    # Gemma 4.

    def gemma4(self, ids):
        c, n, eps = self.c, len(ids), self.c["rms_norm_eps"]
        hidden, n_layers, heads = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"]
        types = c.get("layer_types") or [
            "full_attention" if (i + 1) % 6 == 0 or i + 1 == n_layers else "sliding_attention" for i in range(n_layers)
        ]
        full = [t == "full_attention" for t in types]
        given = c["rope_parameters"]
        turned = int(given["full_attention"].get("partial_rotary_factor", 1.0) * c["global_head_dim"] / 2)
        f = given["full_attention"]["rope_theta"] ** (-2 * np.arange(c["global_head_dim"] // 2) / c["global_head_dim"])
        far = Rope(np.where(np.arange(len(f)) < turned, f, 0))
        near = plain_rope(given["sliding_attention"]["rope_theta"], c["head_dim"])
        n_own = n_layers - (c.get("num_kv_shared_layers") or 0)
        same_v = bool(c.get("attention_k_eq_v"))
        x = self.w("embed_tokens.weight")[ids] * math.sqrt(hidden)
        per = c.get("hidden_size_per_layer_input") or 0
        if per:
            side = (x @ self.w("per_layer_model_projection.weight").T * hidden**-0.5).reshape(n, n_layers, per)
            side = rms(side, self.w("per_layer_projection_norm.weight"), eps)
            table = self.w("embed_tokens_per_layer.weight")[ids].reshape(n, n_layers, per)
            side = (side + table * math.sqrt(per)) * 2**-0.5
        kept = {}
        for i in range(n_layers):
            norm = lambda name, y: rms(y, self.matrix(i, name), eps)
            size = c["global_head_dim"] if full[i] else c["head_dim"]
            rope = far if full[i] else near
            h = norm("input_layernorm", x)
            q = rope(norm("self_attn.q_norm", (h @ self.matrix(i, "self_attn.q_proj").T).reshape(n, heads, size)))
            if i < n_own:
                raw = (h @ self.matrix(i, "self_attn.k_proj").T).reshape(n, -1, size)
                v = raw if same_v and full[i] else (h @ self.matrix(i, "self_attn.v_proj").T).reshape(n, -1, size)
                kept[full[i]] = rope(norm("self_attn.k_norm", raw)), rms(v, None, eps)
            k, v = kept[full[i]]
            y = attend(q, k, v, 1.0, 0 if full[i] else c["sliding_window"]).reshape(n, -1)
            x = x + norm("post_attention_layernorm", y @ self.matrix(i, "self_attn.o_proj").T)
            y = swiglu(
                norm("pre_feedforward_layernorm", x),
                *(self.matrix(i, "mlp.%s_proj" % t) for t in ("gate", "up", "down")),
                gelu
            )
            if c.get("enable_moe_block"):
                scores = (rms(x, None, eps) * self.layer(i, "router.scale") * hidden**-0.5) @ self.matrix(
                    i, "router.proj"
                ).T
                chosen = self.choose(scores, c["top_k_experts"])
                p = np.take_along_axis(softmax(scores), chosen, 1)
                p = p / p.sum(1, keepdims=True) * self.layer(i, "router.per_expert_scale")[chosen]
                inner = norm("pre_feedforward_layernorm_2", x)

                def expert(e, rows):
                    gate, up = np.split(self.layer(i, "experts.gate_up_proj")[e], 2)
                    return swiglu(inner[rows], gate, up, self.layer(i, "experts.down_proj")[e], gelu)

                y = norm("post_feedforward_layernorm_1", y) + norm(
                    "post_feedforward_layernorm_2", mixture(p, chosen, expert)
                )
            x = x + norm("post_feedforward_layernorm", y)
            if per:
                y = gelu(x @ self.matrix(i, "per_layer_input_gate").T) * side[:, i]
                x = x + norm("post_per_layer_input_norm", y @ self.matrix(i, "per_layer_projection").T)
            x = x * self.layer(i, "layer_scalar")
        logits = self.head(rms(x, self.w("norm.weight"), eps))
        cap = c.get("final_logit_softcapping")
        return cap * np.tanh(logits / cap) if cap else logits
