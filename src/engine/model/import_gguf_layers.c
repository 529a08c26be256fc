/* SPDX-License-Identifier: MIT
 * Reads RoPE tables and layers that differ from the keys of a GGUF file: numbers may be arrays with an element for each
 * layer, windows have a pattern, and scalings are keys and tensors. */
#include "model/import_gguf.h"

#include "kernels/math.h"

#include <math.h>

/* ---- RoPE ------------------------------------------------------------------------------------ */

static bool is_kind(const char *kind, size_t n, const char *wanted)
{
    return kind && strlen(wanted) == n && memcmp(kind, wanted, n) == 0;
}

/* Reads yarn scaling. Like ggml, it multiplies attn_factor by g(1), the magnitude of rope_scaling.h; a log multiplier
 * corresponds to mscale_all_dim in transformers, with an mscale of 1. */
static whit_status read_yarn(const whit_gguf_keys *k, whit_rope *rope)
{
    double attn_factor = 1, all = 0, ext = 1;
    rope->scaling = WHIT_ROPE_YARN;
    rope->rounds = true;
    rope->beta_fast = 32;
    rope->beta_slow = 1;
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.yarn_beta_fast", &rope->beta_fast));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.yarn_beta_slow", &rope->beta_slow));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.attn_factor", &attn_factor));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.yarn_attn_factor", &attn_factor));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.yarn_ext_factor", &ext));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.yarn_log_multiplier", &all));
    if (ext != 1 && ext != -1)
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: yarn with an extrapolation factor of %g is not supported, only with 1 and -1", k->path,
                         ext);
    rope->magnitude = attn_factor * whit_rope_yarn_magnitude(rope->factor, 1);
    if (all != 0) rope->magnitude /= whit_rope_yarn_magnitude(rope->factor, all);
    rope->magnitude = whit_round_to_f32(rope->magnitude);
    return WHIT_OK;
}

static whit_status read_long(const whit_gguf_keys *k, const whit_config *c, whit_rope *rope)
{
    rope->scaling = WHIT_ROPE_LONG;
    rope->factor = whit_round_to_f32(c->n_ctx / rope->length);
    rope->magnitude = 1;
    if (rope->factor > 1)
        rope->magnitude = whit_round_to_f32(sqrt(1 + whit_log_f64(rope->factor) / whit_log_f64(rope->length)));
    return whit_gguf_key_f64(k, "rope.scaling.attn_factor", &rope->magnitude);
}

/* Reads the scaling: long RoPE if its tensors are present, whatever the keys say; else the scaling that keys state,
 * linear (also if a factor has no type) or yarn. Other types are refused and never guessed. If both keys for the factor
 * are present, rope.scaling.factor is used; a linear factor of 0 or 1 means no scaling. */
static whit_status read_scaling(const whit_gguf_keys *k, const whit_config *c, whit_rope *rope)
{
    const char *kind = NULL;
    size_t n = 0;
    double factor = 1;
    WHIT_TRY(whit_gguf_key_string(k, "rope.scaling.type", &kind, &n));
    const bool is_long = whit_gguf_find_tensor(k->gguf, "rope_factors_long.weight") != NULL;
    rope->length = c->n_ctx;
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.original_context_length", &rope->length));
    if (is_long) return read_long(k, c, rope);
    if (is_kind(kind, n, "none")) {
        rope->length = 0;
        return WHIT_OK;
    }
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scale_linear", &factor));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.scaling.factor", &factor));
    if (is_kind(kind, n, "yarn")) {
        rope->factor = factor;
        return read_yarn(k, rope);
    }
    if (kind && !is_kind(kind, n, "linear"))
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: RoPE scaling '%.*s' is not supported: none, linear, yarn and longrope are", k->path,
                         (int)(n < 40 ? n : 40), kind);
    rope->length = 0;
    if (factor == 0 || factor == 1) return WHIT_OK;
    if (!(factor > 0) || factor > 1e6)
        return whit_fail(k->error, WHIT_ERROR_FORMAT,
                         "%s: the RoPE scaling factor is %g, but must be above 0 and at most 1e6", k->path, factor);
    rope->scaling = WHIT_ROPE_LINEAR;
    rope->factor = factor;
    return WHIT_OK;
}

/* Reads one RoPE table for all layers, and a second one for layers with a window if the keys or the architecture say
 * so. */
whit_status whit_import_gguf_ropes(const whit_gguf_keys *k, const whit_gguf_architecture *a, whit_config *c)
{
    whit_rope *ropes = c->ropes;
    double theta = 10000, local = a->local_theta;
    ropes[0].magnitude = ropes[1].magnitude = 1;
    ropes[0].dims = c->head_dim;
    WHIT_TRY(whit_gguf_key_f64(k, "rope.freq_base", &theta));
    WHIT_TRY(whit_gguf_key_f64(k, "rope.freq_base_swa", &local));
    WHIT_TRY(whit_gguf_key_u32(k, "rope.dimension_count", false, &ropes[0].dims));
    if (local == 0 && whit_gguf_key_find(k, "rope.dimension_count_swa")) local = theta;
    ropes[0].theta = theta;
    WHIT_TRY(read_scaling(k, c, &ropes[0]));
    ropes[0].has_factors = whit_gguf_find_tensor(k->gguf, "rope_freqs.weight") != NULL;
    if (ropes[0].has_factors && ropes[0].scaling != WHIT_ROPE_PLAIN)
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: RoPE is scaled by a factor and by the tensor 'rope_freqs.weight'; both at once are not "
                         "supported",
                         k->path);
    c->n_ropes = 1;
    c->rope_theta = theta;
    c->rope_dim = ropes[0].dims;
    c->rope_factors = ropes[0].has_factors;
    const bool is_scaled = ropes[0].scaling != WHIT_ROPE_PLAIN;
    if (c->window && (local != 0 || (a->scales_full_only && is_scaled))) {
        c->n_ropes = 2;
        ropes[1].theta = local != 0 ? local : theta;
        ropes[1].dims = ropes[0].dims;
        WHIT_TRY(whit_gguf_key_u32(k, "rope.dimension_count_swa", false, &ropes[1].dims));
    } else if (ropes[0].scaling <= WHIT_ROPE_LINEAR) {
        c->n_ropes = 0; /* the scalar fields describe the table; the importer stores a linear factor as a tensor of
                         * divisors */
    }
    return WHIT_OK;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Reads a number per layer: from an array, or `fallback` for all layers. */
static whit_status read_per_layer(const whit_gguf_keys *k, const char *suffix, uint32_t fallback, uint32_t n_layers,
                                  uint32_t values[WHIT_MAX_LAYERS])
{
    const whit_gguf_key *key = whit_gguf_key_find(k, suffix);
    for (uint32_t i = 0; i < n_layers; i++) values[i] = fallback;
    if (!key || key->type != WHIT_GGUF_ARRAY) return WHIT_OK; /* not an array: `fallback` is the key's number */
    for (uint32_t i = 0; i < n_layers; i++) {
        int64_t number;
        bool is_bool = key->element_type == WHIT_GGUF_BOOL;
        if (key->n_elems < n_layers || (!is_bool && !whit_gguf_element_i64(key, i, &number)))
            return whit_fail(k->error, WHIT_ERROR_FORMAT,
                             "%s: key '%s.%s' does not have a number for each of %u layers", k->path, k->architecture,
                             suffix, n_layers);
        if (is_bool) number = key->data[i] != 0;
        if (number < 0 || number > UINT32_MAX)
            return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: key '%s.%s' must have numbers from 0 to 2^32 - 1",
                             k->path, k->architecture, suffix);
        values[i] = (uint32_t)number;
    }
    return WHIT_OK;
}

/* Reads which layers have a window: from the file's array, else from the file's period, else from the architecture's
 * period; without a period all layers have one. */
static whit_status read_sliding(const whit_gguf_keys *k, const whit_gguf_architecture *a, const whit_config *c,
                                uint32_t is_sliding[WHIT_MAX_LAYERS])
{
    static const char suffix[] = "attention.sliding_window_pattern";
    const whit_gguf_key *key = whit_gguf_key_find(k, suffix);
    uint32_t interval = a->full_interval;
    if (key && key->type == WHIT_GGUF_ARRAY) return read_per_layer(k, suffix, 0, c->n_layers, is_sliding);
    WHIT_TRY(whit_gguf_key_u32(k, suffix, false, &interval));
    for (uint32_t i = 0; i < c->n_layers; i++) is_sliding[i] = !interval || (i + 1) % interval != 0;
    return WHIT_OK;
}

whit_status whit_import_gguf_layers(const whit_gguf_keys *k, const whit_gguf_architecture *a, whit_config *c)
{
    static const char *const names[] = {"feed_forward_length", "attention.head_count", "attention.head_count_kv"};
    uint32_t numbers[3][WHIT_MAX_LAYERS], is_sliding[WHIT_MAX_LAYERS], window_dim = c->head_dim;
    if (c->n_layers > WHIT_MAX_LAYERS)
        return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: n_layers is %u, but at most %u are supported", k->path,
                         c->n_layers, WHIT_MAX_LAYERS);
    const uint32_t fallbacks[] = {c->n_ff, c->n_heads, c->n_kv_heads};
    for (int i = 0; i < 3; i++) WHIT_TRY(read_per_layer(k, names[i], fallbacks[i], c->n_layers, numbers[i]));
    WHIT_TRY(read_sliding(k, a, c, is_sliding));
    WHIT_TRY(whit_gguf_key_u32(k, "attention.key_length_swa", false, &window_dim));
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const bool slides = c->window && is_sliding[i];
        whit_layer_kind kind = {.rope = slides && c->n_ropes > 1,
                                .n_heads = numbers[1][i],
                                .n_kv_heads = numbers[2][i],
                                .head_dim = slides ? window_dim : c->head_dim,
                                .window = slides ? c->window : 0,
                                .n_ff = numbers[0][i]};
        if (!a->no_rope_interval || (i + 1) % a->no_rope_interval) kind.rope_dim = whit_config_rope(c, kind.rope).dims;
        WHIT_TRY(whit_config_set_kind(c, i, &kind, k->path, k->error));
    }
    whit_config_settle_kinds(c);
    return WHIT_OK;
}
