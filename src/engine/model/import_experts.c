/* SPDX-License-Identifier: MIT
 * Reads mixtures of experts from config.json and from keys of GGUF files: their number and width, how a token chooses
 * them, and which layers have them. */
#include "model/import_gguf.h"
#include "model/import_hf.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Sets the width of the feed-forward part to 0 in all layers that are not dense, because experts replace it there. */
static whit_status set_widths(whit_config *c, const bool is_dense[WHIT_MAX_LAYERS], const char *path, whit_error *error)
{
    whit_layer_kind of[WHIT_MAX_LAYERS];
    for (uint32_t i = 0; i < c->n_layers; i++) {
        of[i] = whit_config_kind(c, i);
        if (!is_dense[i]) of[i].n_ff = 0;
    }
    WHIT_TRY(whit_import_set_kinds(c, of, path, error));
    whit_config_settle_kinds(c);
    return WHIT_OK;
}

static whit_status check_numbers(const whit_config *c, const char *path, whit_error *error)
{
    if (!c->n_experts || c->n_experts > WHIT_EXPERTS_MAX || !c->n_experts_used || c->n_experts_used > c->n_experts)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: a token takes %u of %u experts, but 1 to all of at most %u are supported", path,
                         c->n_experts_used, c->n_experts, WHIT_EXPERTS_MAX);
    if (!c->n_expert_ff || c->n_expert_ff > 65536)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: experts have the width %u, but only 1 to 65536 are supported",
                         path, c->n_expert_ff);
    return WHIT_OK;
}

/* ---- Hugging Face folders -------------------------------------------------------------------- */

/* Fields that the functions below read, and fields that matter only in training. */
static const char *const hf_fields[] = {"num_experts",
                                        "num_local_experts",
                                        "num_experts_per_tok",
                                        "experts_per_token",
                                        "top_k_experts",
                                        "moe_intermediate_size",
                                        "shared_expert_intermediate_size",
                                        "norm_topk_prob",
                                        "use_expert_bias",
                                        "routed_scaling_factor",
                                        "swiglu_limit",
                                        "num_dense_layers",
                                        "decoder_sparse_step",
                                        "mlp_only_layers",
                                        "enable_moe_block",
                                        "router_aux_loss_coef",
                                        "router_jitter_noise"};

bool whit_import_hf_is_of_experts(const whit_json *json, uint32_t key)
{
    for (size_t i = 0; i < COUNT(hf_fields); i++)
        if (whit_json_is(json, key, hf_fields[i])) return true;
    return false;
}

/* Reads the first field of `names` that is present; *value is unchanged if all are absent. */
static whit_status read_first(const whit_hf_document *config, const char *const names[3], uint32_t *value,
                              whit_error *error)
{
    for (int i = 0; i < 3 && names[i]; i++)
        if (whit_hf_node(config, names[i]) != WHIT_JSON_NONE)
            return whit_hf_read_u32(config, names[i], false, value, error);
    return WHIT_OK;
}

static whit_status read_dense(const whit_hf_document *config, const whit_config *c, bool is_dense[WHIT_MAX_LAYERS],
                              whit_error *error)
{
    const whit_json *json = &config->json;
    uint32_t n_first = 0, step = 1, list = whit_hf_node(config, "mlp_only_layers");
    WHIT_TRY(whit_hf_read_u32(config, "num_dense_layers", false, &n_first, error));
    WHIT_TRY(whit_hf_read_u32(config, "decoder_sparse_step", false, &step, error));
    if (!step)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: field 'decoder_sparse_step' is 0, but must be at least 1",
                         config->path);
    for (uint32_t i = 0; i < c->n_layers; i++) is_dense[i] = i < n_first || (i + 1) % step != 0;
    if (whit_json_type_of(json, list) != WHIT_JSON_ARRAY) return WHIT_OK;
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at)) {
        int64_t i;
        if (!whit_json_i64(json, at, &i) || i < 0 || i >= c->n_layers)
            return whit_json_fail(json, at, error, "an entry of mlp_only_layers is not a layer");
        is_dense[i] = true;
    }
    return WHIT_OK;
}

whit_status whit_import_hf_experts(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    static const char *const counts[3] = {"num_experts", "num_local_experts"},
                             *const used[3] = {"num_experts_per_tok", "top_k_experts", "experts_per_token"};
    const whit_hf_document *config = &importer->text;
    const whit_hf_experts *e = importer->class->experts;
    bool is_dense[WHIT_MAX_LAYERS] = {false}, has_experts = !e->is_optional;
    WHIT_TRY(whit_hf_bool(config, "enable_moe_block", &has_experts, error));
    if (!has_experts) return WHIT_OK;
    WHIT_TRY(read_first(config, counts, &c->n_experts, error));
    if (!c->n_experts && e->zero_is_dense) return WHIT_OK;
    c->router_sigmoid = e->is_sigmoid;
    c->router_bias = e->has_choice;
    c->router_norm = e->is_normalised || e->always_normalised;
    c->router_norm_eps = e->added;
    c->expert_bias = e->has_bias;
    c->gate_limit = e->gate_limit;
    c->attn_sinks = e->has_sinks;
    if (e->gate) c->gate = e->gate;
    if (e->ff_is_width) c->n_expert_ff = c->n_ff;
    WHIT_TRY(read_first(config, used, &c->n_experts_used, error));
    WHIT_TRY(whit_hf_read_u32(config, "moe_intermediate_size", false, &c->n_expert_ff, error));
    WHIT_TRY(whit_hf_read_u32(config, "shared_expert_intermediate_size", false, &c->n_shared_ff, error));
    if (!e->always_normalised) WHIT_TRY(whit_hf_bool(config, "norm_topk_prob", &c->router_norm, error));
    if (e->has_choice) WHIT_TRY(whit_hf_bool(config, "use_expert_bias", &c->router_bias, error));
    WHIT_TRY(whit_hf_read_float(config, "routed_scaling_factor", &c->router_scale, error));
    WHIT_TRY(whit_hf_read_float(config, "swiglu_limit", &c->gate_limit, error));
    if (c->router_scale == 1) c->router_scale = 0;
    if (!c->router_norm) c->router_norm_eps = 0;
    WHIT_TRY(check_numbers(c, config->path, error));
    if (e->is_beside) return WHIT_OK;
    WHIT_TRY(read_dense(config, c, is_dense, error));
    return set_widths(c, is_dense, config->path, error);
}

/* ---- GGUF files ------------------------------------------------------------------------------ */

static const char *const gguf_keys[] = {
    "expert_used_count",   "expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_gating_func",
    "expert_weights_norm", "expert_weights_scale",       "leading_dense_block_count",         "swiglu_clamp_exp"};

bool whit_import_gguf_is_of_experts(const char *name, size_t n)
{
    for (size_t i = 0; i < COUNT(gguf_keys); i++)
        if (strlen(gguf_keys[i]) == n && memcmp(gguf_keys[i], name, n) == 0) return true;
    return false;
}

/* Reads the limit of gates; refuses files whose limit differs between layers. */
static whit_status read_limit(const whit_gguf_keys *k, double *limit)
{
    const whit_gguf_key *key = whit_gguf_key_find(k, "swiglu_clamp_exp");
    double number;
    for (uint64_t i = 0; key && i < key->n_elems; i++) {
        if (!whit_gguf_element_f64(key, i, &number) || (i && number != *limit))
            return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                             "%s: key '%s.swiglu_clamp_exp' does not give one limit for all layers", k->path,
                             k->architecture);
        *limit = number;
    }
    return WHIT_OK;
}

/* Reads how scores are computed. 1: softmax; 2: sigmoids; 3: softmax of the chosen logits, which equals the softmax of
 * all logits divided by the sum of the chosen scores. */
static whit_status read_gating(const whit_gguf_keys *k, whit_config *c)
{
    uint32_t gating = c->router_sigmoid ? 2 : 1, is_normalised = c->router_norm;
    const whit_gguf_key *norm = whit_gguf_key_find(k, "expert_weights_norm");
    WHIT_TRY(whit_gguf_key_u32(k, "expert_gating_func", false, &gating));
    if (gating < 1 || gating > 3)
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED, "%s: key '%s.expert_gating_func' is %u (1 to 3 are known)",
                         k->path, k->architecture, gating);
    if (norm && norm->type != WHIT_GGUF_BOOL)
        return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: key '%s.expert_weights_norm' must be true or false", k->path,
                         k->architecture);
    if (norm) is_normalised = norm->data[0] != 0;
    c->router_sigmoid = gating == 2;
    c->router_norm = is_normalised || gating == 3;
    return WHIT_OK;
}

whit_status whit_import_gguf_experts(const whit_gguf_keys *k, const whit_gguf_architecture *a, whit_config *c)
{
    bool is_dense[WHIT_MAX_LAYERS] = {false};
    uint32_t n_dense = 0;
    WHIT_TRY(whit_gguf_key_u32(k, "expert_count", false, &c->n_experts));
    if (c->n_experts && !a->experts)
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: mixtures of experts are not supported for architecture '%s'", k->path, k->architecture);
    if (!c->n_experts && a->experts != WHIT_GGUF_EXPERTS) return WHIT_OK;
    c->router_norm = true;
    c->expert_bias = whit_gguf_find_tensor(k->gguf, "blk.0.ffn_gate_exps.bias") != NULL;
    c->attn_sinks = whit_gguf_find_tensor(k->gguf, "blk.0.attn_sinks.weight") != NULL;
    WHIT_TRY(whit_gguf_key_u32(k, "expert_used_count", true, &c->n_experts_used));
    c->n_expert_ff = c->n_ff; /* default if expert_feed_forward_length is absent, as in Granite's files */
    WHIT_TRY(whit_gguf_key_u32(k, "expert_feed_forward_length", false, &c->n_expert_ff));
    WHIT_TRY(whit_gguf_key_u32(k, "expert_shared_feed_forward_length", false, &c->n_shared_ff));
    WHIT_TRY(whit_gguf_key_f64(k, "expert_weights_scale", &c->router_scale));
    WHIT_TRY(whit_gguf_key_u32(k, "leading_dense_block_count", false, &n_dense));
    WHIT_TRY(read_limit(k, &c->gate_limit));
    WHIT_TRY(read_gating(k, c));
    if (c->router_scale == 1) c->router_scale = 0;
    WHIT_TRY(check_numbers(c, k->path, k->error));
    if (a->experts == WHIT_GGUF_EXPERTS_BESIDE) return WHIT_OK;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        char router[48];
        snprintf(router, sizeof router, "blk.%u.ffn_gate_inp.weight", i);
        is_dense[i] =
            i < n_dense || (a->experts == WHIT_GGUF_EXPERTS_BY_LAYER && !whit_gguf_find_tensor(k->gguf, router));
    }
    return set_widths(c, is_dense, k->path, k->error);
}
