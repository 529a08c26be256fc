/* SPDX-License-Identifier: MIT
 * Lists the fields that a config.json may have. There are three lists: fields that the importer reads, fields that
 * cannot change a logit, and fields that would, with the value that means "not used". A field in no list is refused
 * unless its value is empty (null, false, "", [], {}): a new kind of model is recognised by its new fields, and running
 * it without them would give plausible nonsense. */
#include "model/import_hf.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Fields that import_hf_config.c and the other parts read for every class. */
static const char *const used[] = {
    "architectures",
    "attention_bias",
    "head_dim",
    "hidden_act",
    "hidden_size",
    "input_bits",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "mlp_bias",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "quantization",
    "quantization_config",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "tie_word_embeddings",
    "use_sliding_window",
    "vocab_size",
    "weight_bits",
};

/* Fields that cannot change a logit: training, storage, generation defaults, bookkeeping, and switches between equal
 * computations. */
static const char *const harmless[] = {
    "attention_dropout",
    "attn_dropout",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eos_token",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "ignore_index",
    "initializer_factor",
    "initializer_range",
    "is_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "max_sequence_length",
    "min_length",
    "model_max_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "original_max_position_embeddings",
    "pad_token",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "training",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_flash_attn",
};

/* Lists fields of trainers and publishers that only describe the model; they are skipped with a note. */
static const char *const describing[] = {"license",        "license_name",        "license_link",
                                         "base_model",     "is_llama_config",     "neftune_noise_alpha",
                                         "kv_cache_dtype", "attn_implementation", "training_args"};

/* Fields of features that this importer does not read, with the value that switches the feature off. */
static const struct neutral_field {
    const char *name;
    double value;
} neutral[] = {
    {"embedding_multiplier", 1},
    {"logit_scale", 1},
    {"logits_scaling", 1},
    {"n_routed_experts", 0},
    {"n_shared_experts", 0},
    {"num_experts", 0},
    {"num_experts_per_tok", 0},
    {"num_local_experts", 0},
    {"num_nextn_predict_layers", 0},
    {"partial_rotary_factor", 1},
    {"residual_multiplier", 1},
    {"rotary_pct", 1},
    {"scale_emb", 1},
};

/* Reasons for refusing known fields. */
static const struct reason {
    const char *name, *text;
} reasons[] = {
    {"alibi", "biases that grow with distance are not supported"},
    {"attention_chunk_size", "attention in chunks is not supported"},
    {"attention_multiplier", "another scale of attention scores is not supported"},
    {"attn_logit_softcapping", "capped attention scores are not supported"},
    {"causal", "attention to both sides is not supported"},
    {"clip_qkv", "clipped queries, keys and values are not supported"},
    {"embedding_multiplier", "scaled embeddings are not supported"},
    {"final_logit_softcapping", "capped logits are not supported"},
    {"is_causal", "attention to both sides is not supported"},
    {"logit_scale", "scaled logits are not supported"},
    {"logits_scaling", "scaled logits are not supported"},
    {"no_rope_layers", "layers without RoPE are not supported"},
    {"num_experts", "mixtures of experts are not supported"},
    {"num_local_experts", "mixtures of experts are not supported"},
    {"n_routed_experts", "mixtures of experts are not supported"},
    {"partial_rotary_factor", "heads that RoPE rotates only in part are not supported"},
    {"query_pre_attn_scalar", "another scale of attention scores is not supported"},
    {"residual_multiplier", "scaled residuals are not supported"},
    {"scale_depth", "scaled residuals are not supported"},
    {"scale_emb", "scaled embeddings are not supported"},
};

static bool in_list(const char *const *list, size_t n, const whit_json *json, uint32_t key)
{
    for (size_t i = 0; i < n; i++)
        if (whit_json_is(json, key, list[i])) return true;
    return false;
}

bool whit_hf_says_nothing(const whit_json *json, uint32_t value)
{
    size_t n;
    switch (whit_json_type_of(json, value)) {
    case WHIT_JSON_NULL: return true;
    case WHIT_JSON_BOOL: return !whit_json_bool(json, value, true);
    case WHIT_JSON_STRING: return whit_json_string(json, value, &n), n == 0;
    case WHIT_JSON_ARRAY:
    case WHIT_JSON_OBJECT: return whit_json_first(json, value) == WHIT_JSON_NONE;
    default: return false;
    }
}

static bool is_neutral(const whit_json *json, uint32_t key)
{
    double number;
    if (whit_json_is(json, key, "activation")) /* a synonym of hidden_act in some folders */
        return whit_json_is(json, key + 1, "swiglu") || whit_json_is(json, key + 1, "silu");
    for (size_t i = 0; i < COUNT(neutral); i++)
        if (whit_json_is(json, key, neutral[i].name))
            return whit_json_f64(json, key + 1, &number) && number == neutral[i].value;
    return false;
}

/* Returns whether a name marks bookkeeping by convention: it begins with "_" or "output_". */
static bool is_private(const char *name, size_t n)
{
    return n && (name[0] == '_' || (n > 7 && memcmp(name, "output_", 7) == 0));
}

bool whit_hf_is_void(const whit_json *json, uint32_t key)
{
    size_t n;
    const char *name = whit_json_string(json, key, &n);
    return is_private(name, n) || whit_hf_says_nothing(json, key + 1);
}

/* Returns whether the field is one of those whose value "false" has an effect. */
static bool is_causal_field(const whit_json *json, uint32_t key)
{
    return whit_json_is(json, key, "causal") || whit_json_is(json, key, "is_causal");
}

/* Returns whether the class's own tables contain a field. */
static bool is_of_class(const whit_hf_class *class, const whit_json *json, uint32_t key)
{
    for (const whit_import_number *row = class->numbers; row && row->theirs; row++)
        if (whit_json_is(json, key, row->theirs)) return true;
    for (const char *const *field = class->fields; field && *field; field++)
        if (whit_json_is(json, key, *field)) return true;
    return false;
}

static bool is_understood(const whit_hf_class *class, const whit_json *json, uint32_t key)
{
    if (is_of_class(class, json, key)) return true;
    if (class->experts && whit_import_hf_is_of_experts(json, key)) return true;
    if (is_causal_field(json, key))
        return whit_json_type_of(json, key + 1) == WHIT_JSON_NULL || whit_json_bool(json, key + 1, false);
    return whit_hf_is_void(json, key) || is_neutral(json, key) || in_list(used, COUNT(used), json, key) ||
        in_list(harmless, COUNT(harmless), json, key);
}

/* Returns whether a field is allowed outside text_config: an outer field of the class, a field about other kinds of
 * input, or an id of their tokens. */
static bool is_outer(const whit_hf_class *class, const whit_json *json, uint32_t key)
{
    static const char *const ends[] = {"_config", "_token_id", "_token_index", "_token_ids", "_per_image"};
    static const char *const names[] = {"text_config",          "projector_hidden_act",
                                        "spatial_merge_size",   "multimodal_projector_bias",
                                        "vision_feature_layer", "language_model_only"};
    size_t n;
    const char *name = whit_json_string(json, key, &n);
    for (const char *const *field = class->outer_fields; field && *field; field++)
        if (whit_json_is(json, key, *field)) return true;
    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t m = strlen(ends[i]);
        if (n > m && memcmp(name + n - m, ends[i], m) == 0 && !whit_json_is(json, key, "quantization_config"))
            return true;
    }
    return in_list(names, COUNT(names), json, key);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns whether two values have the same text, apart from white space. */
static bool same_value(const whit_json *json, uint32_t a, uint32_t b)
{
    size_t n_a, n_b, i = 0, j = 0;
    const char *x = whit_json_raw(json, a, &n_a), *y = whit_json_raw(json, b, &n_b);
    while (x && y) {
        while (i < n_a && is_space(x[i])) i++;
        while (j < n_b && is_space(y[j])) j++;
        if (i == n_a || j == n_b || x[i] != y[j]) break;
        i++, j++;
    }
    return x && y && i == n_a && j == n_b;
}

/* Refuses a field that is read from text_config, but occurs outside it with another value or only there. */
static whit_status check_outer(const struct whit_hf_importer *importer, uint32_t key, whit_error *error)
{
    static const char *const common[] = {"architectures", "model_type", "quantization", "quantization_config",
                                         "tie_word_embeddings"};
    const whit_json *json = &importer->text.json;
    char name[64];
    size_t n;
    const char *text = whit_json_string(json, key, &n);
    if (!(in_list(used, COUNT(used), json, key) || is_of_class(importer->class, json, key)) || n >= sizeof name ||
        in_list(common, COUNT(common), json, key) || whit_hf_says_nothing(json, key + 1))
        return WHIT_OK;
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    if (same_value(json, key + 1, whit_json_get(json, importer->text.root, name))) return WHIT_OK;
    return whit_json_fail(json, key, error, "field '%s' contradicts the same field in text_config", name);
}

static whit_status check_object(const struct whit_hf_importer *importer, uint32_t object, bool is_outside,
                                whit_error *error)
{
    const whit_hf_class *class = importer->class;
    const whit_json *json = &importer->text.json;
    for (uint32_t key = whit_json_first(json, object); key != WHIT_JSON_NONE; key = whit_json_next(json, object, key)) {
        size_t n;
        const char *name = whit_json_string(json, key, &n);
        if (is_outside) WHIT_TRY(check_outer(importer, key, error));
        if (is_understood(class, json, key) || (is_outside && is_outer(class, json, key))) continue;
        if (importer->source && in_list(describing, COUNT(describing), json, key)) {
            WHIT_TRY(whit_source_pass_over(importer->source, name, n, error));
            continue;
        }
        const char *reason = "is not known, and it may change the result";
        for (size_t i = 0; i < COUNT(reasons); i++)
            if (whit_json_is(json, key, reasons[i].name)) reason = reasons[i].text;
        return whit_json_fail(json, key, error, "field '%.*s': %s", (int)(n < 60 ? n : 60), name, reason);
    }
    return WHIT_OK;
}

whit_status whit_import_hf_fields(const struct whit_hf_importer *importer, whit_error *error)
{
    const uint32_t root = importer->text.root;
    if (root != WHIT_JSON_ROOT) WHIT_TRY(check_object(importer, WHIT_JSON_ROOT, true, error));
    return check_object(importer, root, false, error);
}
