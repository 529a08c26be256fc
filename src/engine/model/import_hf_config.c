/* SPDX-License-Identifier: MIT
 * config.json to the canonical configuration. Defaults of absent fields are those of the model's
 * own class in transformers (configuration_llama.py and its neighbours). */
#include "model/import_hf.h"

#include "model/unknown_family.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

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

/* "architectures" decides where it is there, since checkpoints with code of their own keep the
 * model_type of what they grew from. */
static whit_status find_class(const whit_hf_document *config, bool any, const whit_hf_class **class, whit_error *error)
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
    for (size_t i = 0; i < COUNT(classes); i++) {
        const char *own = name ? classes[i].name : classes[i].type;
        if (name ? strlen(own) == bare && memcmp(own, name, bare) == 0
                 : strlen(own) == type_bytes && memcmp(own, type, type_bytes) == 0) {
            *class = &classes[i];
            return WHIT_OK;
        }
    }
    if (any) {
        *class = &other;
        return WHIT_OK;
    }
    if (name && !bare)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: '%.*s' is no model that continues a text (…ForCausalLM)",
                         config->path, (int)(n < 60 ? n : 60), name);
    return whit_unknown_family(config->path, name ? name : type, name ? n : type_bytes, error);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static whit_status get_u32(const whit_hf_document *config, const char *name, bool required, uint32_t *value,
                           whit_error *error)
{
    uint64_t number = *value;
    WHIT_TRY(whit_hf_u64(config, name, &number, error));
    if (number > UINT32_MAX)
        return whit_json_fail(&config->json, whit_hf_node(config, name), error, "%s is out of range", name);
    if (required && !number)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: field '%s' is missing", config->path, name);
    *value = (uint32_t)number;
    return WHIT_OK;
}

static bool text_is(const char *text, size_t n, const char *expected)
{
    return text && strlen(expected) == n && memcmp(text, expected, n) == 0;
}

static whit_status read_gate(const whit_hf_document *config, const char *fallback, whit_config *c, whit_error *error)
{
    const char *act = fallback;
    size_t n = strlen(fallback);
    WHIT_TRY(whit_hf_string(config, "hidden_act", &act, &n, error));
    if (text_is(act, n, "silu") || text_is(act, n, "swish"))
        c->gate = WHIT_GATE_SILU;
    else if (text_is(act, n, "relu2"))
        c->gate = WHIT_GATE_RELU2;
    else if (c->program && (text_is(act, n, "gelu_pytorch_tanh") || text_is(act, n, "gelu_new")))
        c->gate = WHIT_GATE_GELU;
    else
        return whit_json_fail(&config->json, whit_hf_node(config, "hidden_act"), error,
                              "hidden_act '%.*s' is not supported (silu and relu2 are)", (int)(n < 40 ? n : 40), act);
    return WHIT_OK;
}

/* One window for all layers, or none: transformers says it in three ways. */
static whit_status read_window(const whit_hf_document *config, const whit_hf_class *class, whit_config *c,
                               whit_error *error)
{
    const whit_json *json = &config->json;
    bool always = class->window && !class->window_switch, used = always; /* Mistral; Qwen's classes have a switch */
    uint32_t from_layer = class->window_switch ? class->window_layers : c->n_layers, window = 0,
             types = whit_hf_node(config, "layer_types");
    if (whit_hf_node(config, "sliding_window") == WHIT_JSON_NONE) window = class->window;
    WHIT_TRY(get_u32(config, "sliding_window", false, &window, error));
    WHIT_TRY(whit_hf_bool(config, "use_sliding_window", &used, error));
    WHIT_TRY(get_u32(config, "max_window_layers", false, &from_layer, error));
    if (always) from_layer = 0;
    if (!used) window = 0;
    if (whit_json_type_of(json, types) == WHIT_JSON_ARRAY) {
        uint32_t n = 0, n_sliding = 0;
        for (uint32_t at = whit_json_first(json, types); at != WHIT_JSON_NONE; at = whit_json_next(json, types, at)) {
            bool sliding = whit_json_is(json, at, "sliding_attention");
            if (!sliding && !whit_json_is(json, at, "full_attention"))
                return whit_json_fail(json, at, error, "layers of this type are not supported");
            n_sliding += sliding;
            n++;
        }
        if (n != c->n_layers)
            return whit_json_fail(json, types, error, "layer_types has %u entries for %u layers", n, c->n_layers);
        if (n_sliding && n_sliding != n)
            return whit_json_fail(json, types, error, "a sliding window on some layers only is not supported");
        from_layer = n_sliding ? 0 : c->n_layers;
    }
    if (window && window < c->n_ctx && from_layer && from_layer < c->n_layers)
        return whit_json_fail(json, whit_hf_node(config, "max_window_layers"), error,
                              "a sliding window on some layers only is not supported");
    c->window = from_layer == 0 && window < c->n_ctx ? window : 0;
    return WHIT_OK;
}

/* Rounds as GGUF files keep such numbers, and as the kernels take them, so that equal models are
 * equal. Through memory: GCC 12 at -O3 drops two neighbouring casts to float and back. */
static double as_float(double x)
{
    volatile float narrow = (float)x;
    return narrow;
}

static whit_status read_numbers(const whit_hf_document *config, const whit_hf_class *class, whit_config *c,
                                whit_error *error)
{
    double eps = class->norm_eps, theta = class->rope_theta;
    WHIT_TRY(get_u32(config, "hidden_size", true, &c->n_embd, error));
    WHIT_TRY(get_u32(config, "intermediate_size", true, &c->n_ff, error));
    WHIT_TRY(get_u32(config, "num_hidden_layers", true, &c->n_layers, error));
    WHIT_TRY(get_u32(config, "num_attention_heads", true, &c->n_heads, error));
    c->n_kv_heads = class->n_kv_heads ? class->n_kv_heads : c->n_heads;
    WHIT_TRY(get_u32(config, "num_key_value_heads", false, &c->n_kv_heads, error));
    c->n_ctx = class->n_ctx;
    WHIT_TRY(get_u32(config, "max_position_embeddings", false, &c->n_ctx, error));
    WHIT_TRY(get_u32(config, "vocab_size", true, &c->n_vocab, error));
    c->head_dim = class->head_dim ? class->head_dim : c->n_embd / c->n_heads;
    WHIT_TRY(get_u32(config, "head_dim", false, &c->head_dim, error));
    c->rope_dim = c->head_dim;
    WHIT_TRY(whit_hf_f64(config, "rms_norm_eps", &eps, error));
    WHIT_TRY(whit_hf_f64(config, "rope_theta", &theta, error));
    WHIT_TRY(whit_hf_f64(config, "rope_parameters.rope_theta", &theta, error));
    c->norm_eps = as_float(eps);
    c->rope_theta = as_float(theta);
    return WHIT_OK;
}

/* The share of a head that turns. */
static whit_status read_rope_share(const whit_hf_document *config, whit_config *c, whit_error *error)
{
    static const char *const names[] = {"rotary_pct", "partial_rotary_factor"};
    double share = 1;
    for (size_t i = 0; i < COUNT(names); i++) WHIT_TRY(whit_hf_f64(config, names[i], &share, error));
    if (!(share >= 0 && share <= 1))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a share of %g of each head cannot turn", config->path, share);
    c->rope_dim = (uint32_t)(share * c->head_dim) / 2 * 2;
    return WHIT_OK;
}

/* ---- quantisation --------------------------------------------------------------------------- */

static whit_status check_width(const whit_hf_document *config, const char *name, uint32_t expected, whit_error *error)
{
    uint32_t bits = expected;
    WHIT_TRY(get_u32(config, name, false, &bits, error));
    if (bits != expected)
        return whit_json_fail(&config->json, whit_hf_node(config, name), error, "only %s %u is supported", name,
                              expected);
    return WHIT_OK;
}

static whit_status read_quantisation(const whit_hf_document *config, const whit_hf_class *class,
                                     whit_hf_quantisation *q, whit_error *error)
{
    static const char *const known[] = {"quant_method",           "linear_class", "quantization_mode",
                                        "modules_to_not_convert", "use_rms_norm", "rms_norm_eps"};
    const whit_json *json = &config->json;
    *q = (whit_hf_quantisation){.online = class->online, .skipped = WHIT_JSON_NONE};
    WHIT_TRY(check_width(config, "input_bits", 8, error));
    WHIT_TRY(check_width(config, "weight_bits", 1, error));
    uint32_t node = whit_hf_node(config, "quantization_config");
    if (node == WHIT_JSON_NONE || whit_json_type_of(json, node) == WHIT_JSON_NULL) return WHIT_OK;
    const char *method = NULL, *linear = "bitlinear", *mode = "offline";
    size_t method_bytes = 0, linear_bytes = strlen(linear), mode_bytes = strlen(mode);
    bool norms = false;
    WHIT_TRY(whit_hf_string(config, "quantization_config.quant_method", &method, &method_bytes, error));
    if (!text_is(method, method_bytes, "bitnet"))
        return whit_json_fail(json, node, error, "quantisation by '%.*s' is not supported (bitnet is)",
                              (int)(method_bytes < 40 ? method_bytes : 40), method ? method : "");
    for (uint32_t key = whit_json_first(json, node); key != WHIT_JSON_NONE; key = whit_json_next(json, node, key)) {
        bool found = whit_hf_is_void(json, key);
        for (size_t i = 0; i < COUNT(known); i++) found |= whit_json_is(json, key, known[i]);
        if (!found) return whit_json_fail(json, key, error, "a field of quantization_config that is not known");
    }
    WHIT_TRY(whit_hf_string(config, "quantization_config.linear_class", &linear, &linear_bytes, error));
    WHIT_TRY(whit_hf_string(config, "quantization_config.quantization_mode", &mode, &mode_bytes, error));
    WHIT_TRY(whit_hf_bool(config, "quantization_config.use_rms_norm", &norms, error));
    if (norms)
        return whit_json_fail(json, node, error, "norms inside the linear layers (use_rms_norm) are not supported");
    q->bitnet = true;
    q->multiplies = text_is(linear, linear_bytes, "autobitlinear");
    if (!q->multiplies && !text_is(linear, linear_bytes, "bitlinear"))
        return whit_json_fail(json, node, error, "linear_class '%.*s' is neither bitlinear nor autobitlinear",
                              (int)(linear_bytes < 40 ? linear_bytes : 40), linear);
    bool online = text_is(mode, mode_bytes, "online");
    if (!online && !text_is(mode, mode_bytes, "offline"))
        return whit_json_fail(json, node, error, "quantization_mode '%.*s' is neither online nor offline",
                              (int)(mode_bytes < 40 ? mode_bytes : 40), mode);
    q->online |= online && q->multiplies; /* BitLinear has no such mode */
    q->skipped = whit_hf_node(config, "quantization_config.modules_to_not_convert");
    return WHIT_OK;
}

/* ---- RoPE scaling --------------------------------------------------------------------------- */

static whit_status read_positive(const whit_hf_document *config, const char *object, const char *name, double *value,
                                 whit_error *error)
{
    char path[96];
    *value = 0;
    snprintf(path, sizeof path, "%s.%s", object, name);
    WHIT_TRY(whit_hf_f64(config, path, value, error));
    if (*value > 0 && *value < 1e9) return WHIT_OK;
    return whit_json_fail(&config->json, whit_hf_node(config, object), error, "%s is missing or makes no sense", path);
}

/* Every field of a scaling changes the result, so those that its kind does not have are refused. */
static whit_status check_scaling_fields(const whit_hf_document *config, uint32_t node, bool llama3, bool factor,
                                        whit_error *error)
{
    const whit_json *json = &config->json;
    for (uint32_t key = whit_json_first(json, node); key != WHIT_JSON_NONE; key = whit_json_next(json, node, key)) {
        bool known = whit_json_is(json, key, "type") || whit_json_is(json, key, "rope_type") ||
            whit_json_is(json, key, "rope_theta") || whit_hf_is_void(json, key) ||
            (factor && whit_json_is(json, key, "factor")) ||
            (llama3 &&
             (whit_json_is(json, key, "low_freq_factor") || whit_json_is(json, key, "high_freq_factor") ||
              whit_json_is(json, key, "original_max_position_embeddings")));
        double number = 0;
        /* These scale by 1, and the length that an unscaled model was trained for scales nothing. */
        if (!known && !factor && whit_json_is(json, key, "original_max_position_embeddings")) known = true;
        if (!known &&
            (whit_json_is(json, key, "partial_rotary_factor") || whit_json_is(json, key, "attention_factor") ||
             (!factor && whit_json_is(json, key, "factor"))))
            known = whit_json_f64(json, key + 1, &number) && number == 1;
        if (!known) return whit_json_fail(json, key, error, "a field that this kind of RoPE scaling does not have");
    }
    return WHIT_OK;
}

whit_status whit_import_hf_rope(const struct whit_hf_importer *importer, const whit_config *c,
                                const whit_allocator *allocator, float **factors, whit_error *error)
{
    const whit_hf_document *config = &importer->hf->config;
    const whit_json *json = &config->json;
    const char *object = "rope_parameters"; /* transformers 5; rope_scaling before */
    uint32_t n = c->rope_dim / 2, node = whit_hf_node(config, object);
    *factors = NULL;
    if (whit_json_type_of(json, node) != WHIT_JSON_OBJECT) node = whit_hf_node(config, object = "rope_scaling");
    if (node == WHIT_JSON_NONE || whit_json_type_of(json, node) == WHIT_JSON_NULL) return WHIT_OK;
    if (whit_json_type_of(json, node) != WHIT_JSON_OBJECT)
        return whit_json_fail(json, node, error, "%s is no object", object);

    char path[96];
    const char *type = "default";
    size_t type_bytes = strlen(type);
    snprintf(path, sizeof path, "%s.type", object);
    WHIT_TRY(whit_hf_string(config, path, &type, &type_bytes, error));
    snprintf(path, sizeof path, "%s.rope_type", object);
    WHIT_TRY(whit_hf_string(config, path, &type, &type_bytes, error));
    bool linear = text_is(type, type_bytes, "linear"), llama3 = text_is(type, type_bytes, "llama3");
    if (!linear && !llama3 && !text_is(type, type_bytes, "default"))
        return whit_json_fail(json, node, error, "RoPE scaling '%.*s' is not supported (linear and llama3 are)",
                              (int)(type_bytes < 40 ? type_bytes : 40), type);
    WHIT_TRY(check_scaling_fields(config, node, llama3, linear || llama3, error));
    if (!linear && !llama3) return WHIT_OK;

    whit_rope_llama3 rule = {0};
    WHIT_TRY(read_positive(config, object, "factor", &rule.factor, error));
    if (llama3) {
        WHIT_TRY(read_positive(config, object, "low_freq_factor", &rule.low_freq_factor, error));
        WHIT_TRY(read_positive(config, object, "high_freq_factor", &rule.high_freq_factor, error));
        WHIT_TRY(read_positive(config, object, "original_max_position_embeddings", &rule.original_context, error));
        if (rule.high_freq_factor <= rule.low_freq_factor)
            return whit_json_fail(json, node, error, "high_freq_factor must be above low_freq_factor");
    }
    if (!n) return WHIT_OK;
    *factors = whit_alloc(allocator, n * sizeof **factors);
    if (!*factors) return whit_fail_memory(error, "RoPE factors", n * sizeof **factors);
    if (llama3)
        whit_rope_llama3_factors(&rule, c->rope_theta, c->rope_dim, *factors);
    else
        for (uint32_t i = 0; i < n; i++) (*factors)[i] = (float)rule.factor;
    return WHIT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

whit_status whit_import_hf_config(struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->hf->config;
    WHIT_TRY(find_class(config, c->program, &importer->class, error));
    const whit_hf_class *class = importer->class;
    if (!c->program) WHIT_TRY(whit_import_hf_fields(config, error));
    snprintf(c->family, sizeof c->family, "%s", class->family);
    c->sub_norm = class->sub_norm;
    c->qk_norm = class->qk_norm;
    WHIT_TRY(read_numbers(config, class, c, error));
    if (c->program) WHIT_TRY(read_rope_share(config, c, error));
    WHIT_TRY(read_gate(config, class->act, c, error));
    WHIT_TRY(read_window(config, class, c, error));
    WHIT_TRY(whit_hf_bool(config, "attention_bias", &c->out_bias, error));
    c->attn_bias = c->out_bias || class->qkv_bias;
    if (class->qkv_bias) c->out_bias = false; /* Qwen2's class has no such field */
    WHIT_TRY(whit_hf_bool(config, "mlp_bias", &c->ffn_bias, error));
    WHIT_TRY(whit_hf_bool(config, "tie_word_embeddings", &importer->tied, error));
    WHIT_TRY(read_quantisation(config, class, &importer->quantisation, error));
    return whit_config_check(c, config->path, error);
}
