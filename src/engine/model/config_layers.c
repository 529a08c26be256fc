/* SPDX-License-Identifier: MIT
 * Loads, saves and checks layer kinds and RoPE tables of a configuration. A container's table stores them as arrays of
 * numbers, one row after the other: "kinds" (u64, N_KIND per kind), "kind_of_layer" (one byte per layer), "ropes" (f64,
 * N_ROPE per RoPE table). */
#include "model/config.h"

#include "kernels/kv_block.h"

#include <math.h>
#include <stddef.h>

static const struct kind_field {
    const char *key;
    size_t offset;
} kind_fields[] = {
    {"mixer", offsetof(whit_layer_kind, mixer)},       {"rope", offsetof(whit_layer_kind, rope)},
    {"n_heads", offsetof(whit_layer_kind, n_heads)},   {"n_kv_heads", offsetof(whit_layer_kind, n_kv_heads)},
    {"head_dim", offsetof(whit_layer_kind, head_dim)}, {"rope_dim", offsetof(whit_layer_kind, rope_dim)},
    {"window", offsetof(whit_layer_kind, window)},     {"n_ff", offsetof(whit_layer_kind, n_ff)},
};
enum { N_KIND = sizeof kind_fields / sizeof *kind_fields, N_ROPE = 10 };

/* ---- kinds of layers ------------------------------------------------------------------------- */

/* Returns the last layer with attention (layer 0 if none has it): a draft layer has the kind of this layer. */
static uint32_t find_attention(const whit_config *c)
{
    uint32_t layer = c->n_layers - 1;
    while (layer && c->kinds[c->kind_of_layer[layer]].mixer != WHIT_MIXER_ATTENTION) layer--;
    return layer;
}

whit_layer_kind whit_config_kind(const whit_config *c, uint32_t layer)
{
    if (c->n_kinds && layer == c->n_layers && c->n_draft_layers) layer = find_attention(c);
    if (c->n_kinds) return c->kinds[c->kind_of_layer[layer < c->n_layers ? layer : 0]];
    return (whit_layer_kind){.n_heads = c->n_heads,
                             .n_kv_heads = c->n_kv_heads,
                             .head_dim = c->head_dim,
                             .rope_dim = c->rope_dim,
                             .window = c->window,
                             .n_ff = c->n_ff};
}

static uint32_t *field_at(const whit_layer_kind *kind, size_t i)
{
    return (uint32_t *)(uintptr_t)((const char *)kind + kind_fields[i].offset);
}

bool whit_layer_kind_field(const whit_layer_kind *kind, const char *name, int64_t *value)
{
    for (size_t i = 0; i < N_KIND; i++) {
        if (strcmp(kind_fields[i].key, name) != 0) continue;
        *value = *field_at(kind, i);
        return true;
    }
    return false;
}

whit_status whit_config_set_kind(whit_config *c, uint32_t layer, const whit_layer_kind *kind, const char *path,
                                 whit_error *error)
{
    uint32_t i = 0;
    if (layer >= WHIT_MAX_LAYERS)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the model has more than %u layers, the limit", path,
                         WHIT_MAX_LAYERS);
    while (i < c->n_kinds && memcmp(&c->kinds[i], kind, sizeof *kind) != 0) i++;
    if (i == WHIT_KINDS_MAX)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has more than %u different kinds of layers, the limit", path, WHIT_KINDS_MAX);
    c->kinds[i] = *kind;
    if (i == c->n_kinds) c->n_kinds++;
    c->kind_of_layer[layer] = (uint8_t)i;
    return WHIT_OK;
}

static void grow_to(uint32_t *largest, uint32_t n)
{
    if (n > *largest) *largest = n;
}

void whit_config_settle_kinds(whit_config *c)
{
    const whit_layer_kind *kind = &c->kinds[0];
    if (!c->n_kinds) return;
    c->n_heads = c->n_kv_heads = c->head_dim = c->rope_dim = c->window = c->n_ff = 0;
    for (uint32_t i = 0; i < c->n_kinds; i++) {
        grow_to(&c->n_heads, c->kinds[i].n_heads);
        grow_to(&c->n_kv_heads, c->kinds[i].n_kv_heads);
        grow_to(&c->head_dim, c->kinds[i].head_dim);
        grow_to(&c->rope_dim, c->kinds[i].rope_dim);
        grow_to(&c->window, c->kinds[i].window);
        grow_to(&c->n_ff, c->kinds[i].n_ff);
    }
    if (c->n_kinds != 1 || kind->mixer != WHIT_MIXER_ATTENTION || kind->rope) return;
    c->n_kinds = 0;
    memset(c->kinds, 0, sizeof c->kinds);
    memset(c->kind_of_layer, 0, sizeof c->kind_of_layer);
}

uint32_t whit_config_n_ropes(const whit_config *c)
{
    return c->n_ropes ? c->n_ropes : 1;
}

whit_rope whit_config_rope(const whit_config *c, uint32_t i)
{
    if (c->n_ropes) return c->ropes[i < c->n_ropes ? i : 0];
    return (whit_rope){.theta = c->rope_theta, .dims = c->rope_dim, .has_factors = c->rope_factors, .magnitude = 1};
}

/* ---- loading and saving ---------------------------------------------------------------------- */

/* Converts a number of a row to an integer; returns false unless it is an integer from 0 to `most`. */
static bool as_count(double number, uint32_t most, uint32_t *count)
{
    if (!(number >= 0 && number <= most && number == floor(number))) return false;
    *count = (uint32_t)number;
    return true;
}

static bool read_rope(const double row[N_ROPE], whit_rope *rope)
{
    uint32_t scaling, has_factors, rounds;
    *rope = (whit_rope){.theta = row[0],
                        .factor = row[5],
                        .length = row[6],
                        .beta_fast = row[7],
                        .beta_slow = row[8],
                        .magnitude = row[9]};
    if (!as_count(row[1], UINT32_MAX, &rope->dims) || !as_count(row[2], WHIT_ROPE_SCALING_COUNT - 1, &scaling) ||
        !as_count(row[3], 1, &has_factors) || !as_count(row[4], 1, &rounds))
        return false;
    rope->scaling = (uint8_t)scaling;
    rope->has_factors = has_factors;
    rope->rounds = rounds;
    return true;
}

static whit_status load_kinds(const whit_table *table, const char *path, whit_config *c, whit_error *error)
{
    whit_value kinds, layers;
    bool has_kinds = whit_table_get(table, "kinds", &kinds),
         has_layers = whit_table_get(table, "kind_of_layer", &layers);
    if (!has_kinds && !has_layers) return WHIT_OK;
    if (!has_kinds || !has_layers || kinds.type != WHIT_VALUE_U64_ARRAY || !kinds.count || kinds.count % N_KIND ||
        kinds.count > N_KIND * WHIT_KINDS_MAX || layers.type != WHIT_VALUE_BYTES || layers.count != c->n_layers ||
        layers.count > WHIT_MAX_LAYERS)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: configuration fields 'kinds' and 'kind_of_layer' are not 1 to %u rows of %u numbers and "
                         "a byte for each layer",
                         path, WHIT_KINDS_MAX, (unsigned)N_KIND);
    c->n_kinds = (uint32_t)(kinds.count / N_KIND);
    for (uint32_t i = 0; i < kinds.count; i++) {
        if (kinds.u64s[i] > UINT32_MAX)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: configuration field 'kinds' must have numbers below 2^32",
                             path);
        *field_at(&c->kinds[i / N_KIND], i % N_KIND) = (uint32_t)kinds.u64s[i];
    }
    memcpy(c->kind_of_layer, layers.bytes, layers.count);
    return WHIT_OK;
}

whit_status whit_config_load_layers(const whit_table *table, const char *path, whit_config *c, whit_error *error)
{
    whit_value ropes;
    WHIT_TRY(load_kinds(table, path, c, error));
    if (!whit_table_get(table, "ropes", &ropes)) return WHIT_OK;
    bool is_read = ropes.type == WHIT_VALUE_F64_ARRAY && ropes.count && ropes.count % N_ROPE == 0 &&
        ropes.count <= N_ROPE * WHIT_ROPES_MAX;
    for (uint32_t i = 0; is_read && i < ropes.count / N_ROPE; i++)
        is_read = read_rope(ropes.f64s + (size_t)i * N_ROPE, &c->ropes[i]);
    if (!is_read)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: configuration field 'ropes' is not 1 to %u rows of %u numbers",
                         path, WHIT_ROPES_MAX, (unsigned)N_ROPE);
    c->n_ropes = (uint32_t)(ropes.count / N_ROPE);
    return WHIT_OK;
}

void whit_config_save_layers(const whit_config *c, whit_table_builder *table)
{
    uint64_t kinds[WHIT_KINDS_MAX * N_KIND];
    double ropes[WHIT_ROPES_MAX * N_ROPE];
    for (uint32_t i = 0; i < c->n_kinds * N_KIND; i++) kinds[i] = *field_at(&c->kinds[i / N_KIND], i % N_KIND);
    for (uint32_t i = 0; i < c->n_ropes; i++) {
        const whit_rope *r = &c->ropes[i];
        const double row[N_ROPE] = {r->theta,  r->dims,   r->scaling,   r->has_factors, r->rounds,
                                    r->factor, r->length, r->beta_fast, r->beta_slow,   r->magnitude};
        memcpy(ropes + (size_t)i * N_ROPE, row, sizeof row);
    }
    if (c->n_kinds) {
        whit_table_set_u64_array(table, "kinds", kinds, (size_t)c->n_kinds * N_KIND);
        whit_table_set_bytes(table, "kind_of_layer", c->kind_of_layer, c->n_layers);
    }
    if (c->n_ropes) whit_table_set_f64_array(table, "ropes", ropes, (size_t)c->n_ropes * N_ROPE);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static whit_status check_rope(const whit_rope *r, uint32_t i, const char *path, whit_error *error)
{
    const char *why = NULL;
    if (r->dims > 1024 || r->dims % 2) why = "it cannot rotate that many dimensions";
    if (!(r->magnitude > 0 && r->magnitude < 1e3)) why = "its magnitude is not in (0, 1e3)";
    if (r->scaling >= WHIT_ROPE_SCALING_COUNT) why = "its scaling is not known";
    if (r->scaling != WHIT_ROPE_PLAIN && !(r->factor >= 1e-3 && r->factor < 1e9))
        why = "its factor is not in [1e-3, 1e9)";
    if (r->scaling > WHIT_ROPE_LINEAR && !(r->length >= 1 && r->length < 1e9)) why = "its length is not in [1, 1e9)";
    if (r->scaling == WHIT_ROPE_DYNAMIC && r->dims < 4) why = "it rotates fewer than 4 dimensions";
    if (r->scaling == WHIT_ROPE_YARN &&
        !(r->beta_fast > 0 && r->beta_slow > 0 && r->beta_fast < 1e9 && r->beta_slow < 1e9 && r->theta > 1))
        why = "its ramp needs beta_fast and beta_slow in (0, 1e9) and a theta above 1";
    if (!(r->theta >= 1 && r->theta < 1e12)) why = "its theta is not in [1, 1e12)";
    if (r->scaling == WHIT_ROPE_LONG && r->has_factors)
        why = "its frequencies have two lists of factors, of which one is possible";
    return why ? whit_fail(error, WHIT_ERROR_FORMAT, "%s: RoPE table %u: %s", path, i, why) : WHIT_OK;
}

static whit_status check_kind(const whit_config *c, uint32_t i, const char *path, whit_error *error)
{
    const whit_layer_kind *k = &c->kinds[i];
    const char *why = NULL;
    bool attends = k->mixer == WHIT_MIXER_ATTENTION;
    if (k->mixer >= WHIT_MIXER_COUNT) why = "its mixer is not known";
    if (k->rope >= whit_config_n_ropes(c))
        why = "its RoPE table is missing";
    else if (k->rope_dim && k->rope_dim != whit_config_rope(c, k->rope).dims)
        why = "its RoPE table rotates another number of dimensions than its rope_dim";
    if (k->n_heads > 4096 || k->n_kv_heads > 4096 || k->head_dim > WHIT_KV_MAX_HEAD_DIM || k->n_ff > 65536)
        why = "its heads (limit 4096), their size (1024) or its feed-forward width (65536) exceed the limits";
    else if ((uint64_t)k->n_heads * k->head_dim > 65536)
        why = "its heads exceed 65536 elements together, the limit";
    if (attends && (!k->n_heads || !k->n_kv_heads || k->head_dim < 2 || k->n_heads % k->n_kv_heads))
        why = "it has no heads, heads of fewer than 2 elements, or heads that are no multiple of its key/value heads";
    if (k->rope_dim > k->head_dim) why = "its RoPE rotates more dimensions than a head has";
    return why ? whit_fail(error, WHIT_ERROR_FORMAT, "%s: layer kind %u: %s", path, i, why) : WHIT_OK;
}

whit_status whit_config_check_layers(const whit_config *c, const char *path, whit_error *error)
{
    for (uint32_t i = 0; i < c->n_ropes; i++) WHIT_TRY(check_rope(&c->ropes[i], i, path, error));
    for (uint32_t i = 0; i < c->n_kinds; i++) WHIT_TRY(check_kind(c, i, path, error));
    for (uint32_t i = 0; c->n_kinds && i < c->n_layers; i++)
        if (c->kind_of_layer[i] >= c->n_kinds)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: layer %u has the kind %u, but there are %u kinds, counted from 0", path, i,
                             c->kind_of_layer[i], c->n_kinds);
    return WHIT_OK;
}
