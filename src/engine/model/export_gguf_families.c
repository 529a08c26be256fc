/* SPDX-License-Identifier: MIT
 * Chooses the architecture of a model's GGUF file, and writes the keys that only some architectures have. A model that
 * no architecture can describe is refused. */
#include "model/export_gguf.h"
#include "model/rope_scaling.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define EXPERT_NUMBERS "n_experts", "n_experts_used", "n_expert_ff", "router_norm", "router_scale"
#define DELTA_NUMBERS                                                                                                  \
    "attn_gate", "conv_taps", "delta_heads", "delta_key_heads", "delta_key_dim", "delta_value_dim", "n_draft_layers"

/* For each architecture of a later family: numbers of the configuration that its name or its keys imply, in addition to
 * the numbers that all architectures have. */
static const struct form {
    const char *architecture;
    uint8_t gate;            /* whit_gate */
    bool has_biases;         /* q, k, v and o have biases */
    bool has_ropes;          /* RoPE tables may differ between kinds of layers, or be scaled */
    const char *numbers[18]; /* names of optional numbers, ended by NULL */
} forms[] = {
    {"qwen3moe", WHIT_GATE_SILU, .numbers = {EXPERT_NUMBERS}},
    {"lfm2", WHIT_GATE_SILU, .numbers = {"conv_taps"}},
    {"lfm2moe", WHIT_GATE_SILU,
     .numbers = {EXPERT_NUMBERS, "conv_taps", "router_sigmoid", "router_bias", "router_norm_eps"}},
    {"qwen35", WHIT_GATE_SILU, .numbers = {DELTA_NUMBERS}},
    {"qwen35moe", WHIT_GATE_SILU, .numbers = {DELTA_NUMBERS, EXPERT_NUMBERS, "n_shared_ff"}},
    {"qwen3next", WHIT_GATE_SILU, .numbers = {DELTA_NUMBERS, EXPERT_NUMBERS, "n_shared_ff", "delta_grouped"}},
    {"gpt-oss", WHIT_GATE_SWISH1, .has_biases = true, .has_ropes = true,
     .numbers = {EXPERT_NUMBERS, "expert_bias", "gate_limit", "attn_sinks"}},
    {"gemma4", WHIT_GATE_GELU, .has_ropes = true,
     .numbers = {EXPERT_NUMBERS, "attention_scale", "logit_cap", "value_norm", "value_from_key", "layer_scale",
                 "n_shared_layers", "side_width"}},
};

static whit_status refuse_model(const whit_source *source, const char *what, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: a model of family %s with %s cannot be exported to GGUF",
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

/* Returns the name of the architecture for a model of a family other than the earliest ones; NULL if no architecture
 * fits. */
static const char *name_extended(const whit_config *c)
{
    const uint8_t mixer = recurrent_mixer(c);
    if (is_of_family(c, "gemma4")) return c->attention_scale == 1 && c->value_norm && c->layer_scale ? "gemma4" : NULL;
    if (strcmp(c->family, "decoder-experts") == 0) {
        if (c->attn_sinks) return c->expert_bias && c->gate_limit == 7 && !c->qk_norm ? "gpt-oss" : NULL;
        return c->qk_norm ? "qwen3moe" : NULL;
    }
    if (!is_of_family(c, "hybrid") || !c->qk_norm) return NULL;
    if (mixer == WHIT_MIXER_SHORT_CONV) return c->n_experts ? "lfm2moe" : "lfm2";
    if (mixer != WHIT_MIXER_DELTA || !c->attn_gate) return NULL;
    if (c->delta_grouped) return "qwen3next";
    return c->n_experts ? "qwen35moe" : "qwen35";
}

/* Returns the form of an architecture if it describes all numbers of the model; otherwise NULL. */
static const struct form *find_form(const whit_config *c, const char *architecture)
{
    size_t at = 0;
    while (at < COUNT(forms) && (!architecture || strcmp(forms[at].architecture, architecture) != 0)) at++;
    if (at == COUNT(forms)) return NULL;
    const struct form *form = &forms[at];
    whit_config rest = *c;
    rest.n_kinds = 0;
    if (form->has_ropes) rest.n_ropes = 0;
    for (size_t i = 0; i < COUNT(form->numbers) && form->numbers[i]; i++)
        whit_config_set_number(&rest, form->numbers[i], 0);
    const bool has_biases = c->attn_bias || c->out_bias;
    return whit_config_is_extended(&rest) || c->gate != form->gate || has_biases != form->has_biases || c->ffn_bias
        ? NULL
        : form;
}

/* Sets *kind to the kind of the first attention layer with a window, or without one, and returns it; NULL if there is
 * no such layer. */
static const whit_layer_kind *find_kind(const whit_config *c, bool has_window, whit_layer_kind *kind)
{
    for (uint32_t i = 0; i < c->n_layers; i++) {
        *kind = whit_config_kind(c, i);
        if (!kind->mixer && (kind->window != 0) == has_window) return kind;
    }
    return NULL;
}

/* Returns whether the architecture's keys can describe the RoPE table of a kind. may_scale: the keys can describe
 * scaling, too. */
static bool is_said(const whit_config *c, const whit_layer_kind *kind, bool may_scale)
{
    const whit_rope rope = whit_config_rope(c, kind->rope);
    if (kind->rope_dim != rope.dims) return false;
    if (rope.scaling == WHIT_ROPE_PLAIN) return !rope.has_factors || may_scale;
    return may_scale && rope.scaling == WHIT_ROPE_YARN && rope.rounds && !rope.has_factors &&
        rope.magnitude == (double)(float)whit_rope_yarn_magnitude(rope.factor, 1);
}

/* Refuses models whose attention the keys cannot describe: keys state heads and RoPE once for layers with a window, and
 * once for layers without one. */
static whit_status check_windows(const whit_source *source, const char *architecture, whit_error *error)
{
    const whit_config *c = &source->config;
    const bool is_gemma = strcmp(architecture, "gemma4") == 0;
    whit_layer_kind of[2];
    const whit_layer_kind *first[2] = {find_kind(c, false, &of[0]), find_kind(c, true, &of[1])};
    if (!first[0] || !is_said(c, first[0], true) || (first[1] && is_gemma && !is_said(c, first[1], false)) ||
        (first[1] && !is_gemma && (first[1]->rope != first[0]->rope || first[1]->head_dim != first[0]->head_dim)))
        return refuse_model(source, "RoPE that GGUF keys cannot describe", error);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const whit_layer_kind k = whit_config_kind(c, i);
        const whit_layer_kind *like = first[k.window != 0];
        if (k.mixer || k.head_dim != like->head_dim || k.rope != like->rope || k.rope_dim != like->rope_dim ||
            k.window != like->window || (!is_gemma && (k.window != 0) != (i % 2 == 0)))
            return refuse_model(source, "layers whose attention differs in more than the window", error);
        if (!is_gemma && (k.n_heads != c->n_heads || k.n_kv_heads != c->n_kv_heads || k.n_ff))
            return refuse_model(source, "layers of several widths", error);
    }
    return WHIT_OK;
}

/* Refuses layers that the keys cannot describe: layers may differ only in their mixer and in whether they have
 * experts. */
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
                         "%s: GGUF cannot store the program that defines this model's computation", source->path);
    *architecture = c->family;
    if (strcmp(c->family, "bitnet") == 0) {
        *architecture = c->gate == WHIT_GATE_RELU2 ? "bitnet-b1.58" : "bitnet";
        return WHIT_OK;
    }
    if (!whit_config_is_extended(c)) {
        if (c->gate == WHIT_GATE_SILU) return WHIT_OK;
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: its gates are not SiLU, which a GGUF file of architecture %s implies", source->path,
                         c->family);
    }
    *architecture = name_extended(c);
    const struct form *form = find_form(c, *architecture);
    if (!form)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: only models of llama, qwen2, qwen3, bitnet, Gemma 4, gpt-oss, and of Qwen's and LFM2's "
                         "hybrids and experts can be exported to GGUF yet, without scaled RoPE in most",
                         source->path);
    if (form->has_ropes) return check_windows(source, *architecture, error);
    if (strcmp(*architecture, "lfm2moe") == 0 && c->router_norm_eps != (double)1e-6f)
        return refuse_model(source, "a constant other than 1e-6 added to the sum of scores", error);
    if (recurrent_mixer(c) == WHIT_MIXER_DELTA && c->delta_key_dim != c->delta_value_dim)
        return refuse_model(source, "keys and values of two sizes in delta rules", error);
    return check_layers(source, *architecture, error);
}

/* ---- keys of the configuration ---------------------------------------------------------------- */

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

static void put_string(const struct putting *p, const char *suffix, const char *text)
{
    char name[128];
    key_name(p, suffix, name);
    whit_gguf_put_string(p->writer, name, text, strlen(text));
}

/* Writes one number if all layers have the same value, else an array with one number per layer. */
static void put_layers(const struct putting *p, const char *suffix, const int32_t values[WHIT_MAX_LAYERS])
{
    const uint32_t n = p->config->n_layers;
    bool are_equal = true;
    for (uint32_t i = 1; i < n; i++) are_equal &= values[i] == values[0];
    if (are_equal)
        put_u32(p, suffix, (uint32_t)values[0]);
    else
        put_array(p, suffix, WHIT_GGUF_I32, values, n);
}

/* Writes widths of feed-forward parts and numbers of heads, which may differ from layer to layer. */
static void put_sizes(const struct putting *p)
{
    const whit_config *c = p->config;
    int32_t n_ff[WHIT_MAX_LAYERS], n_heads[WHIT_MAX_LAYERS], n_kv_heads[WHIT_MAX_LAYERS];
    const bool may_differ = strcmp(p->architecture, "gemma4") == 0,
               has_convolutions = recurrent_mixer(c) == WHIT_MIXER_SHORT_CONV;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const whit_layer_kind k = whit_config_kind(c, i);
        n_ff[i] = (int32_t)(may_differ ? k.n_ff : c->n_ff);
        n_heads[i] = (int32_t)(may_differ ? k.n_heads : c->n_heads);
        n_kv_heads[i] = (int32_t)(may_differ || has_convolutions ? k.n_kv_heads : c->n_kv_heads);
    }
    if (c->n_ff) put_layers(p, "feed_forward_length", n_ff);
    put_layers(p, "attention.head_count", n_heads);
    put_layers(p, "attention.head_count_kv", n_kv_heads);
}

static void put_rope(const struct putting *p, const whit_rope *rope)
{
    put_u32(p, "rope.dimension_count", rope->dims);
    put_f32(p, "rope.freq_base", rope->theta);
    if (rope->scaling != WHIT_ROPE_YARN) return;
    put_string(p, "rope.scaling.type", "yarn");
    put_f32(p, "rope.scaling.factor", rope->factor);
    put_u32(p, "rope.scaling.original_context_length", (uint32_t)rope->length);
    put_f32(p, "rope.scaling.yarn_beta_fast", rope->beta_fast);
    put_f32(p, "rope.scaling.yarn_beta_slow", rope->beta_slow);
}

/* Writes the keys that only Gemma 4 has: which layers have a window, their sizes of heads and their RoPE, the number of
 * layers that read the keys and values of other layers, the width of per-layer embeddings, and the cap of logits. */
static void put_gemma4(const struct putting *p)
{
    const whit_config *c = p->config;
    uint8_t slides[WHIT_MAX_LAYERS];
    whit_layer_kind kind;
    for (uint32_t i = 0; i < c->n_layers; i++) slides[i] = whit_config_kind(c, i).window != 0;
    put_array(p, "attention.sliding_window_pattern", WHIT_GGUF_BOOL, slides, c->n_layers);
    if (find_kind(c, true, &kind)) {
        put_u32(p, "attention.key_length_swa", kind.head_dim);
        put_u32(p, "attention.value_length_swa", kind.head_dim);
        put_u32(p, "rope.dimension_count_swa", kind.rope_dim);
        put_f32(p, "rope.freq_base_swa", whit_config_rope(c, kind.rope).theta);
    }
    put_u32(p, "attention.shared_kv_layers", c->n_shared_layers);
    put_u32(p, "embedding_length_per_layer_input", c->side_width);
    put_f32(p, "final_logit_softcapping", c->logit_cap);
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

/* Writes which layers are recurrent: as the interval n if every n-th layer is not, else as a list. */
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
    /* All RoPE sections have the same position in a text, so any three sections that add up to all pairs give correct
     * results. */
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
    put_u32(&p, "block_count", c->n_layers + c->n_draft_layers);
    if (c->n_draft_layers) put_u32(&p, "nextn_predict_layers", c->n_draft_layers);
    put_sizes(&p);
    if (mixer == WHIT_MIXER_SHORT_CONV) put_u32(&p, "shortconv.l_cache", c->conv_taps);
    whit_layer_kind full, slides;
    const bool has_ropes = c->n_ropes && find_kind(c, false, &full);
    const whit_rope rope = whit_config_rope(c, has_ropes ? full.rope : 0);
    const uint32_t head_dim = has_ropes ? full.head_dim : c->head_dim;
    put_u32(&p, "attention.key_length", head_dim);
    put_u32(&p, "attention.value_length", head_dim);
    if (find_kind(c, true, &slides)) put_u32(&p, "attention.sliding_window", slides.window);
    put_f32(&p, "attention.layer_norm_rms_epsilon", c->norm_eps);
    put_rope(&p, &rope);
    if (strcmp(architecture, "gemma4") == 0) put_gemma4(&p);
    if (mixer == WHIT_MIXER_DELTA) put_delta(&p);
    if (c->n_experts) put_experts(&p);
}
