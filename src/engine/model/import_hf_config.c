/* SPDX-License-Identifier: MIT
 * Reads config.json into the canonical configuration. Defaults of absent fields are those of the model's own class in
 * transformers (configuration_llama.py and similar files). */
#include "base/phrase.h"
#include "model/import_hf.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- numbers -------------------------------------------------------------------------------- */

whit_status whit_hf_read_u32(const whit_hf_document *config, const char *name, bool required, uint32_t *value,
                             whit_error *error)
{
    uint64_t number = *value;
    WHIT_TRY(whit_hf_u64(config, name, &number, error));
    if (number > UINT32_MAX)
        return whit_json_fail(&config->json, whit_hf_node(config, name), error, "%s must be below 2^32", name);
    if (required && !number)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: field '%s' is missing: get the original config.json",
                         config->path, name);
    *value = (uint32_t)number;
    return WHIT_OK;
}

bool whit_hf_text_is(const char *text, size_t n, const char *expected)
{
    return text && strlen(expected) == n && memcmp(text, expected, n) == 0;
}

static whit_status read_gate(const whit_hf_document *config, const char *fallback, whit_config *c, whit_error *error)
{
    const char *act = fallback;
    size_t n = strlen(fallback);
    WHIT_TRY(whit_hf_string(config, "hidden_act", &act, &n, error));
    WHIT_TRY(whit_hf_string(config, "hidden_activation", &act, &n, error)); /* Gemma's name of hidden_act */
    if (whit_hf_text_is(act, n, "silu") || whit_hf_text_is(act, n, "swish"))
        c->gate = WHIT_GATE_SILU;
    else if (whit_hf_text_is(act, n, "relu2"))
        c->gate = WHIT_GATE_RELU2;
    else if ((c->program || strncmp(fallback, "gelu", 4) == 0) &&
             (whit_hf_text_is(act, n, "gelu_pytorch_tanh") || whit_hf_text_is(act, n, "gelu_new")))
        c->gate = WHIT_GATE_GELU;
    else
        return whit_json_fail(&config->json, whit_hf_node(config, "hidden_act"), error,
                              "hidden_act '%.*s' is not supported (silu and relu2 are)", (int)(n < 40 ? n : 40), act);
    return WHIT_OK;
}

static whit_status read_numbers(const whit_hf_document *config, const whit_hf_class *class, whit_config *c,
                                whit_error *error)
{
    double eps = class->norm_eps;
    WHIT_TRY(whit_hf_read_u32(config, "hidden_size", true, &c->n_embd, error));
    WHIT_TRY(whit_hf_read_u32(config, "intermediate_size", !class->experts, &c->n_ff, error));
    WHIT_TRY(whit_hf_read_u32(config, "num_hidden_layers", true, &c->n_layers, error));
    WHIT_TRY(whit_hf_read_u32(config, "num_attention_heads", true, &c->n_heads, error));
    c->n_kv_heads = class->n_kv_heads ? class->n_kv_heads : c->n_heads;
    WHIT_TRY(whit_hf_read_u32(config, "num_key_value_heads", false, &c->n_kv_heads, error));
    c->n_ctx = class->n_ctx;
    WHIT_TRY(whit_hf_read_u32(config, "max_position_embeddings", false, &c->n_ctx, error));
    WHIT_TRY(whit_hf_read_u32(config, "vocab_size", true, &c->n_vocab, error));
    c->head_dim = class->head_dim ? class->head_dim : c->n_embd / c->n_heads;
    WHIT_TRY(whit_hf_read_u32(config, "head_dim", false, &c->head_dim, error));
    WHIT_TRY(whit_hf_f64(config, "rms_norm_eps", &eps, error));
    c->norm_eps = whit_round_to_f32(eps);
    for (const whit_import_number *row = class->numbers; row && row->theirs; row++) {
        double number = 0;
        WHIT_TRY(whit_hf_f64(config, row->theirs, &number, error));
        whit_config_set_number(c, row->ours, number == 1 ? 0 : whit_round_to_f32(number));
    }
    return WHIT_OK;
}

/* ---- quantisation --------------------------------------------------------------------------- */

static whit_status check_width(const whit_hf_document *config, const char *name, uint32_t expected, whit_error *error)
{
    uint32_t bits = expected;
    WHIT_TRY(whit_hf_read_u32(config, name, false, &bits, error));
    if (bits != expected)
        return whit_json_fail(&config->json, whit_hf_node(config, name), error, "only %s %u is supported", name,
                              expected);
    return WHIT_OK;
}

/* ---- packed matrices ------------------------------------------------------------------------ */

/* Returns whether a field of an object is absent, empty or equal to the text `expected`. */
static bool field_is(const whit_json *json, uint32_t object, const char *name, const char *expected)
{
    uint32_t value = whit_json_get(json, object, name);
    size_t n;
    const char *text = whit_json_string(json, value, &n);
    return value == WHIT_JSON_NONE || whit_hf_says_nothing(json, value) || whit_hf_text_is(text, n, expected);
}

/* Reads how compressed-tensors rounds activations: not at all, or to int8 with one fixed scale per matrix; other forms
 * are refused. */
static whit_status check_activations(const whit_json *json, uint32_t value, whit_hf_quantisation *q, whit_error *error)
{
    int64_t bits;
    if (value == WHIT_JSON_NONE || whit_hf_says_nothing(json, value)) return WHIT_OK;
    if (!whit_json_i64(json, whit_json_get(json, value, "num_bits"), &bits) || bits != 8 ||
        !whit_json_bool(json, whit_json_get(json, value, "symmetric"), true) ||
        !field_is(json, value, "dynamic", "false") || !field_is(json, value, "type", "int") ||
        !field_is(json, value, "strategy", "tensor"))
        return whit_json_fail(json, value, error,
                              "activations of compressed-tensors are read as floats or as int8 with one fixed scale "
                              "per matrix, not in other forms");
    q->is_fixed = true;
    return WHIT_OK;
}

/* Reads the quantisation by compressed-tensors; refuses groups of modules in formats that are not supported. */
static whit_status check_compressed(const whit_hf_document *config, uint32_t node, whit_hf_quantisation *q,
                                    whit_error *error)
{
    static const char *const formats[] = {"pack-quantized", "int-quantized", "mixed-precision"};
    const whit_json *json = &config->json;
    const char *format = "";
    size_t n = 0;
    WHIT_TRY(whit_hf_string(config, "quantization_config.format", &format, &n, error));
    bool packed = false, floats = whit_hf_text_is(format, n, "float-quantized");
    for (size_t i = 0; i < COUNT(formats); i++) packed |= whit_hf_text_is(format, n, formats[i]);
    if (!packed && !floats)
        return whit_json_fail(json, node, error, "compressed-tensors in the format '%.*s' are not supported",
                              (int)(n < 40 ? n : 40), format);
    q->form = packed ? WHIT_HF_COMPRESSED : WHIT_HF_FP8;
    uint32_t groups = whit_hf_node(config, "quantization_config.config_groups");
    for (uint32_t key = whit_json_first(json, groups); packed && key != WHIT_JSON_NONE;
         key = whit_json_next(json, groups, key)) {
        char name[64];
        size_t name_bytes;
        const char *text = whit_json_string(json, key, &name_bytes);
        snprintf(name, sizeof name, "%.*s", (int)(name_bytes < 63 ? name_bytes : 63), whit_or_empty(text));
        uint32_t group = whit_json_get(json, groups, name), weights = whit_json_get(json, group, "weights");
        if (!field_is(json, group, "format", formats[0]) && !field_is(json, group, "format", formats[1]))
            return whit_json_fail(json, key, error,
                                  "this group has another format than pack-quantized or int-quantized");
        if (!field_is(json, weights, "type", "int"))
            return whit_json_fail(json, key, error, "this group's packed weights are not integers");
        WHIT_TRY(check_activations(json, whit_json_get(json, group, "input_activations"), q, error));
        WHIT_TRY(check_activations(json, whit_json_get(json, group, "output_activations"), q, error));
    }
    return WHIT_OK;
}

/* Reads a quantisation method that packs each matrix separately (format/hf_packed.h); sets *found to false for other
 * methods. */
static whit_status read_packing(const whit_hf_document *config, uint32_t node, const char *method, size_t n,
                                whit_hf_quantisation *q, bool *found, whit_error *error)
{
    const char *format = "";
    size_t format_bytes = 0;
    *found = true;
    if (whit_hf_text_is(method, n, "compressed-tensors")) return check_compressed(config, node, q, error);
    if (whit_hf_text_is(method, n, "gptq")) {
        WHIT_TRY(whit_hf_string(config, "quantization_config.checkpoint_format", &format, &format_bytes, error));
        q->form = whit_hf_text_is(format, format_bytes, "gptq_v2") ? WHIT_HF_GPTQ_V2 : WHIT_HF_GPTQ;
        if (format_bytes && q->form == WHIT_HF_GPTQ && !whit_hf_text_is(format, format_bytes, "gptq"))
            return whit_json_fail(&config->json, node, error, "GPTQ in the checkpoint_format '%.*s' is not supported",
                                  (int)(format_bytes < 40 ? format_bytes : 40), format);
        return WHIT_OK;
    }
    if (whit_hf_text_is(method, n, "awq")) {
        WHIT_TRY(whit_hf_string(config, "quantization_config.version", &format, &format_bytes, error));
        q->form = WHIT_HF_AWQ;
        if (format_bytes && !whit_hf_text_is(format, format_bytes, "gemm") &&
            !whit_hf_text_is(format, format_bytes, "GEMM"))
            return whit_json_fail(&config->json, node, error, "AWQ in the version '%.*s' is not supported (gemm is)",
                                  (int)(format_bytes < 40 ? format_bytes : 40), format);
        return WHIT_OK;
    }
    if (whit_hf_text_is(method, n, "gemma")) { /* the number of bits per code follows from the shapes */
        q->form = WHIT_HF_GEMMA;
        q->is_fixed = true;
        return WHIT_OK;
    }
    if (whit_hf_text_is(method, n, "fp8")) {
        q->form = WHIT_HF_FP8;
        return WHIT_OK;
    }
    *found = false;
    return WHIT_OK;
}

/* Reads the quantisation of MLX, whose settings are in the object "quantization". */
static whit_status read_mlx(const whit_hf_document *config, uint32_t node, whit_hf_quantisation *q, whit_error *error)
{
    const char *mode = "affine";
    size_t n = strlen(mode);
    q->form = WHIT_HF_MLX;
    q->mlx_node = node;
    WHIT_TRY(whit_hf_string(config, "quantization.mode", &mode, &n, error));
    if (!whit_hf_text_is(mode, n, "affine"))
        return whit_json_fail(&config->json, node, error, "MLX's mode '%.*s' is not supported (affine is)",
                              (int)(n < 40 ? n : 40), mode);
    return whit_hf_read_u32(config, "quantization.bits", true, &q->mlx_bits, error);
}

static whit_status read_quantisation(const whit_hf_document *config, const whit_hf_class *class,
                                     whit_hf_quantisation *q, whit_error *error)
{
    static const char *const known[] = {"quant_method",           "linear_class", "quantization_mode",
                                        "modules_to_not_convert", "use_rms_norm", "rms_norm_eps"};
    const whit_json *json = &config->json;
    *q = (whit_hf_quantisation){.online = class->online, .mlx_node = WHIT_JSON_NONE, .skipped = WHIT_JSON_NONE};
    WHIT_TRY(check_width(config, "input_bits", 8, error));
    WHIT_TRY(check_width(config, "weight_bits", 1, error));
    uint32_t node = whit_hf_node(config, "quantization");
    if (node != WHIT_JSON_NONE && whit_json_type_of(json, node) == WHIT_JSON_OBJECT)
        return read_mlx(config, node, q, error);
    node = whit_hf_node(config, "quantization_config");
    if (node == WHIT_JSON_NONE || whit_json_type_of(json, node) == WHIT_JSON_NULL) return WHIT_OK;
    const char *method = NULL, *linear = "bitlinear", *mode = "offline";
    size_t method_bytes = 0, linear_bytes = strlen(linear), mode_bytes = strlen(mode);
    bool norms = false;
    WHIT_TRY(whit_hf_string(config, "quantization_config.quant_method", &method, &method_bytes, error));
    bool packed;
    WHIT_TRY(read_packing(config, node, method, method_bytes, q, &packed, error));
    if (packed) return WHIT_OK;
    if (class->experts && class->experts->has_bias && whit_hf_text_is(method, method_bytes, "mxfp4"))
        return WHIT_OK; /* names of tensors show which of them are MXFP4 blocks */
    if (!whit_hf_text_is(method, method_bytes, "bitnet"))
        return whit_json_fail(
            json, node, error,
            "quantisation by '%.*s' is not supported (bitnet, compressed-tensors, gptq, awq, fp8, gemma and MLX's are)",
            (int)(method_bytes < 40 ? method_bytes : 40), whit_or_empty(method));
    for (uint32_t key = whit_json_first(json, node); key != WHIT_JSON_NONE; key = whit_json_next(json, node, key)) {
        bool found = whit_hf_is_void(json, key);
        for (size_t i = 0; i < COUNT(known); i++) found |= whit_json_is(json, key, known[i]);
        if (!found) return whit_json_fail(json, key, error, "this field of quantization_config is not known");
    }
    WHIT_TRY(whit_hf_string(config, "quantization_config.linear_class", &linear, &linear_bytes, error));
    WHIT_TRY(whit_hf_string(config, "quantization_config.quantization_mode", &mode, &mode_bytes, error));
    WHIT_TRY(whit_hf_bool(config, "quantization_config.use_rms_norm", &norms, error));
    if (norms)
        return whit_json_fail(json, node, error, "norms inside the linear layers (use_rms_norm) are not supported");
    q->bitnet = true;
    q->multiplies = whit_hf_text_is(linear, linear_bytes, "autobitlinear");
    if (!q->multiplies && !whit_hf_text_is(linear, linear_bytes, "bitlinear"))
        return whit_json_fail(json, node, error, "linear_class '%.*s' is neither bitlinear nor autobitlinear",
                              (int)(linear_bytes < 40 ? linear_bytes : 40), linear);
    bool online = whit_hf_text_is(mode, mode_bytes, "online");
    if (!online && !whit_hf_text_is(mode, mode_bytes, "offline"))
        return whit_json_fail(json, node, error, "quantization_mode '%.*s' is neither online nor offline",
                              (int)(mode_bytes < 40 ? mode_bytes : 40), mode);
    q->online |= online && q->multiplies; /* BitLinear has no online mode */
    q->skipped = whit_hf_node(config, "quantization_config.modules_to_not_convert");
    return WHIT_OK;
}

/* ---- switches, and the whole configuration -------------------------------------------------- */

static whit_status read_switches(struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    const whit_hf_class *class = importer->class;
    c->sub_norm = class->sub_norm;
    c->qk_norm = class->qk_norm;
    c->norm_after_rope = class->norm_after_rope;
    if (!class->layers) WHIT_TRY(read_gate(config, class->act, c, error));
    WHIT_TRY(whit_hf_bool(config, "attention_bias", &c->out_bias, error));
    c->attn_bias = c->out_bias || class->qkv_bias;
    if (class->qkv_bias) c->out_bias = false; /* Qwen2's class has no attention_bias: o has no bias */
    WHIT_TRY(whit_hf_bool(config, "mlp_bias", &c->ffn_bias, error));
    importer->tied = class->tied;
    WHIT_TRY(whit_hf_bool(config, "tie_word_embeddings", &importer->tied, error));
    return whit_hf_bool(&importer->hf->config, "tie_word_embeddings", &importer->tied, error);
}

whit_status whit_import_hf_config(struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->hf->config;
    WHIT_TRY(whit_hf_find_class(config, c->program, &importer->class, error));
    const whit_hf_class *class = importer->class;
    importer->text = *config;
    uint32_t nested = whit_hf_node(config, "text_config");
    if (class->is_nested && whit_json_type_of(&config->json, nested) == WHIT_JSON_OBJECT) importer->text.root = nested;
    if (!c->program) WHIT_TRY(whit_import_hf_fields(importer, error));
    WHIT_TRY(read_numbers(&importer->text, class, c, error));
    WHIT_TRY(read_switches(importer, c, error));
    if (!class->layers) WHIT_TRY(whit_import_hf_rope(importer, c, error));
    if (!class->layers) WHIT_TRY(whit_import_hf_layers(importer, c, error));
    if (class->finish) WHIT_TRY(class->finish(importer, c, error));
    if (class->experts) WHIT_TRY(whit_import_hf_experts(importer, c, error));
    WHIT_TRY(read_quantisation(config, class, &importer->quantisation, error));
    snprintf(c->family, sizeof c->family, "%s", class->family);
    whit_config_name_family(c);
    return whit_config_check(c, config->path, error);
}

whit_status whit_hf_read_float(const whit_hf_document *document, const char *path, double *value, whit_error *error)
{
    double number = *value;
    WHIT_TRY(whit_hf_f64(document, path, &number, error));
    *value = whit_round_to_f32(number);
    return WHIT_OK;
}
