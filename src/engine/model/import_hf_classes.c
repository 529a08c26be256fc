/* SPDX-License-Identifier: MIT
 * Holds the table of known model classes of transformers, with the defaults of their code for absent fields
 * (configuration_llama.py and similar files). A new family needs a row here and tables of its names
 * (docs/dev/new-family.md). */
#include "model/import_hf.h"

#include "model/unknown_family.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- names and numbers of families ------------------------------------------------------------ */

static const whit_import_name phi3_names[] = {
    {"self_attn.qkv_proj.weight", "q", WHIT_IMPORT_Q, .is_projection = true},
    {"self_attn.qkv_proj.weight", "k", WHIT_IMPORT_K, .is_projection = true},
    {"self_attn.qkv_proj.weight", "v", WHIT_IMPORT_V, .is_projection = true},
    {"mlp.gate_up_proj.weight", "gate", WHIT_IMPORT_GATE, .is_projection = true},
    {"mlp.gate_up_proj.weight", "up", WHIT_IMPORT_UP, .is_projection = true},
    {NULL},
};
static const char *const phi3_fields[] = {"partial_rotary_factor", NULL};

static const whit_import_name hunyuan_names[] = {
    {"self_attn.query_layernorm.weight", "q_norm"},
    {"self_attn.key_layernorm.weight", "k_norm"},
    {NULL},
};
/* Lists fields of Hunyuan in addition to the common ones: attention_head_dim repeats head_dim; the class has norms of q
 * and k, whatever use_qk_norm says. */
static const char *const hunyuan_fields[] = {"attention_head_dim", "use_qk_norm", "eod_token_id", NULL};

static const whit_import_name olmo_names[] = {
    {"post_attention_layernorm.weight", "attn_post_norm"},
    {"post_feedforward_layernorm.weight", "ffn_post_norm"},
    {NULL},
};

static const whit_import_name gemma_names[] = {
    {"post_attention_layernorm.weight", "attn_post_norm"},
    {"pre_feedforward_layernorm.weight", "ffn_norm"},
    {"post_feedforward_layernorm.weight", "ffn_post_norm"},
    {NULL},
};
static const whit_import_name gemma4_names[] = {
    {"embed_tokens_per_layer.weight", "side_embed"},
    {"per_layer_model_projection.weight", "side_context_proj"},
    {"per_layer_projection_norm.weight", "side_context_norm"},
    {"post_attention_layernorm.weight", "attn_post_norm"},
    {"pre_feedforward_layernorm.weight", "ffn_norm"},
    {"post_feedforward_layernorm.weight", "ffn_post_norm"},
    {"per_layer_input_gate.weight", "side_gate", .is_projection = true},
    {"per_layer_projection.weight", "side_proj", .is_projection = true},
    {"post_per_layer_input_norm.weight", "side_norm"},
    {"layer_scalar", "layer_scale"},
    {"router.proj.weight", "router"},
    {"router.scale", "router_norm"},
    {"router.per_expert_scale", "expert_scales"},
    {"post_feedforward_layernorm_1.weight", "ffn_dense_post_norm"},
    {"post_feedforward_layernorm_2.weight", "expert_post_norm"},
    {"pre_feedforward_layernorm_2.weight", "expert_norm"},
    {"experts.gate_up_proj", "expert_gate", WHIT_IMPORT_EXPERTS_GATE, .is_projection = true},
    {"experts.gate_up_proj", "expert_up", WHIT_IMPORT_EXPERTS_UP, .is_projection = true},
    {"experts.down_proj", "expert_down", WHIT_IMPORT_EXPERTS, .is_projection = true},
    {NULL},
};
static const whit_import_name gemma4_draft_names[] = {
    {"pre_projection.weight", "draft_in", .is_projection = true},
    {"post_projection.weight", "draft_out", .is_projection = true},
    {"masked_embedding.centroids.weight", NULL}, /* clusters of tokens are ignored: they are a shortcut that mostly
                                                  * makes the same guess */
    {"masked_embedding.token_ordering", NULL},
    {"post_attention_layernorm.weight", "attn_post_norm"},
    {"pre_feedforward_layernorm.weight", "ffn_norm"},
    {"post_feedforward_layernorm.weight", "ffn_post_norm"},
    {"layer_scalar", "layer_scale"},
    {NULL},
};
static const whit_hf_experts gemma4_experts = {.is_optional = true, .is_beside = true, .always_normalised = true};
static const char *const gemma4_fields[] = {"hidden_activation",           "global_head_dim",
                                            "num_global_key_value_heads",  "attention_k_eq_v",
                                            "hidden_size_per_layer_input", "vocab_size_per_layer_input",
                                            "use_double_wide_mlp",         "num_kv_shared_layers",
                                            "final_logit_softcapping",     NULL};
static const char *const gemma4_draft_fields[] = {"backbone_hidden_size", "num_centroids",
                                                  "centroid_intermediate_top_k", "use_ordered_embeddings", NULL};
static const char *const gemma3_fields[] = {"hidden_activation",
                                            "rope_local_base_freq",
                                            "sliding_window_pattern",
                                            "_sliding_window_pattern",
                                            "query_pre_attn_scalar",
                                            "use_bidirectional_attention",
                                            NULL};

static const char *const smollm3_fields[] = {"no_rope_layers", "no_rope_layer_interval", NULL};

static const whit_import_number granite_numbers[] = {
    {"embedding_multiplier", "embedding_scale"},
    {"residual_multiplier", "residual_scale"},
    {"attention_multiplier", "attention_scale"},
    {"logits_scaling", "logit_divisor"},
    {NULL},
};

#define LFM2_NAMES                                                                                                     \
    {"embedding_norm.weight", "final_norm"}, {"operator_norm.weight", "attn_norm"}, {"ffn_norm.weight", "ffn_norm"},   \
        {"feed_forward.w1.weight", "gate", .is_projection = true},                                                     \
        {"feed_forward.w3.weight", "up", .is_projection = true},                                                       \
        {"feed_forward.w2.weight", "down", .is_projection = true}, {"self_attn.q_layernorm.weight", "q_norm"},         \
        {"self_attn.k_layernorm.weight", "k_norm"}, {"self_attn.out_proj.weight", "o", .is_projection = true},         \
        {"conv.in_proj.weight", "conv_b", WHIT_IMPORT_THIRD_1, .is_projection = true},                                 \
        {"conv.in_proj.weight", "conv_c", WHIT_IMPORT_THIRD_2, .is_projection = true},                                 \
        {"conv.in_proj.weight", "conv_x", WHIT_IMPORT_THIRD_3, .is_projection = true},                                 \
        {"conv.conv.weight", "conv", .form = WHIT_IMPORT_TAPS},                                                        \
    {                                                                                                                  \
        "conv.out_proj.weight", "conv_o", .is_projection = true                                                        \
    }
static const whit_import_name lfm2_names[] = {LFM2_NAMES, {NULL}};
/* Lists fields of LFM2 in addition to the common ones. finish_lfm2 reads some of them; the others repeat fields, are
 * used only to initialise weights, or have only one known value. */
static const char *const lfm2_fields[] = {"block_auto_adjust_ff_dim",
                                          "block_dim",
                                          "block_ff_dim",
                                          "block_ffn_dim_multiplier",
                                          "block_mlp_init_scale",
                                          "block_multiple_of",
                                          "block_norm_eps",
                                          "block_out_init_scale",
                                          "block_use_swiglu",
                                          "block_use_xavier_init",
                                          "conv_L_cache",
                                          "conv_dim",
                                          "conv_dim_out",
                                          "conv_use_xavier_init",
                                          "full_attn_idxs",
                                          "norm_eps",
                                          "tie_embedding",
                                          "theta",
                                          "use_pos_enc",
                                          NULL};

/* Computes the width of LFM2's feed-forward part as Lfm2MLP does, and reads which layers have attention from
 * full_attn_idxs if layer_types is absent. */
static whit_status finish_lfm2(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    const whit_json *json = &config->json;
    bool adjusts = !importer->class->experts, is_used = true; /* with experts, widths are used exactly as stated */
    double multiplier = 1;
    uint32_t multiple = 256, taps = 3, list = whit_hf_node(config, "full_attn_idxs");
    WHIT_TRY(whit_hf_read_u32(config, "block_ff_dim", false, &c->n_ff, error));
    WHIT_TRY(whit_hf_bool(config, "block_auto_adjust_ff_dim", &adjusts, error));
    WHIT_TRY(whit_hf_f64(config, "block_ffn_dim_multiplier", &multiplier, error));
    WHIT_TRY(whit_hf_read_u32(config, "block_multiple_of", false, &multiple, error));
    WHIT_TRY(whit_hf_read_u32(config, "conv_L_cache", false, &taps, error));
    WHIT_TRY(whit_hf_read_float(config, "norm_eps", &c->norm_eps, error));
    WHIT_TRY(whit_hf_bool(config, "block_use_swiglu", &is_used, error));
    if (is_used) WHIT_TRY(whit_hf_bool(config, "use_pos_enc", &is_used, error));
    if (!is_used || !multiple || multiple > 65536 || !(multiplier > 0 && multiplier < 16) || c->n_ff > 1u << 20)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: an LFM2 model without SwiGLU or RoPE, or with its block_multiple_of or block_ff_dim, is not supported",
            config->path);
    if (adjusts) {
        c->n_ff = (uint32_t)(multiplier * (double)(2 * (uint64_t)c->n_ff / 3));
        c->n_ff = (c->n_ff + multiple - 1) / multiple * multiple;
    }
    c->conv_taps = taps;
    bool attends[WHIT_MAX_LAYERS] = {false};
    const bool has_list = whit_json_type_of(json, list) == WHIT_JSON_ARRAY &&
        whit_json_type_of(json, whit_hf_node(config, "layer_types")) != WHIT_JSON_ARRAY;
    for (uint32_t at = has_list ? whit_json_first(json, list) : WHIT_JSON_NONE; at != WHIT_JSON_NONE;
         at = whit_json_next(json, list, at)) {
        int64_t i;
        if (!whit_json_i64(json, at, &i) || i < 0 || i >= c->n_layers)
            return whit_json_fail(json, at, error, "an entry of full_attn_idxs is not a layer");
        attends[i] = true;
    }
    whit_layer_kind of[WHIT_MAX_LAYERS];
    for (uint32_t i = 0; i < c->n_layers; i++) {
        of[i] = whit_config_kind(c, i);
        if (has_list && !attends[i]) of[i] = (whit_layer_kind){.mixer = WHIT_MIXER_SHORT_CONV};
        of[i].n_ff = c->n_ff;
    }
    return whit_import_set_kinds(c, of, config->path, error);
}

/* Names of experts' tensors in Qwen's classes: one tensor for each expert, or one for all experts of a layer. */
#define QWEN_EXPERTS                                                                                                   \
    {"mlp.gate.weight", "router"},                                                                                     \
        {"mlp.experts.*.gate_proj.weight", "expert_gate", WHIT_IMPORT_ONE_EXPERT, .is_projection = true},              \
        {"mlp.experts.*.up_proj.weight", "expert_up", WHIT_IMPORT_ONE_EXPERT, .is_projection = true},                  \
        {"mlp.experts.*.down_proj.weight", "expert_down", WHIT_IMPORT_ONE_EXPERT, .is_projection = true},              \
        {"mlp.experts.gate_up_proj", "expert_gate", WHIT_IMPORT_EXPERTS_GATE, .is_projection = true},                  \
        {"mlp.experts.gate_up_proj", "expert_up", WHIT_IMPORT_EXPERTS_UP, .is_projection = true},                      \
        {"mlp.experts.down_proj", "expert_down", WHIT_IMPORT_EXPERTS, .is_projection = true},                          \
        {"mlp.shared_expert.gate_proj.weight", "shared_gate", .is_projection = true},                                  \
        {"mlp.shared_expert.up_proj.weight", "shared_up", .is_projection = true},                                      \
        {"mlp.shared_expert.down_proj.weight", "shared_down", .is_projection = true},                                  \
    {                                                                                                                  \
        "mlp.shared_expert_gate.weight", "shared_weight"                                                               \
    }
static const whit_import_name qwen_expert_names[] = {QWEN_EXPERTS, {NULL}};
static const whit_hf_experts qwen3_experts = {0}, qwen35_experts = {.always_normalised = true},
                             qwen3_next_experts = {.is_normalised = true, .zero_is_dense = true};

static const whit_import_name maple_names[] = {
    QWEN_EXPERTS,
    {"word_embeddings.weight", "embed"},
    {"mlp.switch_mlp.gate_proj.weight", "expert_gate", WHIT_IMPORT_EXPERTS, .is_projection = true},
    {"mlp.switch_mlp.up_proj.weight", "expert_up", WHIT_IMPORT_EXPERTS, .is_projection = true},
    {"mlp.switch_mlp.down_proj.weight", "expert_down", WHIT_IMPORT_EXPERTS, .is_projection = true},
    {"mlp.switch_mlp.gate_proj.row_alpha", NULL}, /* skipped here, because scales of rows are read with their
                                                   * matrices */
    {"mlp.switch_mlp.up_proj.row_alpha", NULL},
    {"mlp.switch_mlp.down_proj.row_alpha", NULL},
    {"self_attn.q_proj.row_alpha", NULL},
    {"self_attn.k_proj.row_alpha", NULL},
    {"self_attn.v_proj.row_alpha", NULL},
    {"self_attn.o_proj.row_alpha", NULL},
    {NULL},
};
static const char *const maple_fields[] = {"partial_rotary_factor", "use_bias", NULL};
static const whit_hf_experts maple_experts = {.is_normalised = true, .gate_limit = 7};

static const whit_import_name gpt_oss_names[] = {
    {"self_attn.sinks", "sinks"},
    {"mlp.router.weight", "router"},
    {"mlp.router.bias", "router_bias"},
    {"mlp.experts.gate_up_proj_blocks", "expert_gate", WHIT_IMPORT_EXPERTS_EVEN, .form = WHIT_IMPORT_MXFP4},
    {"mlp.experts.gate_up_proj_blocks", "expert_up", WHIT_IMPORT_EXPERTS_ODD, .form = WHIT_IMPORT_MXFP4},
    {"mlp.experts.down_proj_blocks", "expert_down", WHIT_IMPORT_EXPERTS, .form = WHIT_IMPORT_MXFP4},
    {"mlp.experts.gate_up_proj", "expert_gate", WHIT_IMPORT_EXPERTS_EVEN, true, .form = WHIT_IMPORT_TRANSPOSED},
    {"mlp.experts.gate_up_proj", "expert_up", WHIT_IMPORT_EXPERTS_ODD, true, .form = WHIT_IMPORT_TRANSPOSED},
    {"mlp.experts.down_proj", "expert_down", WHIT_IMPORT_EXPERTS, true, .form = WHIT_IMPORT_TRANSPOSED},
    {"mlp.experts.gate_up_proj_bias", "expert_gate_bias", WHIT_IMPORT_COLUMNS_EVEN},
    {"mlp.experts.gate_up_proj_bias", "expert_up_bias", WHIT_IMPORT_COLUMNS_ODD},
    {"mlp.experts.down_proj_bias", "expert_down_bias"},
    {"mlp.experts.gate_up_proj_scales", NULL}, /* skipped here, because scales are read with their blocks */
    {"mlp.experts.down_proj_scales", NULL},
    {NULL},
};
static const char *const gpt_oss_fields[] = {"initial_context_length", NULL};
static const whit_hf_experts gpt_oss_experts = {.always_normalised = true,
                                                .ff_is_width = true,
                                                .has_bias = true,
                                                .has_sinks = true,
                                                .gate = WHIT_GATE_SWISH1,
                                                .gate_limit = 7};

static const whit_import_name granite_expert_names[] = {
    {"block_sparse_moe.router.layer.weight", "router"},
    {"block_sparse_moe.input_linear.weight", "expert_gate", WHIT_IMPORT_EXPERTS_GATE, .is_projection = true},
    {"block_sparse_moe.input_linear.weight", "expert_up", WHIT_IMPORT_EXPERTS_UP, .is_projection = true},
    {"block_sparse_moe.output_linear.weight", "expert_down", WHIT_IMPORT_EXPERTS, .is_projection = true},
    {NULL},
};
static const whit_hf_experts granite_experts = {.always_normalised = true, .ff_is_width = true};

static const whit_import_name lfm2_expert_names[] = {
    LFM2_NAMES,
    {"feed_forward.gate.weight", "router"},
    {"feed_forward.expert_bias", "router_choice"},
    {"feed_forward.experts.*.w1.weight", "expert_gate", WHIT_IMPORT_ONE_EXPERT, .is_projection = true},
    {"feed_forward.experts.*.w3.weight", "expert_up", WHIT_IMPORT_ONE_EXPERT, .is_projection = true},
    {"feed_forward.experts.*.w2.weight", "expert_down", WHIT_IMPORT_ONE_EXPERT, .is_projection = true},
    {"feed_forward.experts.gate_up_proj", "expert_gate", WHIT_IMPORT_EXPERTS_GATE, .is_projection = true},
    {"feed_forward.experts.gate_up_proj", "expert_up", WHIT_IMPORT_EXPERTS_UP, .is_projection = true},
    {"feed_forward.experts.down_proj", "expert_down", WHIT_IMPORT_EXPERTS, .is_projection = true},
    {NULL},
};
static const whit_hf_experts lfm2_experts = {
    .is_sigmoid = true, .has_choice = true, .is_normalised = true, .added = 1e-6f};

/* Names that all hybrids of Qwen share. The arguments are orders (whit_import_order), for tensors whose rows or columns
 * are ordered by value heads. */
#define QWEN_HYBRID(mixed_order, heads_order, columns_order)                                                           \
    {"self_attn.q_proj.weight", "q", WHIT_IMPORT_HEAD_FIRST, .is_projection = true},                                   \
        {"self_attn.q_proj.weight", "attn_gate", WHIT_IMPORT_HEAD_SECOND, .is_projection = true},                      \
        {"linear_attn.conv1d.weight", "conv", .form = WHIT_IMPORT_TAPS, .order = (mixed_order)},                       \
        {"linear_attn.A_log", "delta_a", .form = WHIT_IMPORT_NEG_EXP, .order = (heads_order)},                         \
        {"linear_attn.dt_bias", "delta_dt", .order = (heads_order)},                                                   \
        {"linear_attn.norm.weight", "delta_norm", .keeps_value = true},                                                \
        {"mtp.fc.weight", "draft_in", .is_projection = true}, {"mtp.norm.weight", "draft_norm"},                       \
        {"mtp.pre_fc_norm_embedding.weight", "draft_embed_norm"},                                                      \
        {"mtp.pre_fc_norm_hidden.weight", "draft_hidden_norm"},                                                        \
    {                                                                                                                  \
        "linear_attn.out_proj.weight", "delta_o", .is_projection = true, .order = (columns_order)                      \
    }
#define QWEN35_NAMES                                                                                                   \
    QWEN_HYBRID(WHIT_IMPORT_MIXED, WHIT_IMPORT_HEADS, WHIT_IMPORT_COLUMNS),                                            \
        {"linear_attn.in_proj_qkv.weight", "mixed", .is_projection = true, .order = WHIT_IMPORT_MIXED},                \
        {"linear_attn.in_proj_z.weight", "z", .is_projection = true, .order = WHIT_IMPORT_VALUES},                     \
        {"linear_attn.in_proj_b.weight", "beta", .is_projection = true, .order = WHIT_IMPORT_HEADS},                   \
    {                                                                                                                  \
        "linear_attn.in_proj_a.weight", "decay", .is_projection = true, .order = WHIT_IMPORT_HEADS                     \
    }
static const whit_import_name qwen35_names[] = {QWEN35_NAMES, {NULL}},
                              qwen35_expert_names[] = {QWEN35_NAMES, QWEN_EXPERTS, {NULL}};
/* Qwen3-Next fuses its projections by key head, so its value heads stay grouped and need no reordering. */
static const whit_import_name qwen3_next_names[] = {
    QWEN_HYBRID(WHIT_IMPORT_UNORDERED, WHIT_IMPORT_UNORDERED, WHIT_IMPORT_UNORDERED),
    {"linear_attn.in_proj_qkvz.weight", "mixed", WHIT_IMPORT_QKVZ_MIXED, .is_projection = true},
    {"linear_attn.in_proj_qkvz.weight", "z", WHIT_IMPORT_QKVZ_Z, .is_projection = true},
    {"linear_attn.in_proj_ba.weight", "beta", WHIT_IMPORT_BA_BETA, .is_projection = true},
    {"linear_attn.in_proj_ba.weight", "decay", WHIT_IMPORT_BA_DECAY, .is_projection = true},
    QWEN_EXPERTS,
    {NULL},
};
static const char *const qwen35_fields[] = {
    "attn_output_gate",      "full_attention_interval",      "linear_conv_kernel_dim", "linear_key_head_dim",
    "linear_num_key_heads",  "linear_num_value_heads",       "linear_value_head_dim",  "mamba_ssm_dtype",
    "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "partial_rotary_factor",  NULL};

static whit_status finish_qwen35(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    c->attn_gate = true;
    c->conv_taps = 4;
    c->delta_heads = 32;
    c->delta_key_heads = 16;
    c->delta_key_dim = c->delta_value_dim = 128;
    WHIT_TRY(whit_hf_bool(config, "attn_output_gate", &c->attn_gate, error));
    WHIT_TRY(whit_hf_read_u32(config, "linear_conv_kernel_dim", false, &c->conv_taps, error));
    WHIT_TRY(whit_hf_read_u32(config, "linear_num_value_heads", false, &c->delta_heads, error));
    WHIT_TRY(whit_hf_read_u32(config, "linear_num_key_heads", false, &c->delta_key_heads, error));
    WHIT_TRY(whit_hf_read_u32(config, "linear_key_head_dim", false, &c->delta_key_dim, error));
    return whit_hf_read_u32(config, "linear_value_head_dim", false, &c->delta_value_dim, error);
}

static whit_status finish_qwen3_next(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    WHIT_TRY(finish_qwen35(importer, c, error));
    c->delta_grouped = c->delta_heads != c->delta_key_heads;
    return WHIT_OK;
}

/* ---- encoders --------------------------------------------------------------------------------- */

#define ENCODER_NAMES                                                                                                  \
    {"embeddings.word_embeddings.weight", "embed"},                                                                    \
        {"embeddings.position_embeddings.weight", "position_embed", WHIT_IMPORT_POSITIONS},                            \
        {"embeddings.token_type_embeddings.weight", "type_embed"}, {"embeddings.position_ids", NULL},                  \
        {"embeddings.LayerNorm.weight", "embed_norm"}, {"embeddings.LayerNorm.bias", "embed_norm_bias"},               \
        {"embeddings.LayerNorm.gamma", "embed_norm"}, {"embeddings.LayerNorm.beta", "embed_norm_bias"},                \
        {"attention.self.query.weight", "q", .is_projection = true}, {"attention.self.query.bias", "q_bias"},          \
        {"attention.self.key.weight", "k", .is_projection = true}, {"attention.self.key.bias", "k_bias"},              \
        {"attention.self.value.weight", "v", .is_projection = true}, {"attention.self.value.bias", "v_bias"},          \
        {"attention.output.dense.weight", "o", .is_projection = true}, {"attention.output.dense.bias", "o_bias"},      \
        {"attention.output.LayerNorm.weight", "attn_post_norm"},                                                       \
        {"attention.output.LayerNorm.bias", "attn_post_norm_bias"},                                                    \
        {"attention.output.LayerNorm.gamma", "attn_post_norm"},                                                        \
        {"attention.output.LayerNorm.beta", "attn_post_norm_bias"},                                                    \
        {"intermediate.dense.weight", "up", .is_projection = true}, {"intermediate.dense.bias", "up_bias"},            \
        {"output.dense.weight", "down", .is_projection = true}, {"output.dense.bias", "down_bias"},                    \
        {"output.LayerNorm.weight", "ffn_post_norm"}, {"output.LayerNorm.bias", "ffn_post_norm_bias"},                 \
        {"output.LayerNorm.gamma", "ffn_post_norm"},                                                                   \
    {                                                                                                                  \
        "output.LayerNorm.beta", "ffn_post_norm_bias"                                                                  \
    }
static const whit_import_name encoder_names[] = {
    ENCODER_NAMES,
    {"pooler.dense.weight", NULL}, /* skipped, because only a classification head reads it */
    {"pooler.dense.bias", NULL},
    {NULL},
};
static const whit_import_name bert_score_names[] = {
    ENCODER_NAMES,
    {"pooler.dense.weight", "score_dense"},
    {"pooler.dense.bias", "score_dense_bias"},
    {"classifier.weight", "score"},
    {"classifier.bias", "score_bias"},
    {NULL},
};
static const whit_import_name roberta_score_names[] = {
    ENCODER_NAMES,
    {"pooler.dense.weight", NULL},
    {"pooler.dense.bias", NULL},
    {"classifier.dense.weight", "score_dense"},
    {"classifier.dense.bias", "score_dense_bias"},
    {"classifier.out_proj.weight", "score"},
    {"classifier.out_proj.bias", "score_bias"},
    {NULL},
};
static const char *const encoder_fields[] = {"attention_probs_dropout_prob",
                                             "classifier_dropout",
                                             "directionality",
                                             "layer_norm_eps",
                                             "pooler_fc_size",
                                             "pooler_num_attention_heads",
                                             "pooler_num_fc_layers",
                                             "pooler_size_per_head",
                                             "pooler_type",
                                             "position_embedding_type",
                                             "sbert_ce_default_activation_function",
                                             "sentence_transformers",
                                             "type_vocab_size",
                                             NULL};

/* ---- classes ---------------------------------------------------------------------------------- */

/* Members that all encoder classes have in common. */
#define ENCODER(type_name, prefix_text, name_rows)                                                                     \
    .type = (type_name), .family = "bert", .tied = true, .prefix = (prefix_text), .layers = "encoder.layer",           \
    .n_ctx = 512, .rope_theta = 10000, .names = (name_rows), .fields = encoder_fields, .finish = whit_import_hf_bert

/* Sets the members of a class: name, model_type, family, act, norm_eps, rope_theta, n_ctx. */
#define CLASS(class_name, type_name, family_name, activation, eps, theta, context)                                     \
    .name = (class_name), .type = (type_name), .family = (family_name), .act = (activation), .norm_eps = (eps),        \
    .rope_theta = (theta), .n_ctx = (context)

/* clang-format off */
static const whit_hf_class classes[] = {
    {CLASS("Llama", "llama", "llama", "silu", 1e-6, 10000, 2048)},
    {CLASS("Mistral", "mistral", "llama", "silu", 1e-6, 10000, 131072), .n_kv_heads = 8, .window = 4096},
    {CLASS("Qwen2", "qwen2", "qwen2", "silu", 1e-6, 10000, 32768), .qkv_bias = true, .n_kv_heads = 32, .window = 4096,
     .window_switch = true, .window_layers = 28},
    {CLASS("Qwen3", "qwen3", "qwen3", "silu", 1e-6, 10000, 32768), .qk_norm = true, .n_kv_heads = 32, .head_dim = 128,
     .window = 4096, .window_switch = true, .window_layers = 28},
    {CLASS("Qwen3Moe", "qwen3_moe", "qwen3", "silu", 1e-6, 10000, 32768), .qk_norm = true, .n_kv_heads = 4,
     .window = 4096, .window_switch = true, .window_layers = 28, .names = qwen_expert_names,
     .experts = &qwen3_experts},
    {CLASS("BitNet", "bitnet", "bitnet", "relu2", 1e-5, 500000, 2048), .bitnet = true, .sub_norm = true},
    /* 1bitLLM's own code (its checkpoints have model_type "llama") quantises in BitLinear on every pass. */
    {CLASS("Bitnet", "bitnet", "bitnet", "silu", 1e-6, 10000, 2048), .bitnet = true, .online = true,
     .sub_norm = true},
    {CLASS("Ministral", "ministral", "llama", "silu", 1e-6, 10000, 131072), .n_kv_heads = 8, .window = 4096},
    {CLASS("Ministral3", "ministral3", "llama", "silu", 1e-5, 1000000, 262144), .is_nested = true, .n_kv_heads = 8},
    {CLASS("SmolLM3", "smollm3", "llama", "silu", 1e-6, 2000000, 32768), .tied = true, .n_kv_heads = 4,
     .window_switch = true, .no_rope_interval = 4, .fields = smollm3_fields},
    {CLASS("Granite", "granite", "llama", "silu", 1e-6, 10000, 2048), .numbers = granite_numbers},
    {CLASS("GraniteMoe", "granitemoe", "llama", "silu", 1e-6, 10000, 2048), .names = granite_expert_names,
     .numbers = granite_numbers, .experts = &granite_experts},
    {CLASS("Maple", "maple", "llama", "silu", 1e-6, 10000, 32768), .qk_norm = true, .rotary_share = 1,
     .no_rope_in_full = true, .window = 512, .full_interval = 4, .names = maple_names, .fields = maple_fields,
     .experts = &maple_experts},
    {CLASS("GptOss", "gpt_oss", "llama", "silu", 1e-5, 150000, 131072), .n_kv_heads = 8, .head_dim = 64,
     .window = 128, .full_interval = 2, .names = gpt_oss_names, .fields = gpt_oss_fields,
     .experts = &gpt_oss_experts},
    {CLASS("Phi3", "phi3", "llama", "silu", 1e-5, 10000, 4096), .rotary_share = 1, .window_always = true,
     .names = phi3_names, .fields = phi3_fields},
    {CLASS("Olmo2", "olmo2", "olmo2", "silu", 1e-5, 10000, 2048), .names = olmo_names},
    {CLASS("Olmo3", "olmo3", "olmo2", "silu", 1e-5, 500000, 2048), .window = 4096, .full_interval = 4,
     .scales_full_only = true, .names = olmo_names},
    {CLASS("Gemma3", "gemma3_text", "gemma3", "gelu_pytorch_tanh", 1e-6, 1000000, 131072), .is_nested = true,
     .tied = true, .norms_add_one = true, .local_theta = 10000, .n_kv_heads = 4, .head_dim = 256, .window = 4096,
     .full_interval = 6, .full_interval_field = "sliding_window_pattern", .names = gemma_names,
     .fields = gemma3_fields, .finish = whit_import_hf_gemma3},
    {CLASS("Gemma4", "gemma4_text", "gemma4", "gelu_pytorch_tanh", 1e-6, 1000000, 131072), .is_nested = true,
     .tied = true, .local_theta = 10000, .n_kv_heads = 4, .head_dim = 256, .window = 512, .full_interval = 6,
     .last_is_full = true, .names = gemma4_names, .fields = gemma4_fields, .experts = &gemma4_experts,
     .finish = whit_import_hf_gemma4},
    {CLASS("Gemma4Assistant", "gemma4_assistant", "gemma4", "gelu_pytorch_tanh", 1e-6, 1000000, 131072),
     .is_nested = true, .tied = true, .local_theta = 10000, .n_kv_heads = 1, .head_dim = 256, .window = 512,
     .full_interval = 6, .last_is_full = true, .names = gemma4_draft_names, .fields = gemma4_fields,
     .outer_fields = gemma4_draft_fields,
     .experts = &gemma4_experts, .finish = whit_import_hf_gemma4},
    {.name = "Bert", ENCODER("bert", "bert.", encoder_names), .norm_eps = 1e-12},
    {.name = "BertForSequenceClassification", ENCODER("bert", "bert.", bert_score_names), .norm_eps = 1e-12,
     .has_scores = true},
    {.name = "Roberta", ENCODER("roberta", "roberta.", encoder_names), .norm_eps = 1e-12, .n_positions_cut = 2},
    {.name = "RobertaForSequenceClassification", ENCODER("roberta", "roberta.", roberta_score_names),
     .norm_eps = 1e-12, .n_positions_cut = 2, .has_scores = true},
    {.name = "XLMRoberta", ENCODER("xlm-roberta", "roberta.", encoder_names), .norm_eps = 1e-12,
     .n_positions_cut = 2},
    {.name = "XLMRobertaForSequenceClassification", ENCODER("xlm-roberta", "roberta.", roberta_score_names),
     .norm_eps = 1e-12, .n_positions_cut = 2, .has_scores = true},
    {CLASS("HunYuanDenseV1", "hunyuan_v1_dense", "llama", "silu", 1e-5, 10000, 2048), .qk_norm = true,
     .norm_after_rope = true, .names = hunyuan_names, .fields = hunyuan_fields},
    {CLASS("Lfm2", "lfm2", "hybrid", "silu", 1e-5, 1000000, 128000), .qk_norm = true, .tied = true, .n_kv_heads = 8,
     .recurrent_type = "conv", .recurrent_mixer = WHIT_MIXER_SHORT_CONV, .names = lfm2_names, .fields = lfm2_fields,
     .finish = finish_lfm2},
    {CLASS("Lfm2Moe", "lfm2_moe", "hybrid", "silu", 1e-5, 1000000, 128000), .qk_norm = true, .tied = true,
     .n_kv_heads = 8, .recurrent_type = "conv", .recurrent_mixer = WHIT_MIXER_SHORT_CONV, .names = lfm2_expert_names,
     .fields = lfm2_fields, .finish = finish_lfm2, .experts = &lfm2_experts},
    {CLASS("Qwen3_5", "qwen3_5_text", "hybrid", "silu", 1e-6, 10000, 32768), .is_nested = true, .qk_norm = true,
     .norms_add_one = true, .rotary_share = 0.25, .n_kv_heads = 2, .head_dim = 256, .full_interval = 4,
     .full_interval_field = "full_attention_interval", .recurrent_type = "linear_attention",
     .draft_prefix = "mtp.", .recurrent_mixer = WHIT_MIXER_DELTA, .names = qwen35_names, .fields = qwen35_fields,
     .finish = finish_qwen35},
    {CLASS("Qwen3_5Moe", "qwen3_5_moe_text", "hybrid", "silu", 1e-6, 10000, 32768), .is_nested = true,
     .qk_norm = true, .norms_add_one = true, .rotary_share = 0.25, .n_kv_heads = 2, .head_dim = 256, .full_interval = 4,
     .full_interval_field = "full_attention_interval", .recurrent_type = "linear_attention",
     .draft_prefix = "mtp.", .recurrent_mixer = WHIT_MIXER_DELTA, .names = qwen35_expert_names, .fields = qwen35_fields,
     .finish = finish_qwen35, .experts = &qwen35_experts},
    {CLASS("Qwen3Next", "qwen3_next", "hybrid", "silu", 1e-6, 10000, 32768), .is_nested = true, .qk_norm = true,
     .norms_add_one = true, .rotary_share = 0.25, .n_kv_heads = 2, .head_dim = 256, .full_interval = 4,
     .full_interval_field = "full_attention_interval", .recurrent_type = "linear_attention",
     .draft_prefix = "mtp.", .recurrent_mixer = WHIT_MIXER_DELTA, .names = qwen3_next_names, .fields = qwen35_fields,
     .finish = finish_qwen3_next, .experts = &qwen3_next_experts},
};
/* clang-format on */

/* The class that is used for an unknown model whose computation a program defines. */
static const whit_hf_class other = {CLASS("model of a program", "other", "other", "silu", 1e-6, 10000, 2048)};

/* Returns the length of a class name in "architectures" without its suffix: that of "Llama" for "LlamaForCausalLM" or
 * "LlamaModel"; 0 without a known suffix. */
static size_t class_name_bytes(const char *name, size_t n)
{
    static const char *const heads[] = {"ForCausalLM", "TextModel", "Model"};
    for (size_t i = 0; i < COUNT(heads); i++) {
        size_t m = strlen(heads[i]);
        if (n > m && memcmp(name + n - m, heads[i], m) == 0) return n - m;
    }
    return 0;
}

static bool is_text(const char *text, size_t n, const char *expected)
{
    return text && strlen(expected) == n && memcmp(text, expected, n) == 0;
}

static const whit_hf_class *find_type(const char *type, size_t n)
{
    for (size_t i = 0; i < COUNT(classes); i++)
        if (is_text(type, n, classes[i].type)) return &classes[i];
    return NULL;
}

/* Returns the class of a model for several kinds of input (text and pictures), found by the model_type in its
 * text_config; NULL if `name` is not such a model. */
static const whit_hf_class *find_nested(const whit_hf_document *config, const char *name, size_t n)
{
    static const char head[] = "ForConditionalGeneration";
    const size_t m = strlen(head);
    size_t type_bytes;
    const char *type = whit_json_string(&config->json, whit_hf_node(config, "text_config.model_type"), &type_bytes);
    if (!name || !type || n <= m || memcmp(name + n - m, head, m) != 0) return NULL;
    const whit_hf_class *class = find_type(type, type_bytes);
    return class && class->is_nested ? class : NULL;
}

/* Finds the class of a model. "architectures" takes precedence if present, because checkpoints with their own code keep
 * the model_type of the model that they derive from. */
whit_status whit_hf_find_class(const whit_hf_document *config, bool any, const whit_hf_class **class, whit_error *error)
{
    const whit_json *json = &config->json;
    const char *name = NULL, *type = NULL;
    size_t n = 0, type_bytes = 0;
    uint32_t first = whit_json_first(json, whit_hf_node(config, "architectures"));
    name = whit_json_string(json, first, &n);
    WHIT_TRY(whit_hf_string(config, "model_type", &type, &type_bytes, error));
    if (!name && !type)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the kind of model is not known, because architectures and model_type are both missing",
                         config->path);
    size_t bare = name ? class_name_bytes(name, n) : 0;
    *class = name ? find_nested(config, name, n) : find_type(type, type_bytes);
    for (size_t i = 0; !*class && name && i < COUNT(classes); i++)
        if (is_text(name, bare, classes[i].name) || is_text(name, n, classes[i].name)) *class = &classes[i];
    if (!*class && any) *class = &other;
    if (*class) return WHIT_OK;
    if (name && !bare && !whit_family_needs(name, n))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: '%.*s' is not a model that continues a text, whose name ends in ForCausalLM",
                         config->path, (int)(n < 60 ? n : 60), name);
    if (name) return whit_unknown_family(config->path, name, n, error);
    return whit_unknown_family(config->path, type, type_bytes, error);
}
