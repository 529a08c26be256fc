/* SPDX-License-Identifier: MIT
 * Lists the keys that a GGUF file of a known architecture may have. As for config.json (import_hf_fields.c), there are
 * three lists: keys that the importer reads, keys that cannot change a logit, and keys that would, with the value that
 * means "not used". Any other key is refused unless its value is empty (0, false, ""): a model with an unknown
 * convention (such as rotated weights) would otherwise load without an error and generate nonsense. */
#include "model/import_gguf.h"

#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Suffixes after "ARCHITECTURE." of the keys that the importer reads for every architecture. */
static const char *const used[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.value_length",
    "classifier.output_labels",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "feed_forward_length",
    "pooling_type",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_log_multiplier",
};

/* Suffixes of keys that cannot change a logit, except in architectures whose own tables list them. */
static const char *const harmless[] = {
    "attention.layer_norm_epsilon",
    "rope.scaling.finetuned",
    "tensor_data_layout",
    "vocab_size",
};

static const struct neutral_key {
    const char *name;
    double value;
} neutral[] = {
    {"attention.causal", 1},
    {"embedding_scale", 1},
    {"logit_scale", 1},
    {"residual_scale", 1},
};

/* Namespaces of keys that only describe the file. */
static const char *const describing[] = {"general", "tokenizer", "split", "quantize", "imatrix", "mradermacher"};

static bool is(const char *name, size_t n, const char *wanted)
{
    return strlen(wanted) == n && memcmp(name, wanted, n) == 0;
}

static bool in_list(const char *const *list, size_t n_list, const char *name, size_t n)
{
    for (size_t i = 0; i < n_list; i++)
        if (is(name, n, list[i])) return true;
    return false;
}

/* Reads element i of a key as a number; false is 0, true is 1. */
static bool number_at(const whit_gguf_key *key, uint64_t i, double *number)
{
    bool is_bool = (key->type == WHIT_GGUF_ARRAY ? key->element_type : key->type) == WHIT_GGUF_BOOL;
    if (is_bool) *number = key->data[i] != 0;
    return is_bool || whit_gguf_element_f64(key, i, number);
}

static bool says_nothing(const whit_gguf_key *key)
{
    double number;
    if (key->type == WHIT_GGUF_STRING) return key->size_bytes == 0;
    for (uint64_t i = 0; i < key->n_elems; i++)
        if (!number_at(key, i, &number) || number != 0) return false;
    return true;
}

static bool is_neutral(const whit_gguf_key *key, const char *name, size_t n)
{
    double number;
    for (size_t i = 0; i < COUNT(neutral); i++)
        if (is(name, n, neutral[i].name))
            return key->type != WHIT_GGUF_ARRAY && number_at(key, 0, &number) && number == neutral[i].value;
    return false;
}

/* Returns the part of a key's name after "ARCHITECTURE."; NULL if the key is in another namespace. */
static const char *own_name(const whit_gguf_key *key, const char *architecture, size_t *n)
{
    size_t n_own = strlen(architecture);
    if (key->name_bytes <= n_own || memcmp(key->name, architecture, n_own) != 0 || key->name[n_own] != '.') return NULL;
    *n = key->name_bytes - n_own - 1;
    return key->name + n_own + 1;
}

/* Returns whether a key is "attention.causal": it is the only key whose value "false" changes the computation. */
static bool is_causal_key(const whit_gguf_key *key, const char *architecture)
{
    size_t n = 0;
    const char *name = own_name(key, architecture, &n);
    return name && is(name, n, "attention.causal");
}

/* Returns whether the architecture's own tables contain a key. */
static bool is_of_family(const whit_gguf_architecture *architecture, const char *name, size_t n)
{
    for (const whit_import_number *row = architecture->numbers; row && row->theirs; row++)
        if (is(name, n, row->theirs)) return true;
    for (const char *const *key = architecture->keys; key && *key; key++)
        if (is(name, n, *key)) return true;
    return false;
}

/* Returns whether a key is allowed in the file: its value is 0, false or empty, the importer reads it, it has no
 * effect, or it is outside the architecture's namespace and only describes the model, as texts do. */
static bool is_understood(const whit_gguf_key *key, const whit_gguf_architecture *architecture)
{
    size_t n = 0;
    const char *name = own_name(key, architecture->name, &n);
    /* import_vectors.c reads this key */
    if (is_causal_key(key, architecture->name) && architecture->is_encoder) return true;
    if (says_nothing(key) && !is_causal_key(key, architecture->name)) return true;
    if (name)
        return is_of_family(architecture, name, n) ||
            (architecture->experts && whit_import_gguf_is_of_experts(name, n)) || in_list(used, COUNT(used), name, n) ||
            in_list(harmless, COUNT(harmless), name, n) || is_neutral(key, name, n);
    const char *dot = memchr(key->name, '.', key->name_bytes);
    size_t n_space = dot ? (size_t)(dot - key->name) : key->name_bytes;
    static const char rotation[] = "prism.hadamard."; /* texts in this namespace may change the computation, so they are
                                                       * not allowed */
    const bool is_rotation = key->name_bytes > strlen(rotation) && memcmp(key->name, rotation, strlen(rotation)) == 0;
    return (key->type == WHIT_GGUF_STRING && !is_rotation) ||
        in_list(describing, COUNT(describing), key->name, n_space);
}

/* Returns whether a text contains a word, ignoring case. */
static bool holds_word(const char *text, size_t n, const char *word)
{
    size_t m = strlen(word);
    for (size_t i = 0; i + m <= n; i++)
        if (strncasecmp(text + i, word, m) == 0) return true;
    return false;
}

/* Returns whether a key in the namespace of a trainer or publisher only describes the model: its name contains no word
 * about the computation, and is not the name of a tensor. */
static bool is_passed_over(const whit_gguf *gguf, const whit_gguf_key *key)
{
    static const char *const spaces[] = {"unsloth", "training", "provider"};
    static const char *const words[] = {"rope",     "attention", "attn",   "quant", "scale", "transform", "rotat",
                                        "hadamard", "weight",    "permut", "norm",  "embed", "codebook"};
    const char *dot = memchr(key->name, '.', key->name_bytes);
    if (!dot || !in_list(spaces, COUNT(spaces), key->name, (size_t)(dot - key->name))) return false;
    const char *rest = dot + 1;
    const size_t n = key->name_bytes - (size_t)(rest - key->name);
    for (size_t i = 0; i < COUNT(words); i++)
        if (holds_word(rest, n, words[i])) return false;
    for (size_t i = 0; i < gguf->n_tensors; i++)
        if (gguf->tensors[i].name_bytes == n && memcmp(gguf->tensors[i].name, rest, n) == 0) return false;
    return true;
}

whit_status whit_import_gguf_keys(const whit_gguf *gguf, whit_source *source,
                                  const whit_gguf_architecture *architecture, whit_error *error)
{
    const char *path = source->path;
    for (size_t i = 0; i < gguf->n_keys; i++) {
        const whit_gguf_key *key = &gguf->keys[i];
        if (source->config.hadamard_block && whit_import_gguf_is_of_hadamard(key->name, key->name_bytes)) continue;
        if (is_understood(key, architecture)) continue;
        if (is_passed_over(gguf, key)) {
            WHIT_TRY(whit_source_pass_over(source, key->name, key->name_bytes, error));
            continue;
        }
        const char *reason = is_causal_key(key, architecture->name)
            ? "says that tokens attend to both sides, which is not supported"
            : "is not known, and it may change the result: this file needs a program that knows the key";
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: key '%.*s' %s", path,
                         (int)(key->name_bytes < 80 ? key->name_bytes : 80), key->name, reason);
    }
    return WHIT_OK;
}
