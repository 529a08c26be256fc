/* SPDX-License-Identifier: MIT */
#include "model/config.h"

#include "kernels/kernels.h"
#include "model/families.h"
#include "model/hadamard.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* Lists the numbers and switches of the configuration that are stored in files: key, offset, type. */
enum field_kind { FIELD_U32, FIELD_U8, FIELD_BOOL, FIELD_F64 };
static const struct field {
    const char *key;
    size_t offset;
    enum field_kind kind;
    bool is_optional; /* the field is 0 if absent, and not written if 0 */
} fields[] = {
    {"n_layers", offsetof(whit_config, n_layers), FIELD_U32},
    {"n_embd", offsetof(whit_config, n_embd), FIELD_U32},
    {"n_ff", offsetof(whit_config, n_ff), FIELD_U32},
    {"n_heads", offsetof(whit_config, n_heads), FIELD_U32},
    {"n_kv_heads", offsetof(whit_config, n_kv_heads), FIELD_U32},
    {"head_dim", offsetof(whit_config, head_dim), FIELD_U32},
    {"rope_dim", offsetof(whit_config, rope_dim), FIELD_U32},
    {"n_vocab", offsetof(whit_config, n_vocab), FIELD_U32},
    {"n_ctx", offsetof(whit_config, n_ctx), FIELD_U32},
    {"window", offsetof(whit_config, window), FIELD_U32},
    {"gate", offsetof(whit_config, gate), FIELD_U8},
    {"tied_head", offsetof(whit_config, tied_head), FIELD_BOOL},
    {"attn_bias", offsetof(whit_config, attn_bias), FIELD_BOOL},
    {"out_bias", offsetof(whit_config, out_bias), FIELD_BOOL},
    {"ffn_bias", offsetof(whit_config, ffn_bias), FIELD_BOOL},
    {"qk_norm", offsetof(whit_config, qk_norm), FIELD_BOOL},
    {"sub_norm", offsetof(whit_config, sub_norm), FIELD_BOOL},
    {"rope_factors", offsetof(whit_config, rope_factors), FIELD_BOOL},
    {"norm_eps", offsetof(whit_config, norm_eps), FIELD_F64},
    {"rope_theta", offsetof(whit_config, rope_theta), FIELD_F64},
    {"embedding_scale", offsetof(whit_config, embedding_scale), FIELD_F64, true},
    {"residual_scale", offsetof(whit_config, residual_scale), FIELD_F64, true},
    {"attention_scale", offsetof(whit_config, attention_scale), FIELD_F64, true},
    {"logit_divisor", offsetof(whit_config, logit_divisor), FIELD_F64, true},
    {"temperature_scale", offsetof(whit_config, temperature_scale), FIELD_F64, true},
    {"temperature_length", offsetof(whit_config, temperature_length), FIELD_U32, true},
    {"logit_cap", offsetof(whit_config, logit_cap), FIELD_F64, true},
    {"norm_after_rope", offsetof(whit_config, norm_after_rope), FIELD_BOOL, true},
    {"attn_gate", offsetof(whit_config, attn_gate), FIELD_BOOL, true},
    {"conv_taps", offsetof(whit_config, conv_taps), FIELD_U32, true},
    {"delta_heads", offsetof(whit_config, delta_heads), FIELD_U32, true},
    {"delta_key_heads", offsetof(whit_config, delta_key_heads), FIELD_U32, true},
    {"delta_key_dim", offsetof(whit_config, delta_key_dim), FIELD_U32, true},
    {"delta_value_dim", offsetof(whit_config, delta_value_dim), FIELD_U32, true},
    {"hadamard_block", offsetof(whit_config, hadamard_block), FIELD_U32, true},
    {"hadamard_matrices", offsetof(whit_config, hadamard_matrices), FIELD_U32, true},
    {"hadamard_signs", offsetof(whit_config, hadamard_signs), FIELD_BOOL, true},
    {"delta_grouped", offsetof(whit_config, delta_grouped), FIELD_BOOL, true},
    {"value_norm", offsetof(whit_config, value_norm), FIELD_BOOL, true},
    {"value_from_key", offsetof(whit_config, value_from_key), FIELD_BOOL, true},
    {"layer_scale", offsetof(whit_config, layer_scale), FIELD_BOOL, true},
    {"n_shared_layers", offsetof(whit_config, n_shared_layers), FIELD_U32, true},
    {"side_width", offsetof(whit_config, side_width), FIELD_U32, true},
    {"n_experts", offsetof(whit_config, n_experts), FIELD_U32, true},
    {"n_experts_used", offsetof(whit_config, n_experts_used), FIELD_U32, true},
    {"n_expert_ff", offsetof(whit_config, n_expert_ff), FIELD_U32, true},
    {"n_shared_ff", offsetof(whit_config, n_shared_ff), FIELD_U32, true},
    {"router_sigmoid", offsetof(whit_config, router_sigmoid), FIELD_BOOL, true},
    {"router_bias", offsetof(whit_config, router_bias), FIELD_BOOL, true},
    {"router_norm", offsetof(whit_config, router_norm), FIELD_BOOL, true},
    {"router_norm_eps", offsetof(whit_config, router_norm_eps), FIELD_F64, true},
    {"router_scale", offsetof(whit_config, router_scale), FIELD_F64, true},
    {"expert_bias", offsetof(whit_config, expert_bias), FIELD_BOOL, true},
    {"gate_limit", offsetof(whit_config, gate_limit), FIELD_F64, true},
    {"attn_sinks", offsetof(whit_config, attn_sinks), FIELD_BOOL, true},
    {"input_norms", offsetof(whit_config, input_norms), FIELD_BOOL, true},
    {"bidirectional", offsetof(whit_config, bidirectional), FIELD_BOOL, true},
    {"n_positions", offsetof(whit_config, n_positions), FIELD_U32, true},
    {"n_token_types", offsetof(whit_config, n_token_types), FIELD_U32, true},
    {"activation", offsetof(whit_config, activation), FIELD_U32, true},
    {"dense_1", offsetof(whit_config, dense_1), FIELD_U32, true},
    {"dense_2", offsetof(whit_config, dense_2), FIELD_U32, true},
    {"n_labels", offsetof(whit_config, n_labels), FIELD_U32, true},
    {"score_dense", offsetof(whit_config, score_dense), FIELD_BOOL, true},
    {"n_draft_layers", offsetof(whit_config, n_draft_layers), FIELD_U32, true},
    {"draft_width", offsetof(whit_config, draft_width), FIELD_U32, true},
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

whit_status whit_config_load(const whit_ndf *file, whit_config *config, whit_error *error)
{
    const whit_table *table = whit_ndf_config(file);
    const char *path = whit_ndf_path(file);
    *config = (whit_config){0};
    const char *family = whit_table_get_string(table, "family");
    if (!family || strlen(family) >= sizeof config->family)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: configuration field 'family' is missing or longer than 31 bytes", path);
    memcpy(config->family, family, strlen(family) + 1);
    for (size_t i = 0; i < N_FIELDS; i++) {
        void *place = (char *)config + fields[i].offset;
        uint64_t number = 0;
        bool found, fits = true;
        if (fields[i].kind == FIELD_F64) {
            found = whit_table_get_f64(table, fields[i].key, place);
        } else if (fields[i].kind == FIELD_BOOL) {
            found = whit_table_get_bool(table, fields[i].key, place);
        } else {
            found = whit_table_get_u64(table, fields[i].key, &number);
            fits = number <= (fields[i].kind == FIELD_U8 ? UINT8_MAX : UINT32_MAX);
            if (fields[i].kind == FIELD_U8)
                *(uint8_t *)place = (uint8_t)number;
            else
                *(uint32_t *)place = (uint32_t)number;
        }
        whit_value any;
        bool is_absent = fields[i].is_optional && !whit_table_get(table, fields[i].key, &any);
        if ((!found && !is_absent) || !fits)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: configuration field '%s' is missing, or not a number of its range", path,
                             fields[i].key);
    }
    config->program = whit_table_get_string(table, "program");
    if (config->program && strlen(config->program) > WHIT_FAMILY_MAX_PROGRAM_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the family's program has more than %zu bytes, the limit", path,
                         WHIT_FAMILY_MAX_PROGRAM_BYTES);
    WHIT_TRY(whit_config_load_layers(table, path, config, error));
    return whit_config_check(config, path, error);
}

static bool is_zero(const whit_config *config, const struct field *field)
{
    const char *place = (const char *)config + field->offset;
    switch (field->kind) {
    case FIELD_U32: return *(const uint32_t *)(const void *)place == 0;
    case FIELD_F64: return *(const double *)(const void *)place == 0;
    default: return *place == 0;
    }
}

double whit_round_to_f32(double x)
{
    /* GCC 12 at -O3 drops two consecutive casts to float and back; through memory it cannot. */
    volatile float rounded = (float)x;
    return rounded;
}

bool whit_config_set_number(whit_config *config, const char *name, double value)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        char *place = (char *)config + fields[i].offset;
        if (!fields[i].is_optional || strcmp(fields[i].key, name) != 0) continue;
        switch (fields[i].kind) {
        case FIELD_F64: *(double *)(void *)place = value; break;
        case FIELD_U32: *(uint32_t *)(void *)place = value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0; break;
        default: *place = value != 0;
        }
        return true;
    }
    return false;
}

bool whit_config_number_at(const whit_config *config, size_t i, whit_config_number *number)
{
    if (i >= N_FIELDS) return false;
    const void *place = (const char *)config + fields[i].offset;
    *number = (whit_config_number){.key = fields[i].key, .is_float = fields[i].kind == FIELD_F64};
    switch (fields[i].kind) {
    case FIELD_U32: number->i = *(const uint32_t *)place; break;
    case FIELD_U8: number->i = *(const uint8_t *)place; break;
    case FIELD_BOOL: number->i = *(const bool *)place; break;
    case FIELD_F64: number->f = *(const double *)place; break;
    }
    return true;
}

void whit_config_save(const whit_config *config, whit_table_builder *table)
{
    whit_table_set_string(table, "family", config->family);
    if (config->program) whit_table_set_string(table, "program", config->program);
    for (size_t i = 0; i < N_FIELDS; i++) {
        const void *place = (const char *)config + fields[i].offset;
        if (fields[i].is_optional && is_zero(config, &fields[i])) continue;
        switch (fields[i].kind) {
        case FIELD_U32: whit_table_set_u64(table, fields[i].key, *(const uint32_t *)place); break;
        case FIELD_U8: whit_table_set_u64(table, fields[i].key, *(const uint8_t *)place); break;
        case FIELD_BOOL: whit_table_set_bool(table, fields[i].key, *(const bool *)place); break;
        case FIELD_F64: whit_table_set_f64(table, fields[i].key, *(const double *)place); break;
        }
    }
    whit_config_save_layers(config, table);
}

bool whit_config_is_extended(const whit_config *config)
{
    bool extended = config->n_kinds || config->n_ropes;
    for (size_t i = 0; i < N_FIELDS; i++) extended |= fields[i].is_optional && !is_zero(config, &fields[i]);
    return extended;
}

whit_status whit_config_check(const whit_config *c, const char *path, whit_error *error)
{
    /* These bounds are far above any model, so that a file cannot demand absurd work. Widths are bounded by the
     * kernels' int32 sums (docs/dev/numerics.md). */
    const struct {
        const char *name;
        uint32_t value, least, most;
    } bounds[] = {
        {"n_layers", c->n_layers, 1, WHIT_MAX_LAYERS},
        {"n_embd", c->n_embd, 1, 65536},
        {"n_ff", c->n_ff, c->n_experts ? 0 : 1, 65536},
        {"n_heads", c->n_heads, 1, 4096},
        {"n_kv_heads", c->n_kv_heads, 1, 4096},
        {"head_dim", c->head_dim, 2, WHIT_KV_MAX_HEAD_DIM},
        {"rope_dim", c->rope_dim, 0, 1024},
        {"n_vocab", c->n_vocab, 1, 1u << 24},
        {"n_ctx", c->n_ctx, 1, 1u << 26},
        {"conv_taps", c->conv_taps, 0, WHIT_CONV_TAPS_MAX},
        {"delta_heads", c->delta_heads, 0, 4096},
        {"delta_key_heads", c->delta_key_heads, 0, 4096},
        {"delta_key_dim", c->delta_key_dim, 0, WHIT_DELTA_DIM_MAX},
        {"delta_value_dim", c->delta_value_dim, 0, WHIT_DELTA_DIM_MAX},
        {"gate", c->gate, 0, WHIT_GATE_COUNT - 1},
        {"n_experts", c->n_experts, 0, WHIT_EXPERTS_MAX},
        {"n_experts_used", c->n_experts_used, c->n_experts ? 1 : 0, c->n_experts},
        {"n_expert_ff", c->n_expert_ff, c->n_experts ? 1 : 0, 65536},
        {"n_shared_ff", c->n_shared_ff, 0, 65536},
        {"n_positions", c->n_positions, 0, 1u << 26},
        {"n_token_types", c->n_token_types, 0, 1024},
        {"activation", c->activation, 0, WHIT_ACTIVATIONS - 1},
        {"dense_1", c->dense_1, 0, 65536},
        {"dense_2", c->dense_2, 0, 65536},
        {"n_labels", c->n_labels, 0, 65536},
        {"n_draft_layers", c->n_draft_layers, 0, c->n_layers < WHIT_MAX_LAYERS},
        {"draft_width", c->draft_width, 0, 65536},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].value < bounds[i].least || bounds[i].value > bounds[i].most)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s is %u, but must be from %u to %u", path, bounds[i].name,
                             bounds[i].value, bounds[i].least, bounds[i].most);
    if (c->n_heads % c->n_kv_heads)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the number of heads, %u, must be a multiple of the number of key/value heads, %u", path,
                         c->n_heads, c->n_kv_heads);
    if (c->delta_heads && (!c->delta_key_heads || c->delta_heads % c->delta_key_heads))
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: the number of a delta rule's value heads, %u, must be a multiple of the number of its key heads, %u",
            path, c->delta_heads, c->delta_key_heads);
    if (c->hadamard_block > WHIT_HADAMARD_BLOCK_MAX || c->hadamard_block == 1 ||
        (c->hadamard_block & (c->hadamard_block - 1)))
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: hadamard_block is %u, but must be 0 or a power of two from 2 to 65536", path,
                         c->hadamard_block);
    if ((uint64_t)c->n_heads * c->head_dim > 65536)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: %u heads of %u have more than 65536 elements together, the limit", path, c->n_heads,
                         c->head_dim);
    if (c->n_shared_layers >= c->n_layers)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: n_shared_layers is %u, but must be below the %u layers", path,
                         c->n_shared_layers, c->n_layers);
    if (c->side_width > 65536 / c->n_layers)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: per-layer embeddings of width %u for %u layers exceed 65536 elements, the limit", path,
                         c->side_width, c->n_layers);
    if (c->rope_dim > c->head_dim || c->rope_dim % 2)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: RoPE cannot rotate %u of %u dimensions: an even number up to the latter is needed", path,
                         c->rope_dim, c->head_dim);
    if (!(c->norm_eps > 0 && c->norm_eps < 1))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: norm_eps is %g, but must be between 0 and 1", path,
                         c->norm_eps);
    if (!(c->rope_theta >= 1 && c->rope_theta < 1e12))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: rope_theta is %g, but must be from 1 to below 1e12", path,
                         c->rope_theta);
    if (!memchr(c->family, 0, sizeof c->family))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the family's name is longer than 31 bytes, the limit", path);
    for (size_t i = 0; i < N_FIELDS; i++)
        if (fields[i].kind == FIELD_F64 && !isfinite(*(const double *)((const char *)c + fields[i].offset)))
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s is not a finite number", path, fields[i].key);
    return whit_config_check_layers(c, path, error);
}
