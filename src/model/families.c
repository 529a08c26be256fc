/* SPDX-License-Identifier: MIT
 * Model families: each states its forward pass once.
 *
 * Sources: LLaMA (Touvron et al. 2023, section 2.2), Qwen2 (biases on q, k, v), Qwen3 (RMSNorm of
 * each head of q and k before RoPE), BitNet b1.58 2B4T (sub-norms in front of o and down). They
 * differ in four switches of one decoder layer, which the configuration holds. */
#include "model/graph.h"

#include <math.h>

/* x is the residual stream; gives it after one pre-norm decoder layer. */
static whit_ref decoder_layer(whit_graph *g, const whit_config *c, int layer, whit_ref x)
{
    uint32_t q_width = c->n_heads * c->head_dim, kv_width = c->n_kv_heads * c->head_dim;
    bool bias = c->attn_bias;

    whit_ref h = whit_graph_rms_norm(g, layer, "attn_in", x, "attn_norm", c->norm_eps);
    whit_ref q = whit_graph_linear(g, layer, "q_proj", h, "q", bias ? "q_bias" : NULL, q_width);
    whit_ref k = whit_graph_linear(g, layer, "k_proj", h, "k", bias ? "k_bias" : NULL, kv_width);
    whit_ref v = whit_graph_linear(g, layer, "v_proj", h, "v", bias ? "v_bias" : NULL, kv_width);
    if (c->qk_norm) {
        q = whit_graph_head_norm(g, layer, "q_normed", q, "q_norm", c->head_dim, c->norm_eps);
        k = whit_graph_head_norm(g, layer, "k_normed", k, "k_norm", c->head_dim, c->norm_eps);
    }
    q = whit_graph_rope(g, layer, "q_rotated", q, c->head_dim, c->rope_dim);
    k = whit_graph_rope(g, layer, "k_rotated", k, c->head_dim, c->rope_dim);
    whit_ref a = whit_graph_attention(g, layer, "attended", q, k, v, c->head_dim, c->window, 1.0 / sqrt(c->head_dim));
    if (c->sub_norm) a = whit_graph_rms_norm(g, layer, "attn_sub", a, "attn_sub_norm", c->norm_eps);
    a = whit_graph_linear(g, layer, "attn_out", a, "o", c->out_bias ? "o_bias" : NULL, c->n_embd);
    x = whit_graph_add(g, layer, "attn_residual", x, a);

    h = whit_graph_rms_norm(g, layer, "ffn_in", x, "ffn_norm", c->norm_eps);
    whit_ref gate = whit_graph_linear(g, layer, "gate_proj", h, "gate", c->ffn_bias ? "gate_bias" : NULL, c->n_ff);
    whit_ref up = whit_graph_linear(g, layer, "up_proj", h, "up", c->ffn_bias ? "up_bias" : NULL, c->n_ff);
    h = whit_graph_gate(g, layer, "gated", (whit_gate)c->gate, gate, up);
    if (c->sub_norm) h = whit_graph_rms_norm(g, layer, "ffn_sub", h, "ffn_sub_norm", c->norm_eps);
    h = whit_graph_linear(g, layer, "ffn_out", h, "down", c->ffn_bias ? "down_bias" : NULL, c->n_embd);
    return whit_graph_add(g, layer, "ffn_residual", x, h);
}

static void decoder(whit_graph *g, const whit_config *c)
{
    whit_ref x = whit_graph_embed(g, "embedded", "embed", c->n_vocab);
    for (uint32_t layer = 0; layer < c->n_layers && g->status == WHIT_OK; layer++)
        x = decoder_layer(g, c, (int)layer, x);
    x = whit_graph_select(g, "selected", x);
    x = whit_graph_rms_norm(g, -1, "final", x, "final_norm", c->norm_eps);
    whit_ref logits = whit_graph_linear(g, -1, "logits", x, c->tied_head ? "embed" : "head", NULL, c->n_vocab);
    whit_graph_output(g, x, logits);
}

static const struct family {
    const char *name;
    void (*build)(whit_graph *graph, const whit_config *config);
} families[] = {
    {"llama", decoder},
    {"qwen2", decoder},
    {"qwen3", decoder},
    {"bitnet", decoder},
};

static const struct family *find_family(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].name, name) == 0) return &families[i];
    return NULL;
}

bool whit_family_known(const char *family)
{
    return find_family(family) != NULL;
}

whit_status whit_family_build(const whit_config *config, whit_graph *graph)
{
    const struct family *family = find_family(config->family);
    if (!family) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED,
                      "model family '%s' is not known (known: llama, qwen2, qwen3, bitnet)", config->family);
        return graph->status;
    }
    family->build(graph, config);
    return whit_graph_finish(graph);
}
