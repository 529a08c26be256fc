/* SPDX-License-Identifier: MIT */
#include "model/import_names.h"

#include "kernels/kernels.h"

#include <stdio.h>

static const whit_import_name *find_in(const whit_import_name *row, const char *theirs)
{
    for (; row && row->theirs; row++)
        if (strcmp(row->theirs, theirs) == 0) return row;
    return NULL;
}

const whit_import_name *whit_import_find_name(const whit_import_name *own, const whit_import_name *common,
                                              const char *theirs)
{
    const whit_import_name *row = find_in(own, theirs);
    return row ? row : find_in(common, theirs);
}

const whit_import_name *whit_import_next_name(const whit_import_name *row)
{
    return row[1].theirs && strcmp(row[0].theirs, row[1].theirs) == 0 ? row + 1 : NULL;
}

bool whit_import_expert(const char *name, char pattern[96], uint32_t *expert)
{
    static const char before[] = "experts.";
    const char *at = strstr(name, before);
    char spelled[16];
    if (!at || sscanf(at += sizeof before - 1, "%6u", expert) != 1) return false;
    const size_t n = (size_t)snprintf(spelled, sizeof spelled, "%u.", *expert);
    if (strncmp(at, spelled, n) != 0) return false;
    return snprintf(pattern, 96, "%.*s*.%s", (int)(at - name), name, at + n) < 96;
}

bool whit_import_is_unused(const whit_config *c, uint32_t layer, const char *ours)
{
    static const char *const names[] = {"k", "v", "k_norm"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) found |= strcmp(names[i], ours) == 0;
    return found && layer < c->n_layers && layer >= c->n_layers - c->n_shared_layers;
}

whit_status whit_import_split(const whit_source *source, whit_source_tensor *tensor, uint32_t layer, uint8_t rows,
                              whit_error *error)
{
    if (rows == WHIT_IMPORT_ALL || rows == WHIT_IMPORT_ROW || rows == WHIT_IMPORT_ONE_EXPERT ||
        rows == WHIT_IMPORT_EXPERTS)
        return WHIT_OK;
    if (rows == WHIT_IMPORT_POSITIONS) {
        const uint32_t n_positions = source->config.n_positions, n_cut = tensor->type.n_rows - n_positions;
        if (tensor->type.n_rows < n_positions || tensor->type.layout == WHIT_LAYOUT_PLAIN)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%s' has %u rows, but the model has %u positions",
                             source->path, tensor->name, tensor->type.n_rows, n_positions);
        tensor->sections[0] = (whit_source_section){.n = n_positions, .begin = n_cut};
        tensor->n_sections = 1;
        tensor->type.n_rows = n_positions;
        return WHIT_OK;
    }
    if (rows == WHIT_IMPORT_COLUMNS_EVEN || rows == WHIT_IMPORT_COLUMNS_ODD) {
        tensor->type.n_cols /= 2;
        tensor->column_begin = rows == WHIT_IMPORT_COLUMNS_ODD;
        tensor->column_step = 2;
        return WHIT_OK;
    }
    const whit_layer_kind kind = whit_config_kind(&source->config, layer);
    const uint32_t q = kind.n_heads * kind.head_dim, kv = kind.n_kv_heads * kind.head_dim, ff = kind.n_ff,
                   n_embd = source->config.n_embd, n_experts = source->config.n_experts,
                   width = source->config.n_expert_ff;
    /* per_key: number of value heads per key head */
    const uint32_t nk = source->config.delta_key_heads, nv = source->config.delta_heads,
                   key = source->config.delta_key_dim, per_key = nk ? nv / nk : 0,
                   value = per_key * source->config.delta_value_dim, fused = 2 * (key + value);
    const struct {
        uint32_t begin, n, total, run, stride;
    } parts[] = {
        [WHIT_IMPORT_Q] = {0, q, q + 2 * kv},
        [WHIT_IMPORT_K] = {q, kv, q + 2 * kv},
        [WHIT_IMPORT_V] = {q + kv, kv, q + 2 * kv},
        [WHIT_IMPORT_GATE] = {0, ff, 2 * ff},
        [WHIT_IMPORT_UP] = {ff, ff, 2 * ff},
        [WHIT_IMPORT_HEAD_FIRST] = {0, q, 2 * q, kind.head_dim, 2 * kind.head_dim},
        [WHIT_IMPORT_HEAD_SECOND] = {kind.head_dim, q, 2 * q, kind.head_dim, 2 * kind.head_dim},
        [WHIT_IMPORT_THIRD_1] = {0, n_embd, 3 * n_embd},
        [WHIT_IMPORT_THIRD_2] = {n_embd, n_embd, 3 * n_embd},
        [WHIT_IMPORT_THIRD_3] = {2 * n_embd, n_embd, 3 * n_embd},
        [WHIT_IMPORT_QKVZ_MIXED] = {0, nk * (2 * key + value), nk * fused},
        [WHIT_IMPORT_QKVZ_Z] = {2 * key + value, nk * value, nk * fused, value, fused},
        [WHIT_IMPORT_BA_BETA] = {0, nv, 2 * nv, per_key, 2 * per_key},
        [WHIT_IMPORT_BA_DECAY] = {per_key, nv, 2 * nv, per_key, 2 * per_key},
        [WHIT_IMPORT_EXPERTS_GATE] = {0, n_experts * width, 2 * n_experts * width, width, 2 * width},
        [WHIT_IMPORT_EXPERTS_UP] = {width, n_experts * width, 2 * n_experts * width, width, 2 * width},
        [WHIT_IMPORT_EXPERTS_EVEN] = {0, n_experts * width, 2 * n_experts * width, 1, 2},
        [WHIT_IMPORT_EXPERTS_ODD] = {1, n_experts * width, 2 * n_experts * width, 1, 2},
    };
    bool is_vector = tensor->type.layout == WHIT_LAYOUT_PLAIN;
    uint32_t *n = is_vector ? &tensor->type.n_cols : &tensor->type.n_rows;
    if (*n != parts[rows].total)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: tensor '%s' is part of a matrix with %u rows where the configuration needs %u",
                         source->path, tensor->name, *n, parts[rows].total);
    *n = parts[rows].n;
    tensor->sections[0] = (whit_source_section){*n, parts[rows].begin, parts[rows].run, parts[rows].stride};
    tensor->n_sections = 1;
    if (rows == WHIT_IMPORT_QKVZ_MIXED) {
        tensor->sections[0] = (whit_source_section){nk * key, 0, key, fused};
        tensor->sections[1] = (whit_source_section){nk * key, key, key, fused};
        tensor->sections[2] = (whit_source_section){nk * value, 2 * key, value, fused};
        tensor->n_sections = 3;
    }
    return WHIT_OK;
}

whit_status whit_import_order_heads(const whit_source *source, whit_source_tensor *tensor, uint8_t order,
                                    whit_error *error)
{
    const whit_config *c = &source->config;
    if (order == WHIT_IMPORT_UNORDERED || c->delta_heads == c->delta_key_heads) return WHIT_OK;
    const uint32_t keys = 2 * c->delta_key_heads * c->delta_key_dim, values = c->delta_heads * c->delta_value_dim;
    const bool by_head = order == WHIT_IMPORT_HEADS, is_plain = tensor->type.layout == WHIT_LAYOUT_PLAIN;
    uint32_t n = values;
    if (by_head)
        n = c->delta_heads;
    else if (order == WHIT_IMPORT_MIXED)
        n = keys + values;
    const uint32_t have = order == WHIT_IMPORT_COLUMNS || is_plain ? tensor->type.n_cols : tensor->type.n_rows;
    const uint32_t n_taps = is_plain && order == WHIT_IMPORT_MIXED ? c->conv_taps : 1;
    if (!c->delta_key_heads || have != n * n_taps)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: tensor '%s' has %u rows or columns, but its %u value heads need %u", source->path,
                         tensor->name, have, c->delta_heads, n * n_taps);
    tensor->order_begin = order == WHIT_IMPORT_MIXED ? keys : 0;
    tensor->order_dim = by_head ? 1 : c->delta_value_dim;
    tensor->order_heads = c->delta_heads;
    tensor->order_key_heads = c->delta_key_heads;
    tensor->orders_columns = order == WHIT_IMPORT_COLUMNS;
    return WHIT_OK;
}

const char *whit_import_layer(const char *name, const char *prefix, uint32_t n_layers, uint32_t *layer)
{
    unsigned number;
    char spelled[64];
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || sscanf(name + n, ".%5u", &number) != 1 || number >= n_layers) return NULL;
    size_t used = (size_t)snprintf(spelled, sizeof spelled, "%s.%u.", prefix, number);
    if (strncmp(name, spelled, used) != 0) return NULL;
    *layer = number;
    return name + used;
}

void whit_import_read_taps(const whit_source_tensor *tensor, const whit_ggml_view *view, float *values)
{
    const uint32_t n_taps = (uint32_t)view->n_cols, n_channels = (uint32_t)view->n_rows;
    float taps[WHIT_CONV_TAPS_MAX];
    for (uint32_t c = 0; c < n_channels; c++) {
        whit_ggml_row_f32(view, whit_source_row(tensor, c), taps);
        for (uint32_t j = 0; j < n_taps; j++) values[j * n_channels + c] = taps[j];
    }
}

whit_status whit_import_set_kinds(whit_config *config, const whit_layer_kind *kinds, const char *path,
                                  whit_error *error)
{
    config->n_kinds = 0;
    for (uint32_t i = 0; i < config->n_layers; i++) WHIT_TRY(whit_config_set_kind(config, i, &kinds[i], path, error));
    return WHIT_OK;
}
