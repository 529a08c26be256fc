/* SPDX-License-Identifier: MIT
 * The architecture that a GGUF file of a model has, and the keys that only some architectures have. A model whose
 * numbers no architecture says is refused. */
#include "model/export_gguf.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Numbers of later families that the architectures below say by their keys or by their names. */
static const char *const said[] = {"attn_gate",      "conv_taps",       "delta_heads",     "delta_key_heads",
                                   "delta_key_dim",  "delta_value_dim", "delta_grouped",   "n_experts",
                                   "n_experts_used", "n_expert_ff",     "n_shared_ff",     "router_sigmoid",
                                   "router_bias",    "router_norm",     "router_norm_eps", "router_scale"};

static whit_status refuse_model(const whit_source *source, const char *what, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: a model of family %s with %s has no form in GGUF here",
                     source->path, source->config.family, what);
}

static uint8_t recurrent_mixer(const whit_config *c)
{
    uint32_t mixer = WHIT_MIXER_ATTENTION;
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (whit_config_kind(c, i).mixer) mixer = whit_config_kind(c, i).mixer;
    return (uint8_t)mixer;
}

static bool is_of_family(const whit_config *c, const char *name)
{
    return strncmp(c->family, name, strlen(name)) == 0;
}

/* Returns the architecture's name; NULL if there is no architecture for a model of these families. */
static const char *name_extended(const whit_config *c)
{
    const uint8_t mixer = recurrent_mixer(c);
    if (strcmp(c->family, "decoder-experts") == 0)
        return c->qk_norm && !c->router_sigmoid && !c->router_bias && !c->n_shared_ff ? "qwen3moe" : NULL;
    if (!is_of_family(c, "hybrid") || !c->qk_norm) return NULL;
    if (mixer == WHIT_MIXER_SHORT_CONV && !c->n_shared_ff && !c->attn_gate) return c->n_experts ? "lfm2moe" : "lfm2";
    if (mixer != WHIT_MIXER_DELTA || !c->attn_gate || c->router_sigmoid || c->router_bias) return NULL;
    if (c->delta_grouped) return "qwen3next";
    return c->n_experts ? "qwen35moe" : "qwen35";
}

/* Layers that differ in more than their mixer, or in where experts are, have no keys. */
static whit_status check_layers(const whit_source *source, const char *architecture, whit_error *error)
{
    const whit_config *c = &source->config;
    const bool may_mix = strcmp(architecture, "qwen3next") == 0, begins_dense = strcmp(architecture, "lfm2moe") == 0;
    bool has_experts = false;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const whit_layer_kind k = whit_config_kind(c, i);
        if (!k.mixer &&
            (k.n_heads != c->n_heads || k.n_kv_heads != c->n_kv_heads || k.head_dim != c->head_dim ||
             k.rope_dim != c->rope_dim || k.window))
            return refuse_model(source, "layers whose attention differs", error);
        if (k.n_ff && k.n_ff != c->n_ff) return refuse_model(source, "feed-forward parts of several widths", error);
        if (k.n_ff && c->n_experts && !may_mix && (!begins_dense || has_experts))
            return refuse_model(source, "experts in some layers only", error);
        has_experts |= !k.n_ff;
    }
    return WHIT_OK;
}

whit_status whit_export_architecture(const whit_source *source, const char **architecture, whit_error *error)
{
    const whit_config *c = &source->config;
    if (c->program)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: GGUF has no place for the program that states what this model computes", source->path);
    *architecture = c->family;
    if (strcmp(c->family, "bitnet") == 0) {
        *architecture = c->gate == WHIT_GATE_RELU2 ? "bitnet-b1.58" : "bitnet";
        return WHIT_OK;
    }
    if (c->gate != WHIT_GATE_SILU)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: its gates are not SiLU, which is what a GGUF file of architecture %s means", source->path,
                         c->family);
    if (!whit_config_is_extended(c)) return WHIT_OK;
    *architecture = name_extended(c);
    whit_config rest = *c;
    rest.n_kinds = 0;
    for (size_t i = 0; i < COUNT(said); i++) whit_config_set_number(&rest, said[i], 0);
    if (!*architecture || whit_config_is_extended(&rest) || c->attn_bias || c->out_bias || c->ffn_bias)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: only models of llama, qwen2, qwen3, bitnet, and of Qwen's and LFM2's hybrids and experts "
                         "can be exported to GGUF yet, without scaled RoPE",
                         source->path);
    if (recurrent_mixer(c) == WHIT_MIXER_DELTA && c->delta_key_dim != c->delta_value_dim)
        return refuse_model(source, "keys and values of two sizes in delta rules", error);
    return check_layers(source, *architecture, error);
}

/* ---- keys ------------------------------------------------------------------------------------- */

struct putting {
    whit_gguf_writer *writer;
    const char *architecture;
    const whit_config *config;
};

static void key_name(const struct putting *p, const char *suffix, char name[128])
{
    snprintf(name, 128, "%s.%s", p->architecture, suffix);
}

static void put_u32(const struct putting *p, const char *suffix, uint32_t value)
{
    char name[128];
    key_name(p, suffix, name);
    whit_gguf_put_u32(p->writer, name, value);
}

static void put_f32(const struct putting *p, const char *suffix, double value)
{
    char name[128];
    key_name(p, suffix, name);
    whit_gguf_put_f32(p->writer, name, (float)value);
}

static void put_array(const struct putting *p, const char *suffix, whit_gguf_type type, const void *values, uint64_t n)
{
    char name[128];
    key_name(p, suffix, name);
    whit_gguf_put_array(p->writer, name, type, values, n);
}

static void put_experts(const struct putting *p)
{
    const whit_config *c = p->config;
    uint32_t n_dense = 0;
    put_u32(p, "expert_count", c->n_experts);
    put_u32(p, "expert_used_count", c->n_experts_used);
    put_u32(p, "expert_feed_forward_length", c->n_expert_ff);
    if (c->n_shared_ff) put_u32(p, "expert_shared_feed_forward_length", c->n_shared_ff);
    if (c->router_scale != 0) put_f32(p, "expert_weights_scale", c->router_scale);
    if (c->router_sigmoid) put_u32(p, "expert_gating_func", 2);
    if (!c->router_norm) {
        char name[128];
        key_name(p, "expert_weights_norm", name);
        whit_gguf_put_bool(p->writer, name, false);
    }
    if (strcmp(p->architecture, "lfm2moe") != 0) return;
    while (n_dense < c->n_layers && whit_config_kind(c, n_dense).n_ff) n_dense++;
    put_u32(p, "leading_dense_block_count", n_dense);
}

/* Which layers are recurrent: every n-th is not, or a list. */
static void put_interval(const struct putting *p)
{
    const whit_config *c = p->config;
    uint8_t is_recurrent[WHIT_MAX_LAYERS];
    for (uint32_t i = 0; i < c->n_layers; i++) is_recurrent[i] = whit_config_kind(c, i).mixer != WHIT_MIXER_ATTENTION;
    for (uint32_t n = 1; n <= c->n_layers + 1; n++) {
        bool fits = true;
        for (uint32_t i = 0; i < c->n_layers; i++) fits &= is_recurrent[i] == ((i + 1) % n != 0);
        if (!fits) continue;
        put_u32(p, "full_attention_interval", n);
        return;
    }
    put_array(p, "attention.recurrent_layers", WHIT_GGUF_BOOL, is_recurrent, c->n_layers);
}

static void put_delta(const struct putting *p)
{
    const whit_config *c = p->config;
    /* A text has one position in all sections of RoPE, so that any three of them say the same. */
    const uint32_t pairs = c->rope_dim / 2;
    const int32_t sections[4] = {(int32_t)((pairs + 2) / 3), (int32_t)((pairs + 1) / 3), (int32_t)(pairs / 3), 0};
    if (!c->delta_grouped) put_array(p, "rope.dimension_sections", WHIT_GGUF_I32, sections, COUNT(sections));
    put_u32(p, "ssm.conv_kernel", c->conv_taps);
    put_u32(p, "ssm.state_size", c->delta_key_dim);
    put_u32(p, "ssm.group_count", c->delta_key_heads);
    put_u32(p, "ssm.time_step_rank", c->delta_heads);
    put_u32(p, "ssm.inner_size", c->delta_heads * c->delta_value_dim);
    put_interval(p);
}

void whit_export_put_config(whit_gguf_writer *writer, const char *architecture, const whit_config *c)
{
    const struct putting p = {writer, architecture, c};
    const uint8_t mixer = recurrent_mixer(c);
    put_u32(&p, "vocab_size", c->n_vocab);
    put_u32(&p, "context_length", c->n_ctx);
    put_u32(&p, "embedding_length", c->n_embd);
    put_u32(&p, "block_count", c->n_layers);
    if (c->n_ff) put_u32(&p, "feed_forward_length", c->n_ff);
    put_u32(&p, "attention.head_count", c->n_heads);
    if (mixer == WHIT_MIXER_SHORT_CONV) {
        int32_t heads[WHIT_MAX_LAYERS];
        for (uint32_t i = 0; i < c->n_layers; i++) heads[i] = (int32_t)whit_config_kind(c, i).n_kv_heads;
        put_array(&p, "attention.head_count_kv", WHIT_GGUF_I32, heads, c->n_layers);
        put_u32(&p, "shortconv.l_cache", c->conv_taps);
    } else {
        put_u32(&p, "attention.head_count_kv", c->n_kv_heads);
    }
    put_u32(&p, "attention.key_length", c->head_dim);
    put_u32(&p, "attention.value_length", c->head_dim);
    put_u32(&p, "rope.dimension_count", c->rope_dim);
    if (c->window) put_u32(&p, "attention.sliding_window", c->window);
    put_f32(&p, "attention.layer_norm_rms_epsilon", c->norm_eps);
    put_f32(&p, "rope.freq_base", c->rope_theta);
    if (mixer == WHIT_MIXER_DELTA) put_delta(&p);
    if (c->n_experts) put_experts(&p);
}
