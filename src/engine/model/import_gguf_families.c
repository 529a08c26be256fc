/* SPDX-License-Identifier: MIT
 * Holds the table of known architectures of GGUF files. A new family needs a row here and tables of its names
 * (docs/dev/new-family.md). */
#include "model/import_gguf.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Names of tensors that all architectures with experts have in common. */
#define GGUF_EXPERTS                                                                                                   \
    {"ffn_gate_inp.weight", "router"}, {"exp_probs_b.bias", "router_choice"},                                          \
        {"ffn_gate_exps.weight", "expert_gate", WHIT_IMPORT_EXPERTS, .is_projection = true},                           \
        {"ffn_up_exps.weight", "expert_up", WHIT_IMPORT_EXPERTS, .is_projection = true},                               \
        {"ffn_down_exps.weight", "expert_down", WHIT_IMPORT_EXPERTS, .is_projection = true},                           \
        {"ffn_gate_shexp.weight", "shared_gate", .is_projection = true},                                               \
        {"ffn_up_shexp.weight", "shared_up", .is_projection = true},                                                   \
        {"ffn_down_shexp.weight", "shared_down", .is_projection = true},                                               \
    {                                                                                                                  \
        "ffn_gate_inp_shexp.weight", "shared_weight", WHIT_IMPORT_ROW                                                  \
    }
static const whit_import_name expert_names[] = {GGUF_EXPERTS, {NULL}};
static const char *const maple_keys[] = {"rope.dimension_count_swa", "rope.freq_base_swa", NULL};

static const whit_import_name gpt_oss_names[] = {
    GGUF_EXPERTS,
    {"attn_sinks.weight", "sinks"},
    {"post_attention_norm.weight", "ffn_norm"},
    {"ffn_gate_inp.bias", "router_bias"},
    {"ffn_gate_exps.bias", "expert_gate_bias"},
    {"ffn_up_exps.bias", "expert_up_bias"},
    {"ffn_down_exps.bias", "expert_down_bias"},
    {NULL},
};

static whit_status finish_gpt_oss(const whit_gguf_keys *k, whit_config *c)
{
    (void)k;
    c->gate = WHIT_GATE_SWISH1;
    c->gate_limit = 7;
    return WHIT_OK;
}

static const whit_import_number granite_numbers[] = {
    {"embedding_scale", "embedding_scale"},
    {"residual_scale", "residual_scale"},
    {"attention.scale", "attention_scale"},
    {"logit_scale", "logit_divisor"},
    {NULL},
};

static const whit_import_number ministral3_numbers[] = {
    {"attention.temperature_scale", "temperature_scale"},
    {"rope.scaling.original_context_length", "temperature_length"},
    {NULL},
};

static const whit_import_name phi3_names[] = {
    {"attn_qkv.weight", "q", WHIT_IMPORT_Q, .is_projection = true},
    {"attn_qkv.weight", "k", WHIT_IMPORT_K, .is_projection = true},
    {"attn_qkv.weight", "v", WHIT_IMPORT_V, .is_projection = true},
    {"ffn_up.weight", "gate", WHIT_IMPORT_GATE, .is_projection = true},
    {"ffn_up.weight", "up", WHIT_IMPORT_UP, .is_projection = true},
    {NULL},
};

static const whit_import_name post_norm_names[] = {
    {"post_attention_norm.weight", "attn_post_norm"},
    {"post_ffw_norm.weight", "ffn_post_norm"},
    {NULL},
};

static const whit_import_name gemma4_names[] = {
    {"per_layer_token_embd.weight", "side_embed"},
    {"per_layer_model_proj.weight", "side_context_proj"},
    {"per_layer_proj_norm.weight", "side_context_norm"},
    {"post_attention_norm.weight", "attn_post_norm"},
    {"post_ffw_norm.weight", "ffn_post_norm"},
    {"inp_gate.weight", "side_gate", .is_projection = true},
    {"proj.weight", "side_proj", .is_projection = true},
    {"post_norm.weight", "side_norm"},
    {"layer_output_scale.weight", "layer_scale"},
    {"ffn_gate_up_exps.weight", "expert_gate", WHIT_IMPORT_EXPERTS_GATE, .is_projection = true},
    {"ffn_gate_up_exps.weight", "expert_up", WHIT_IMPORT_EXPERTS_UP, .is_projection = true},
    GGUF_EXPERTS, /* listed after the rows of the fused matrix: export uses the first row that names a tensor */
    {"ffn_gate_inp.scale", "router_norm"},
    {"ffn_down_exps.scale", "expert_scales"},
    {"post_ffw_norm_1.weight", "ffn_dense_post_norm"},
    {"post_ffw_norm_2.weight", "expert_post_norm"},
    {"pre_ffw_norm_2.weight", "expert_norm"},
    {NULL},
};
static const char *const gemma4_keys[] = {"attention.key_length_swa",   "attention.value_length_swa",
                                          "attention.shared_kv_layers", "rope.dimension_count_swa",
                                          "rope.freq_base_swa",         "embedding_length_per_layer_input",
                                          "final_logit_softcapping",    NULL};
/* Names of tensors of Gemma 4's assistant, a draft model. Its tensors for clusters of tokens are ignored: clusters are
 * only a shortcut, which mostly makes the same guess. */
static const whit_import_name gemma4_draft_names[] = {
    {"nextn.pre_projection.weight", "draft_in", .is_projection = true},
    {"nextn.post_projection.weight", "draft_out", .is_projection = true},
    {"masked_embd_centroids.weight", NULL},
    {"masked_embd_ordering", NULL},
    {"masked_embd_ordering.weight", NULL},
    {"post_attention_norm.weight", "attn_post_norm"},
    {"post_ffw_norm.weight", "ffn_post_norm"},
    {"layer_output_scale.weight", "layer_scale"},
    {NULL},
};
static const char *const gemma4_draft_keys[] = {
    "attention.key_length_swa", "attention.value_length_swa", "attention.shared_kv_layers",
    "rope.dimension_count_swa", "rope.freq_base_swa",         "embedding_length_out",
    "final_logit_softcapping",  "nextn_predict_layers",       "n_centroids",
    "centroid_top_k",           "use_ordered_embeddings",     NULL};
static const char *const gemma3_keys[] = {"rope.freq_base_swa", NULL};

static const whit_import_name gemma_embedding_names[] = {
    {"post_attention_norm.weight", "attn_post_norm"},
    {"post_ffw_norm.weight", "ffn_post_norm"},
    {"dense_2.weight", "dense_1"},
    {"dense_3.weight", "dense_2"},
    {NULL},
};
/* Lists keys of EmbeddingGemma in addition to the common ones. The widths of its dense layers are read from their
 * tensors. */
static const char *const gemma_embedding_keys[] = {"rope.freq_base_swa", "dense_2_feat_in",  "dense_2_feat_out",
                                                   "dense_3_feat_in",    "dense_3_feat_out", NULL};

static const whit_import_name bert_names[] = {
    {"position_embd.weight", "position_embed"},
    {"token_types.weight", "type_embed"},
    {"token_embd_norm.weight", "embed_norm"},
    {"token_embd_norm.bias", "embed_norm_bias"},
    {"attn_output_norm.weight", "attn_post_norm"},
    {"attn_output_norm.bias", "attn_post_norm_bias"},
    {"layer_output_norm.weight", "ffn_post_norm"},
    {"layer_output_norm.bias", "ffn_post_norm_bias"},
    {"cls.weight", "score_dense"},
    {"cls.bias", "score_dense_bias"},
    {"cls.output.bias", "score_bias"},
    {NULL},
};
static const char *const bert_keys[] = {"attention.layer_norm_epsilon", NULL};

/* ---- hybrids ---------------------------------------------------------------------------------- */

static const whit_import_name lfm2_names[] = {
    {"token_embd_norm.weight", "final_norm"},
    {"shortconv.in_proj.weight", "conv_b", WHIT_IMPORT_THIRD_1, .is_projection = true},
    {"shortconv.in_proj.weight", "conv_c", WHIT_IMPORT_THIRD_2, .is_projection = true},
    {"shortconv.in_proj.weight", "conv_x", WHIT_IMPORT_THIRD_3, .is_projection = true},
    {"shortconv.conv.weight", "conv", .form = WHIT_IMPORT_TAPS},
    {"shortconv.out_proj.weight", "conv_o", .is_projection = true},
    GGUF_EXPERTS,
    {NULL},
};
static const char *const lfm2_keys[] = {"shortconv.l_cache", NULL};

/* Reads LFM2's convolutions: layers whose number of KV heads is 0 are convolutions. */
static whit_status finish_lfm2(const whit_gguf_keys *k, whit_config *c)
{
    whit_layer_kind of[WHIT_MAX_LAYERS];
    c->conv_taps = 3;
    WHIT_TRY(whit_gguf_key_u32(k, "shortconv.l_cache", false, &c->conv_taps));
    for (uint32_t i = 0; i < c->n_layers; i++) {
        of[i] = whit_config_kind(c, i);
        if (!of[i].n_kv_heads) of[i] = (whit_layer_kind){.mixer = WHIT_MIXER_SHORT_CONV, .n_ff = of[i].n_ff};
    }
    return whit_import_set_kinds(c, of, k->path, k->error);
}

/* Sets the router of LFM2's experts: the sigmoid, the bias for the choice and the number added to the divisor of scores
 * follow from the architecture; keys may also state the sigmoid. */
static whit_status finish_lfm2moe(const whit_gguf_keys *k, whit_config *c)
{
    c->router_sigmoid = c->router_bias = true;
    c->router_norm_eps = 1e-6f;
    return finish_lfm2(k, c);
}

/* Names that all hybrids of Qwen share. Heads are reordered only if rotated matrices need it. The block that predicts
 * one more token may contain copies of the embedding and the head, which are ignored. */
#define GGUF_QWEN_HYBRID                                                                                               \
    {"attn_q.weight", "q", WHIT_IMPORT_HEAD_FIRST, .is_projection = true},                                             \
        {"attn_q.weight", "attn_gate", WHIT_IMPORT_HEAD_SECOND, .is_projection = true},                                \
        {"post_attention_norm.weight", "ffn_norm"},                                                                    \
        {"attn_qkv.weight", "mixed", .is_projection = true, .order = WHIT_IMPORT_MIXED},                               \
        {"attn_gate.weight", "z", .is_projection = true, .order = WHIT_IMPORT_VALUES},                                 \
        {"ssm_conv1d.weight", "conv", .form = WHIT_IMPORT_TAPS, .order = WHIT_IMPORT_MIXED},                           \
        {"ssm_a", "delta_a", .order = WHIT_IMPORT_HEADS}, {"ssm_dt.bias", "delta_dt", .order = WHIT_IMPORT_HEADS},     \
        {"ssm_norm.weight", "delta_norm"}, {"nextn.eh_proj.weight", "draft_in", .is_projection = true},                \
        {"nextn.enorm.weight", "draft_embed_norm"}, {"nextn.hnorm.weight", "draft_hidden_norm"},                       \
        {"nextn.shared_head_norm.weight", "draft_norm"}, {"nextn.embed_tokens.weight", NULL},                          \
        {"nextn.shared_head_head.weight", NULL},                                                                       \
    {                                                                                                                  \
        "ssm_out.weight", "delta_o", .is_projection = true                                                             \
    }
static const whit_import_name qwen35_names[] = {
    GGUF_QWEN_HYBRID,
    {"ssm_beta.weight", "beta", .is_projection = true, .order = WHIT_IMPORT_HEADS},
    {"ssm_alpha.weight", "decay", .is_projection = true, .order = WHIT_IMPORT_HEADS},
    GGUF_EXPERTS,
    {NULL},
};
static const whit_import_name qwen3next_names[] = {
    GGUF_QWEN_HYBRID,
    /* ssm_in is contained only in older files */
    {"ssm_in.weight", "mixed", WHIT_IMPORT_QKVZ_MIXED, .is_projection = true},
    {"ssm_in.weight", "z", WHIT_IMPORT_QKVZ_Z, .is_projection = true},
    {"ssm_ba.weight", "beta", WHIT_IMPORT_BA_BETA, .is_projection = true},
    {"ssm_ba.weight", "decay", WHIT_IMPORT_BA_DECAY, .is_projection = true},
    GGUF_EXPERTS,
    {NULL},
};
/* Lists keys of Qwen3.5 in addition to the common ones. The sections of RoPE matter only for pictures: a text has the
 * same position in all sections. */
static const char *const qwen35_keys[] = {"attention.recurrent_layers",
                                          "full_attention_interval",
                                          "nextn_predict_layers",
                                          "rope.dimension_sections",
                                          "ssm.conv_kernel",
                                          "ssm.group_count",
                                          "ssm.inner_size",
                                          "ssm.state_size",
                                          "ssm.time_step_rank",
                                          NULL};

static whit_status finish_qwen35(const whit_gguf_keys *k, whit_config *c)
{
    uint32_t interval = 4, n_drafts = 0, inner = 0;
    c->attn_gate = true;
    WHIT_TRY(whit_gguf_key_u32(k, "full_attention_interval", false, &interval));
    WHIT_TRY(whit_gguf_key_u32(k, "nextn_predict_layers", false, &n_drafts));
    WHIT_TRY(whit_gguf_key_u32(k, "ssm.conv_kernel", true, &c->conv_taps));
    WHIT_TRY(whit_gguf_key_u32(k, "ssm.state_size", true, &c->delta_key_dim));
    WHIT_TRY(whit_gguf_key_u32(k, "ssm.group_count", true, &c->delta_key_heads));
    WHIT_TRY(whit_gguf_key_u32(k, "ssm.time_step_rank", true, &c->delta_heads));
    WHIT_TRY(whit_gguf_key_u32(k, "ssm.inner_size", true, &inner));
    c->delta_value_dim = c->delta_heads ? inner / c->delta_heads : 0;
    if (n_drafts >= c->n_layers || !interval || !c->delta_heads || inner % c->delta_heads)
        return whit_fail(k->error, WHIT_ERROR_FORMAT,
                         "%s: %u layers of which %u predict further tokens, and %u value heads of %u elements "
                         "together, contradict each other",
                         k->path, c->n_layers, n_drafts, c->delta_heads, inner);
    c->n_layers -= n_drafts;
    char name[64];
    snprintf(name, sizeof name, "blk.%u.nextn.eh_proj.weight", c->n_layers);
    c->n_draft_layers = n_drafts && !c->program && whit_gguf_find_tensor(k->gguf, name);
    const whit_gguf_key *list = whit_gguf_key_find(k, "attention.recurrent_layers");
    if (list && (list->type != WHIT_GGUF_ARRAY || list->element_type != WHIT_GGUF_BOOL || list->n_elems < c->n_layers))
        return whit_fail(k->error, WHIT_ERROR_FORMAT,
                         "%s: key '%s.attention.recurrent_layers' does not have an entry for each of %u layers",
                         k->path, k->architecture, c->n_layers);
    whit_layer_kind of[WHIT_MAX_LAYERS];
    for (uint32_t i = 0; i < c->n_layers; i++) {
        of[i] = whit_config_kind(c, i);
        if (list ? list->data[i] != 0 : (i + 1) % interval != 0)
            of[i] = (whit_layer_kind){.mixer = WHIT_MIXER_DELTA, .n_ff = of[i].n_ff};
    }
    return whit_import_set_kinds(c, of, k->path, k->error);
}

/* Reads Qwen3-Next, whose files group value heads by key head. */
static whit_status finish_qwen3next(const whit_gguf_keys *k, whit_config *c)
{
    WHIT_TRY(finish_qwen35(k, c));
    c->delta_grouped = c->delta_heads != c->delta_key_heads;
    return WHIT_OK;
}

/* ---- all architectures ------------------------------------------------------------------------ */

static const whit_gguf_architecture architectures[] = {
    {"llama", "llama", .permuted = true},
    {"mistral", "llama", .permuted = true},
    {"qwen2", "qwen2", .attn_bias = true},
    {"qwen3", "qwen3", .qk_norm = true},
    {"qwen3moe", "qwen3", .qk_norm = true, .names = expert_names, .experts = WHIT_GGUF_EXPERTS},
    {"bitnet", "bitnet", .bitnet = true, .sub_norm = true, .gate = WHIT_GATE_SILU},
    {"bitnet-b1.58", "bitnet", .bitnet = true, .sub_norm = true, .gate = WHIT_GATE_RELU2},
    {"bitnet-25", "bitnet", .bitnet = true, .sub_norm = true, .gate = WHIT_GATE_RELU2},
    {"mistral3", "llama", .permuted = true, .numbers = ministral3_numbers},
    {"smollm3", "llama", .permuted = true, .no_rope_interval = 4},
    {"granite", "llama", .permuted = true, .numbers = granite_numbers},
    {"phi3", "llama", .names = phi3_names},
    {"granitemoe", "llama", .permuted = true, .numbers = granite_numbers, .names = expert_names,
     .experts = WHIT_GGUF_EXPERTS},
    {"maple", "llama", .qk_norm = true, .names = expert_names, .keys = maple_keys, .experts = WHIT_GGUF_EXPERTS,
     .full_interval = 4},
    {"gpt-oss", "llama", .names = gpt_oss_names, .experts = WHIT_GGUF_EXPERTS, .full_interval = 2,
     .finish = finish_gpt_oss},
    {"lfm2", "hybrid", .qk_norm = true, .names = lfm2_names, .keys = lfm2_keys, .finish = finish_lfm2},
    {"qwen35", "hybrid", .qk_norm = true, .names = qwen35_names, .keys = qwen35_keys, .finish = finish_qwen35},
    {"lfm2moe", "hybrid", .qk_norm = true, .names = lfm2_names, .keys = lfm2_keys, .experts = WHIT_GGUF_EXPERTS,
     .finish = finish_lfm2moe},
    {"qwen35moe", "hybrid", .qk_norm = true, .names = qwen35_names, .keys = qwen35_keys, .experts = WHIT_GGUF_EXPERTS,
     .finish = finish_qwen35},
    {"qwen3next", "hybrid", .qk_norm = true, .names = qwen3next_names, .keys = qwen35_keys,
     .experts = WHIT_GGUF_EXPERTS_BY_LAYER, .finish = finish_qwen3next},
    {"olmo2", "olmo2", .full_interval = 4, .scales_full_only = true, .names = post_norm_names},
    {"gemma3", "gemma3", .gate = WHIT_GATE_GELU, .full_interval = 6, .local_theta = 10000, .names = post_norm_names,
     .keys = gemma3_keys, .finish = whit_import_gguf_gemma3},
    {"gemma4", "gemma4", .gate = WHIT_GATE_GELU, .full_interval = 6, .local_theta = 10000, .names = gemma4_names,
     .keys = gemma4_keys, .experts = WHIT_GGUF_EXPERTS_BESIDE, .finish = whit_import_gguf_gemma4},
    {"gemma4-assistant", "gemma4", .gate = WHIT_GATE_GELU, .full_interval = 6, .local_theta = 10000,
     .names = gemma4_draft_names, .keys = gemma4_draft_keys, .finish = whit_import_gguf_gemma4},
    {"gemma-embedding", "gemma3", .is_encoder = true, .gate = WHIT_GATE_GELU, .full_interval = 6, .local_theta = 10000,
     .names = gemma_embedding_names, .keys = gemma_embedding_keys, .finish = whit_import_gguf_gemma_embedding},
    {"bert", "bert", .is_encoder = true, .names = bert_names, .keys = bert_keys, .finish = whit_import_gguf_bert},
    {"hunyuan-dense", "llama", .qk_norm = true, .norm_after_rope = true},
};

const whit_gguf_architecture *whit_gguf_find_architecture(const char *name, size_t n)
{
    for (size_t i = 0; i < COUNT(architectures); i++)
        if (strlen(architectures[i].name) == n && memcmp(architectures[i].name, name, n) == 0) return &architectures[i];
    return NULL;
}

bool whit_gguf_is_permuted(const char *name, size_t n)
{
    const whit_gguf_architecture *a = whit_gguf_find_architecture(name, n);
    return a && a->permuted;
}
