/* SPDX-License-Identifier: MIT
 * Reads in which layers of a config.json properties differ: windows, which transformers states in four ways, and layers
 * without RoPE. */
#include "model/import_hf.h"

#include <stdio.h>

/* Holds the length of the attention window, the layers that have it, and the recurrent layers. */
struct windows {
    uint32_t window;
    uint8_t is_sliding[WHIT_MAX_LAYERS], is_recurrent[WHIT_MAX_LAYERS];
};

/* Reads layer_types, which must have one entry for each layer. */
static whit_status read_types(const struct whit_hf_importer *importer, uint32_t types, const whit_config *c,
                              struct windows *windows, whit_error *error)
{
    const whit_json *json = &importer->text.json;
    const char *recurrent_type = importer->class->recurrent_type;
    uint32_t n = 0;
    for (uint32_t at = whit_json_first(json, types); at != WHIT_JSON_NONE; at = whit_json_next(json, types, at), n++) {
        bool sliding = whit_json_is(json, at, "sliding_attention");
        bool recurrent = recurrent_type && whit_json_is(json, at, recurrent_type);
        if (!sliding && !recurrent && !whit_json_is(json, at, "full_attention"))
            return whit_json_fail(json, at, error, "layers of this type are not supported");
        if (n < c->n_layers) windows->is_sliding[n] = sliding;
        if (n < c->n_layers) windows->is_recurrent[n] = recurrent;
    }
    if (n != c->n_layers)
        return whit_json_fail(json, types, error, "layer_types has %u entries, but the model has %u layers", n,
                              c->n_layers);
    return WHIT_OK;
}

static whit_status read_windows(const struct whit_hf_importer *importer, const whit_config *c, struct windows *windows,
                                whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    const whit_hf_class *class = importer->class;
    bool used = !class->window_switch && (class->window || class->window_always);
    uint32_t from_layer = class->window_switch ? class->window_layers : 0, interval = class->full_interval,
             types = whit_hf_node(config, "layer_types");
    if (whit_hf_node(config, "sliding_window") == WHIT_JSON_NONE) windows->window = class->window;
    WHIT_TRY(whit_hf_read_u32(config, "sliding_window", false, &windows->window, error));
    if (!class->full_interval) WHIT_TRY(whit_hf_bool(config, "use_sliding_window", &used, error));
    if (class->window_switch) WHIT_TRY(whit_hf_read_u32(config, "max_window_layers", false, &from_layer, error));
    if (class->full_interval_field)
        WHIT_TRY(whit_hf_read_u32(config, class->full_interval_field, false, &interval, error));
    for (uint32_t i = 0; i < c->n_layers; i++)
        windows->is_sliding[i] = interval ? (i + 1) % interval != 0 : i >= from_layer;
    for (uint32_t i = 0; class->recurrent_type && i < c->n_layers; i++) {
        windows->is_recurrent[i] = windows->is_sliding[i];
        windows->is_sliding[i] = 0;
    }
    if (class->last_is_full) windows->is_sliding[c->n_layers - 1] = false;
    if (whit_json_type_of(&config->json, types) == WHIT_JSON_ARRAY)
        WHIT_TRY(read_types(importer, types, c, windows, error));
    if (!used || (windows->window >= c->n_ctx && !class->full_interval)) windows->window = 0;
    return WHIT_OK;
}

/* Reads which layers have RoPE into `turns`: 1 with RoPE, 0 without, as in no_rope_layers. All have it if the class has
 * no no_rope_interval. */
static whit_status read_turning(const struct whit_hf_importer *importer, const whit_config *c,
                                uint8_t turns[WHIT_MAX_LAYERS], whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    const whit_json *json = &config->json;
    uint32_t interval = importer->class->no_rope_interval, list = whit_hf_node(config, "no_rope_layers"), n = 0;
    memset(turns, 1, WHIT_MAX_LAYERS);
    if (!interval) return WHIT_OK;
    WHIT_TRY(whit_hf_read_u32(config, "no_rope_layer_interval", false, &interval, error));
    for (uint32_t i = 0; interval && i < c->n_layers; i++) turns[i] = (i + 1) % interval != 0;
    if (whit_json_type_of(json, list) != WHIT_JSON_ARRAY) return WHIT_OK;
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at), n++) {
        int64_t one;
        if (!whit_json_i64(json, at, &one) || (one != 0 && one != 1))
            return whit_json_fail(json, at, error, "an entry of no_rope_layers is neither 0 nor 1");
        if (n < c->n_layers) turns[n] = (uint8_t)one;
    }
    if (n != c->n_layers)
        return whit_json_fail(json, list, error, "no_rope_layers has %u entries, but the model has %u layers", n,
                              c->n_layers);
    return WHIT_OK;
}

whit_status whit_import_hf_layers(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    struct windows windows = {0};
    uint8_t turns[WHIT_MAX_LAYERS];
    if (c->n_layers > WHIT_MAX_LAYERS)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the model has %u layers, but at most %u are supported",
                         importer->text.path, c->n_layers, WHIT_MAX_LAYERS);
    WHIT_TRY(read_windows(importer, c, &windows, error));
    WHIT_TRY(read_turning(importer, c, turns, error));
    for (uint32_t i = 0; i < c->n_layers; i++) {
        whit_layer_kind kind = {.n_heads = c->n_heads,
                                .n_kv_heads = c->n_kv_heads,
                                .head_dim = c->head_dim,
                                .n_ff = c->n_ff,
                                .window = windows.is_sliding[i] ? windows.window : 0};
        if (windows.is_sliding[i] && c->n_ropes > 1) kind.rope = 1;
        if (windows.is_recurrent[i])
            kind = (whit_layer_kind){.mixer = importer->class->recurrent_mixer, .n_ff = c->n_ff};
        else if (turns[i] && (kind.window || !importer->class->no_rope_in_full))
            kind.rope_dim = whit_config_rope(c, kind.rope).dims;
        WHIT_TRY(whit_config_set_kind(c, i, &kind, importer->text.path, error));
    }
    whit_config_settle_kinds(c);
    return WHIT_OK;
}
