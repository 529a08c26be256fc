/* SPDX-License-Identifier: MIT */
#include "tokenizer/from_gguf.h"
#include "base/items.h"

#include "tokenizer/vocabulary.h"

static whit_status read_texts(const whit_gguf *gguf, const char *key, whit_buf *texts, size_t *n, whit_error *error)
{
    const whit_gguf_key *array;
    whit_text text;
    WHIT_TRY(whit_gguf_array(gguf, key, WHIT_GGUF_STRING, &array, error));
    whit_gguf_strings strings = whit_gguf_strings_of(array);
    while (whit_gguf_strings_next(&strings, &text.data, &text.n_bytes))
        if (!whit_buf_append(texts, &text, sizeof text))
            return whit_fail_memory(error, "the tokenizer's vocabulary", texts->size_bytes);
    *n = texts->size_bytes / sizeof text;
    return WHIT_OK;
}

/* Reads an array of n numbers and appends them to `values` as f32 or i32. *present is false if the key is absent. */
static whit_status read_numbers(const whit_gguf *gguf, const char *name, const char *key, bool as_float, size_t n,
                                whit_buf *values, bool *present, whit_error *error)
{
    const whit_gguf_key *array = whit_gguf_find(gguf, key);
    *present = array != NULL;
    if (!array) return WHIT_OK;
    if (array->type != WHIT_GGUF_ARRAY || array->n_elems != n)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: %s does not have one number for each token: the file is damaged", name, key);
    for (size_t i = 0; i < n; i++) {
        double number = 0;
        int64_t integer = 0;
        bool ok = as_float ? whit_gguf_element_f64(array, i, &number) : whit_gguf_element_i64(array, i, &integer);
        if (!ok || integer < INT32_MIN || integer > INT32_MAX)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s[%zu] is not a number: the file is damaged", name, key,
                             i);
        float narrow = (float)number;
        int32_t whole = (int32_t)integer;
        const void *value = as_float ? (const void *)&narrow : (const void *)&whole;
        if (!whit_buf_append(values, value, 4))
            return whit_fail_memory(error, "the tokenizer's vocabulary", values->size_bytes);
    }
    return WHIT_OK;
}

/* Reads a token id; *id is unchanged if the key is absent. */
static whit_status read_id(const whit_gguf *gguf, const char *key, int64_t *id, whit_error *error)
{
    WHIT_TRY(whit_gguf_i64(gguf, key, id, error));
    if (*id == UINT32_MAX) *id = -1; /* -1 that was stored as unsigned */
    return WHIT_OK;
}

static whit_status read_flag(const whit_gguf *gguf, const char *key, int *flag, whit_error *error)
{
    bool value = false;
    *flag = -1;
    if (!whit_gguf_find(gguf, key)) return WHIT_OK;
    WHIT_TRY(whit_gguf_bool(gguf, key, &value, error));
    *flag = value;
    return WHIT_OK;
}

static bool says(const whit_gguf *gguf, const char *key)
{
    bool value = false;
    return whit_gguf_find(gguf, key) && whit_gguf_bool(gguf, key, &value, NULL) == WHIT_OK && value;
}

/* Sets the defaults for keys that the file lacks, as in llama.cpp. Files that whit has exported say explicitly if a
 * token does not exist. */
static void set_defaults(const whit_gguf *gguf, whit_vocabulary *v)
{
    if (v->kind == WHIT_VOCABULARY_SPM) {
        v->unk = says(gguf, WHIT_GGUF_NO_UNKNOWN) ? -1 : 0;
        v->bos = says(gguf, WHIT_GGUF_NO_BOS) ? -1 : 1;
        v->eos = says(gguf, WHIT_GGUF_NO_EOS) ? -1 : 2;
    } else if (v->kind == WHIT_VOCABULARY_WORDPIECE) { /* the ids in BERT's own vocabularies */
        v->pad = 0;
        v->unk = 100;
        v->bos = 101;
        v->eos = 102;
        v->add_eos = 1;
    } else if (v->kind == WHIT_VOCABULARY_UNIGRAM) {
        v->pad = 0;
        v->eos = 1;
        v->unk = 2;
    }
}

static whit_status read_vocabulary(const whit_gguf *gguf, whit_vocabulary *v, whit_buf buffers[4], whit_error *error)
{
    bool has_scores, has_types;
    WHIT_TRY(whit_gguf_string(gguf, "tokenizer.ggml.pre", &v->pre.data, &v->pre.n_bytes, error));
    WHIT_TRY(read_texts(gguf, "tokenizer.ggml.tokens", &buffers[0], &v->n_tokens, error));
    WHIT_TRY(read_texts(gguf, "tokenizer.ggml.merges", &buffers[1], &v->n_merges, error));
    WHIT_TRY(read_numbers(gguf, v->name, "tokenizer.ggml.scores", true, v->n_tokens, &buffers[2], &has_scores, error));
    WHIT_TRY(
        read_numbers(gguf, v->name, "tokenizer.ggml.token_type", false, v->n_tokens, &buffers[3], &has_types, error));
    v->tokens = WHIT_ITEMS(const whit_text, &buffers[0]);
    v->merges = WHIT_ITEMS(const whit_text, &buffers[1]);
    v->scores = has_scores ? WHIT_ITEMS(const float, &buffers[2]) : NULL;
    v->types = has_types ? WHIT_ITEMS(const int32_t, &buffers[3]) : NULL;
    set_defaults(gguf, v);
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.bos_token_id", &v->bos, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.eos_token_id", &v->eos, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.unknown_token_id", &v->unk, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.padding_token_id", &v->pad, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.eot_token_id", &v->eot, error));
    WHIT_TRY(read_id(gguf, "tokenizer.ggml.eom_token_id", &v->eom, error));
    WHIT_TRY(read_flag(gguf, "tokenizer.ggml.add_bos_token", &v->add_bos, error));
    WHIT_TRY(read_flag(gguf, "tokenizer.ggml.add_eos_token", &v->add_eos, error));
    /* Every text gets [CLS] before and [SEP] after it, regardless of other keys. */
    if (v->kind == WHIT_VOCABULARY_WORDPIECE) {
        bool lowers = true;
        WHIT_TRY(read_id(gguf, "tokenizer.ggml.cls_token_id", &v->bos, error));
        WHIT_TRY(read_id(gguf, "tokenizer.ggml.seperator_token_id", &v->eos, error));
        WHIT_TRY(whit_gguf_bool(gguf, "tokenizer.ggml.normalizer.lowercase", &lowers, error));
        v->keeps_case = !lowers;
        v->add_bos = v->add_eos = 1;
    }
    if (v->kind == WHIT_VOCABULARY_UNIGRAM && v->add_eos < 0) v->add_eos = 1; /* llama.cpp's default */
    /* llama.cpp uses this key for Unigram only. */
    if (v->kind == WHIT_VOCABULARY_UNIGRAM)
        WHIT_TRY(whit_gguf_bool(gguf, "tokenizer.ggml.remove_extra_whitespaces", &v->collapse_spaces, error));
    return read_flag(gguf, "tokenizer.ggml.add_space_prefix", &v->add_space_prefix, error);
}

/* Finds SentencePiece's character map, which is an array of bytes; it is not copied. */
static void read_charsmap(const whit_gguf *gguf, whit_vocabulary *v)
{
    const whit_gguf_key *key = whit_gguf_find(gguf, "tokenizer.ggml.precompiled_charsmap");
    bool bytes =
        key && key->type == WHIT_GGUF_ARRAY && (key->element_type == WHIT_GGUF_U8 || key->element_type == WHIT_GGUF_I8);
    if (bytes) v->charsmap = (whit_text){(const char *)key->data, (size_t)key->size_bytes};
}

static bool text_is(whit_text text, const char *wanted)
{
    return text.n_bytes == strlen(wanted) && memcmp(text.data, wanted, text.n_bytes) == 0;
}

whit_status whit_tokenizer_from_gguf(const whit_gguf *gguf, const char *name, bool *found, whit_buf *image,
                                     whit_error *error)
{
    whit_text model = {0};
    whit_buf buffers[4] = {{.allocator = image->allocator},
                           {.allocator = image->allocator},
                           {.allocator = image->allocator},
                           {.allocator = image->allocator}};
    *found = false;
    WHIT_TRY(whit_gguf_string(gguf, "tokenizer.ggml.model", &model.data, &model.n_bytes, error));
    if (!model.data || text_is(model, "no_vocab") || text_is(model, "none")) return WHIT_OK;
    whit_vocabulary_kind kind = WHIT_VOCABULARY_BYTE_LEVEL;
    if (text_is(model, "llama"))
        kind = WHIT_VOCABULARY_SPM;
    else if (text_is(model, "t5"))
        kind = WHIT_VOCABULARY_UNIGRAM;
    else if (text_is(model, "bert"))
        kind = WHIT_VOCABULARY_WORDPIECE;
    whit_vocabulary v = whit_vocabulary_init(name, kind);
    if (v.kind == WHIT_VOCABULARY_BYTE_LEVEL && !text_is(model, "gpt2"))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tokenizer.ggml.model '%.*s' is not supported (llama, gpt2, t5, bert are)", name,
                         (int)(model.n_bytes < 80 ? model.n_bytes : 80), model.data);
    read_charsmap(gguf, &v);
    whit_status status = read_vocabulary(gguf, &v, buffers, error);
    if (status == WHIT_OK) status = whit_tokenizer_from_vocabulary(&v, image, error);
    *found = status == WHIT_OK;
    for (size_t i = 0; i < 4; i++) whit_buf_free(&buffers[i]);
    return status;
}
