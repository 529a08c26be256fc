/* SPDX-License-Identifier: MIT
 * The model classes of transformers that are known, with the defaults of their code for absent fields
 * (configuration_llama.py and its neighbours). A new family is a row here and tables of its names
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
/* attention_head_dim says again what head_dim says; the class has norms of q and k whatever use_qk_norm says. */
static const char *const hunyuan_fields[] = {"attention_head_dim", "use_qk_norm", "eod_token_id", NULL};

static const char *const smollm3_fields[] = {"no_rope_layers", "no_rope_layer_interval", NULL};

static const whit_import_number granite_numbers[] = {
    {"embedding_multiplier", "embedding_scale"},
    {"residual_multiplier", "residual_scale"},
    {"attention_multiplier", "attention_scale"},
    {"logits_scaling", "logit_divisor"},
    {NULL},
};

/* ---- classes ---------------------------------------------------------------------------------- */

static const whit_hf_class classes[] = {
    {.name = "Llama",
     .type = "llama",
     .family = "llama",
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 2048},
    {.name = "Mistral",
     .type = "mistral",
     .family = "llama",
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 131072,
     .n_kv_heads = 8,
     .window = 4096},
    {.name = "Qwen2",
     .type = "qwen2",
     .family = "qwen2",
     .qkv_bias = true,
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 32768,
     .n_kv_heads = 32,
     .window = 4096,
     .window_switch = true,
     .window_layers = 28},
    {.name = "Qwen3",
     .type = "qwen3",
     .family = "qwen3",
     .qk_norm = true,
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 32768,
     .n_kv_heads = 32,
     .head_dim = 128,
     .window = 4096,
     .window_switch = true,
     .window_layers = 28},
    {.name = "BitNet",
     .type = "bitnet",
     .family = "bitnet",
     .bitnet = true,
     .sub_norm = true,
     .act = "relu2",
     .norm_eps = 1e-5,
     .rope_theta = 500000,
     .n_ctx = 2048},
    /* 1bitLLM's own code (its checkpoints say model_type "llama"): BitLinear quantises on every pass. */
    {.name = "Bitnet",
     .type = "bitnet",
     .family = "bitnet",
     .bitnet = true,
     .online = true,
     .sub_norm = true,
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 2048},
    {.name = "Ministral",
     .type = "ministral",
     .family = "llama",
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 131072,
     .n_kv_heads = 8,
     .window = 4096},
    {.name = "Ministral3",
     .type = "ministral3",
     .family = "llama",
     .is_nested = true,
     .act = "silu",
     .norm_eps = 1e-5,
     .rope_theta = 1000000,
     .n_ctx = 262144,
     .n_kv_heads = 8},
    {.name = "SmolLM3",
     .type = "smollm3",
     .family = "llama",
     .tied = true,
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 2000000,
     .n_ctx = 32768,
     .n_kv_heads = 4,
     .window_switch = true,
     .no_rope_interval = 4,
     .fields = smollm3_fields},
    {.name = "Granite",
     .type = "granite",
     .family = "llama",
     .act = "silu",
     .norm_eps = 1e-6,
     .rope_theta = 10000,
     .n_ctx = 2048,
     .numbers = granite_numbers},
    {.name = "Phi3",
     .type = "phi3",
     .family = "llama",
     .is_partial = true,
     .act = "silu",
     .norm_eps = 1e-5,
     .rope_theta = 10000,
     .n_ctx = 4096,
     .window_always = true,
     .names = phi3_names,
     .fields = phi3_fields},
    {.name = "HunYuanDenseV1",
     .type = "hunyuan_v1_dense",
     .family = "llama",
     .qk_norm = true,
     .norm_after_rope = true,
     .act = "silu",
     .norm_eps = 1e-5,
     .rope_theta = 10000,
     .n_ctx = 2048,
     .names = hunyuan_names,
     .fields = hunyuan_fields},
};

/* A model whose program says what it computes. */
static const whit_hf_class other = {.name = "model of a program",
                                    .type = "other",
                                    .family = "other",
                                    .act = "silu",
                                    .norm_eps = 1e-6,
                                    .rope_theta = 10000,
                                    .n_ctx = 2048};

/* The name in "architectures" without its head: "Llama" of "LlamaForCausalLM" or "LlamaModel". */
static size_t class_name_bytes(const char *name, size_t n)
{
    static const char *const heads[] = {"ForCausalLM", "Model"};
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

/* The class of a model of several kinds of input, by the model_type of its text_config. */
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

/* "architectures" decides where it is there, since checkpoints with code of their own keep the
 * model_type of what they grew from. */
whit_status whit_hf_find_class(const whit_hf_document *config, bool any, const whit_hf_class **class, whit_error *error)
{
    const whit_json *json = &config->json;
    const char *name = NULL, *type = NULL;
    size_t n = 0, type_bytes = 0;
    uint32_t first = whit_json_first(json, whit_hf_node(config, "architectures"));
    name = whit_json_string(json, first, &n);
    WHIT_TRY(whit_hf_string(config, "model_type", &type, &type_bytes, error));
    if (!name && !type)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: neither architectures nor model_type says what model this is",
                         config->path);
    size_t bare = name ? class_name_bytes(name, n) : 0;
    *class = name ? find_nested(config, name, n) : find_type(type, type_bytes);
    for (size_t i = 0; !*class && name && i < COUNT(classes); i++)
        if (is_text(name, bare, classes[i].name)) *class = &classes[i];
    if (!*class && any) *class = &other;
    if (*class) return WHIT_OK;
    if (name && !bare)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: '%.*s' is no model that continues a text (…ForCausalLM)",
                         config->path, (int)(n < 60 ? n : 60), name);
    return whit_unknown_family(config->path, name ? name : type, name ? n : type_bytes, error);
}
