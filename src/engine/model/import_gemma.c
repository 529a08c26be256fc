/* SPDX-License-Identifier: MIT
 * Reads the properties that only Gemma's files have: the factor of Gemma 3's attention scores, and Gemma 4's layers.
 * Their heads have another size with a window than without one, and some layers share keys and values. */
#include "model/import_gguf.h"
#include "model/import_hf.h"

#include <math.h>
#include <stdio.h>

/* Sets attention_scale to 1 / sqrt(width); to 0, which stands for 1 / sqrt(head_dim), if width is head_dim or 0. */
static void set_score_scale(whit_config *c, uint32_t width)
{
    c->attention_scale = width && width != c->head_dim ? whit_round_to_f32(1 / sqrt(width)) : 0;
}

/* ---- Gemma 3 --------------------------------------------------------------------------------- */

whit_status whit_import_hf_gemma3(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    uint32_t width = 256;
    WHIT_TRY(whit_hf_read_u32(&importer->text, "query_pre_attn_scalar", false, &width, error));
    set_score_scale(c, width);
    return whit_hf_bool(&importer->text, "use_bidirectional_attention", &c->bidirectional, error);
}

/* Sets the factor of attention scores. No key states it: it differs from the default only in the model with 62
 * layers. */
whit_status whit_import_gguf_gemma3(const whit_gguf_keys *k, whit_config *c)
{
    (void)k;
    if (c->n_layers == 62 && c->n_heads) set_score_scale(c, c->n_embd / c->n_heads);
    return WHIT_OK;
}

/* ---- Gemma 4 --------------------------------------------------------------------------------- */

/* Sets the numbers that all Gemma 4 models share: scores are not scaled, v has a norm, and layers have an output
 * scale. */
static void set_gemma4(whit_config *c)
{
    c->attention_scale = 1;
    c->value_norm = true;
    c->layer_scale = true;
}

whit_status whit_import_hf_gemma4(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    uint32_t full_dim = c->head_dim, full_kv_heads = c->n_kv_heads;
    bool is_double = false;
    set_gemma4(c);
    WHIT_TRY(whit_hf_read_u32(config, "global_head_dim", false, &full_dim, error));
    WHIT_TRY(whit_hf_read_u32(config, "num_global_key_value_heads", false, &full_kv_heads, error));
    WHIT_TRY(whit_hf_bool(config, "attention_k_eq_v", &c->value_from_key, error));
    WHIT_TRY(whit_hf_bool(config, "use_double_wide_mlp", &is_double, error));
    WHIT_TRY(whit_hf_read_u32(config, "num_kv_shared_layers", false, &c->n_shared_layers, error));
    WHIT_TRY(whit_hf_read_u32(config, "hidden_size_per_layer_input", false, &c->side_width, error));
    WHIT_TRY(whit_hf_read_float(config, "final_logit_softcapping", &c->logit_cap, error));
    WHIT_TRY(whit_hf_read_u32(&importer->hf->config, "backbone_hidden_size", false, &c->draft_width, error));
    /* an assistant model (draft model) reads only the keys and values of its target */
    if (c->draft_width) c->n_shared_layers = 0;
    whit_layer_kind of[WHIT_MAX_LAYERS];
    for (uint32_t i = 0; i < c->n_layers; i++) {
        of[i] = whit_config_kind(c, i);
        if (!of[i].window) {
            of[i].head_dim = full_dim;
            if (c->value_from_key) of[i].n_kv_heads = full_kv_heads;
        }
        if (is_double && i + c->n_shared_layers >= c->n_layers) of[i].n_ff *= 2;
    }
    WHIT_TRY(whit_import_set_kinds(c, of, config->path, error));
    whit_config_settle_kinds(c);
    return WHIT_OK;
}

/* Returns whether a layer has a matrix for v. Layers without a window may lack it; v is then k. */
static bool has_value(const whit_gguf_keys *k, uint32_t layer)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%u.attn_v.weight", layer);
    return whit_gguf_find_tensor(k->gguf, name) != NULL;
}

whit_status whit_import_gguf_gemma4(const whit_gguf_keys *k, whit_config *c)
{
    set_gemma4(c);
    c->logit_cap = 30;
    WHIT_TRY(whit_gguf_key_f64(k, "final_logit_softcapping", &c->logit_cap));
    WHIT_TRY(whit_gguf_key_u32(k, "attention.shared_kv_layers", false, &c->n_shared_layers));
    WHIT_TRY(whit_gguf_key_u32(k, "embedding_length_per_layer_input", false, &c->side_width));
    WHIT_TRY(whit_gguf_key_u32(k, "embedding_length_out", false, &c->draft_width));
    /* an assistant model (draft model) reads only the keys and values of its target, and its logits have no cap */
    if (c->draft_width) {
        c->n_shared_layers = 0;
        c->logit_cap = 0;
        return WHIT_OK;
    }
    for (uint32_t i = 0; i + c->n_shared_layers < c->n_layers; i++)
        c->value_from_key |= !whit_config_kind(c, i).window && !has_value(k, i);
    return WHIT_OK;
}
