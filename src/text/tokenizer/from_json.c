/* SPDX-License-Identifier: MIT */
#include "tokenizer/from_json.h"

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/json_pipeline.h"
#include "tokenizer/normalize.h"

/* Unigram: how much the score of an unknown character is below the lowest score, as in SentencePiece. */
#define UNKNOWN_PENALTY 10.0

typedef struct reader {
    whit_tokenizer_builder *builder;
    const whit_json *json;
    whit_error *error;
    uint32_t model; /* node of the object "model" */
} reader;

static uint32_t field(const reader *r, uint32_t at, const char *key)
{
    return whit_json_get(r->json, at, key);
}

static bool flag(const reader *r, uint32_t at, const char *key, bool fallback)
{
    return whit_json_bool(r->json, field(r, at, key), fallback);
}

/* ---- the vocabulary ------------------------------------------------------------------------ */

/* Reads {"text": id, ...}. */
static whit_status read_vocabulary(const reader *r)
{
    uint32_t vocabulary = field(r, r->model, "vocab");
    if (whit_json_type_of(r->json, vocabulary) != WHIT_JSON_OBJECT)
        return whit_json_fail(r->json, r->model, r->error, "the model has no vocab");
    for (uint32_t at = whit_json_first(r->json, vocabulary); at != WHIT_JSON_NONE;
         at = whit_json_next(r->json, vocabulary, at)) {
        int64_t id;
        size_t n;
        const char *text = whit_json_string(r->json, at, &n);
        if (!whit_json_i64(r->json, at + 1, &id))
            return whit_json_fail(r->json, at + 1, r->error, "a token id was expected here");
        WHIT_TRY(whit_tokenizer_builder_token(r->builder, id, text, n, 0, WHIT_TOKEN_NORMAL | WHIT_TOKEN_IN_VOCAB,
                                              r->error));
    }
    return whit_tokenizer_builder_index(r->builder, r->error);
}

/* Reads [["text", score], ...], where the index is the id. */
static whit_status read_scored_vocabulary(const reader *r)
{
    uint32_t vocabulary = field(r, r->model, "vocab");
    int64_t id = 0;
    double lowest = 0;
    for (uint32_t at = whit_json_first(r->json, vocabulary); at != WHIT_JSON_NONE;
         at = whit_json_next(r->json, vocabulary, at), id++) {
        uint32_t text_at = whit_json_first(r->json, at);
        size_t n;
        double score;
        const char *text = whit_json_string(r->json, text_at, &n);
        if (!text || !whit_json_f64(r->json, whit_json_next(r->json, at, text_at), &score))
            return whit_json_fail(r->json, at, r->error, "[text, score] was expected here");
        if (id == 0 || score < lowest) lowest = score;
        WHIT_TRY(whit_tokenizer_builder_token(r->builder, id, text, n, score, WHIT_TOKEN_NORMAL | WHIT_TOKEN_IN_VOCAB,
                                              r->error));
    }
    r->builder->has_scores = true;
    r->builder->header.unk_score = lowest - UNKNOWN_PENALTY;
    return whit_tokenizer_builder_index(r->builder, r->error);
}

/* Reads an array of merges, each "a b" or ["a", "b"]. */
static whit_status read_merges(const reader *r)
{
    uint32_t merges = field(r, r->model, "merges");
    for (uint32_t at = whit_json_first(r->json, merges); at != WHIT_JSON_NONE;
         at = whit_json_next(r->json, merges, at)) {
        size_t n_left, n_right;
        const char *left = whit_json_string(r->json, at, &n_left), *right;
        if (left) {
            const char *space = memchr(left, ' ', n_left);
            if (!space || memchr(space + 1, ' ', n_left - (size_t)(space + 1 - left)))
                return whit_json_fail(r->json, at, r->error, "a merge must have two sides and one space");
            n_right = n_left - (size_t)(space + 1 - left);
            n_left = (size_t)(space - left);
            right = space + 1;
        } else {
            uint32_t first = whit_json_first(r->json, at);
            left = whit_json_string(r->json, first, &n_left);
            right = whit_json_string(r->json, whit_json_next(r->json, at, first), &n_right);
            if (!left || !right) return whit_json_fail(r->json, at, r->error, "a merge was expected here");
        }
        whit_status status = whit_tokenizer_builder_merge(r->builder, left, n_left, right, n_right, true, r->error);
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

/* ---- models -------------------------------------------------------------------------------- */

static void read_unknown_token(const reader *r)
{
    size_t n;
    const char *text = whit_json_string(r->json, field(r, r->model, "unk_token"), &n);
    if (text) r->builder->header.unk = whit_tokenizer_builder_find(r->builder, text, n);
}

static whit_status read_affixes(const reader *r, const char *fallback_prefix)
{
    size_t n_prefix, n_suffix;
    const char *prefix = whit_json_string(r->json, field(r, r->model, "continuing_subword_prefix"), &n_prefix);
    const char *suffix = whit_json_string(r->json, field(r, r->model, "end_of_word_suffix"), &n_suffix);
    if (!prefix && fallback_prefix) {
        prefix = fallback_prefix;
        n_prefix = strlen(prefix);
    }
    return whit_tokenizer_builder_affixes(r->builder, prefix, n_prefix, suffix, n_suffix, r->error);
}

static whit_status read_bpe(const reader *r)
{
    whit_tokenizer_header *header = &r->builder->header;
    double dropout = 0;
    header->model = WHIT_TOKENIZER_BPE;
    if (whit_json_f64(r->json, field(r, r->model, "dropout"), &dropout) && dropout != 0) {
        whit_json_fail(r->json, field(r, r->model, "dropout"), r->error,
                       "BPE dropout is not supported: it makes ids random");
        return WHIT_ERROR_FORMAT;
    }
    if (flag(r, r->model, "fuse_unk", false)) header->flags |= WHIT_TOKENIZER_FUSE_UNK;
    if (flag(r, r->model, "byte_fallback", false)) header->flags |= WHIT_TOKENIZER_BYTE_FALLBACK;
    if (flag(r, r->model, "ignore_merges", false)) header->flags |= WHIT_TOKENIZER_IGNORE_MERGES;
    WHIT_TRY(read_vocabulary(r));
    WHIT_TRY(read_affixes(r, NULL));
    WHIT_TRY(read_merges(r));
    read_unknown_token(r);
    return WHIT_OK;
}

static whit_status read_unigram(const reader *r)
{
    whit_tokenizer_header *header = &r->builder->header;
    int64_t unk;
    header->model = WHIT_TOKENIZER_UNIGRAM;
    if (flag(r, r->model, "byte_fallback", false)) header->flags |= WHIT_TOKENIZER_BYTE_FALLBACK;
    WHIT_TRY(read_scored_vocabulary(r));
    size_t n = whit_json_count(r->json, field(r, r->model, "vocab"));
    if (!whit_json_i64(r->json, field(r, r->model, "unk_id"), &unk)) return WHIT_OK;
    if (unk < 0 || (uint64_t)unk >= n)
        return whit_json_fail(r->json, field(r, r->model, "unk_id"), r->error, "unk_id is not the id of a token");
    header->unk = (int32_t)unk;
    return WHIT_OK;
}

static whit_status read_wordpiece(const reader *r)
{
    int64_t longest = 100;
    r->builder->header.model = WHIT_TOKENIZER_WORDPIECE;
    whit_json_i64(r->json, field(r, r->model, "max_input_chars_per_word"), &longest);
    if (longest < 0 || longest > 4096) /* matching takes quadratic time in this number */
        return whit_json_fail(r->json, r->model, r->error, "max_input_chars_per_word is larger than 4,096");
    r->builder->header.max_word_chars = (uint32_t)longest;
    WHIT_TRY(read_vocabulary(r));
    WHIT_TRY(read_affixes(r, "##"));
    read_unknown_token(r);
    return WHIT_OK;
}

static whit_status read_model(const reader *r)
{
    uint32_t type = field(r, r->model, "type");
    bool untyped = whit_json_type_of(r->json, type) <= WHIT_JSON_NULL;
    bool is_list = whit_json_type_of(r->json, field(r, r->model, "vocab")) == WHIT_JSON_ARRAY;
    bool has_merges = field(r, r->model, "merges") != WHIT_JSON_NONE;
    if (whit_json_is(r->json, type, "BPE") || (untyped && has_merges)) return read_bpe(r);
    if (whit_json_is(r->json, type, "Unigram") || (untyped && is_list)) return read_unigram(r);
    if (whit_json_is(r->json, type, "WordPiece") ||
        (untyped && field(r, r->model, "max_input_chars_per_word") != WHIT_JSON_NONE))
        return read_wordpiece(r);
    if (!untyped && !whit_json_is(r->json, type, "WordLevel"))
        return whit_json_fail(r->json, type, r->error, "this kind of model is not known");
    r->builder->header.model = WHIT_TOKENIZER_WORDLEVEL;
    WHIT_TRY(read_vocabulary(r));
    read_unknown_token(r);
    return WHIT_OK;
}

/* ---- added tokens -------------------------------------------------------------------------- */

/* Applies the builder's normalizers to `text`. *result points into one of the buffers `work`, or is `text` if there are
 * no normalizers. `regexes` keeps the compiled patterns for the following tokens. */
static whit_status normalize(const reader *r, const char *text, size_t n, whit_buf work[3], whit_regex **regexes,
                             const uint8_t **result, size_t *n_result)
{
    const whit_tokenizer_step *steps = WHIT_ITEMS(const whit_tokenizer_step, &r->builder->normalize);
    size_t n_steps = r->builder->normalize.size_bytes / sizeof *steps;
    const uint8_t *pool = r->builder->strings.data;
    *result = (const uint8_t *)text;
    *n_result = n;
    for (size_t i = 0; i < n_steps && *n_result; i++) {
        whit_buf *out = &work[i % 2];
        out->size_bytes = 0;
        out->limit_bytes = 64 * n + 65536;
        WHIT_TRY(whit_normalize(&steps[i], pool + steps[i].text_offset, pool + steps[i].content_offset, &regexes[i],
                                &work[2], *result, *n_result, out, r->error));
        *result = out->data;
        *n_result = out->size_bytes;
    }
    return WHIT_OK;
}

static whit_status read_added_token(const reader *r, uint32_t at, whit_buf work[3], whit_regex **regexes)
{
    int64_t id;
    size_t n, n_match;
    const char *text = whit_json_string(r->json, field(r, at, "content"), &n);
    if (!text || !whit_json_i64(r->json, field(r, at, "id"), &id))
        return whit_json_fail(r->json, at, r->error, "an added token must have content and an id");
    if (n == 0) return WHIT_OK;
    int32_t in_vocabulary = whit_tokenizer_builder_find(r->builder, text, n);
    if (in_vocabulary >= 0) id = in_vocabulary;
    bool special = flag(r, at, "special", false);
    WHIT_TRY(whit_tokenizer_builder_token(
        r->builder, id, text, n, 0, special ? WHIT_TOKEN_CONTROL | WHIT_TOKEN_SPECIAL : WHIT_TOKEN_USER, r->error));
    uint32_t flags = special ? WHIT_ADDED_SPECIAL : 0;
    if (flag(r, at, "single_word", false)) flags |= WHIT_ADDED_SINGLE_WORD;
    if (flag(r, at, "lstrip", false)) flags |= WHIT_ADDED_LSTRIP;
    if (flag(r, at, "rstrip", false)) flags |= WHIT_ADDED_RSTRIP;
    bool normalized = flag(r, at, "normalized", !special);
    const uint8_t *match = (const uint8_t *)text;
    n_match = n;
    if (normalized) WHIT_TRY(normalize(r, text, n, work, regexes, &match, &n_match));
    return whit_tokenizer_builder_added(r->builder, (int32_t)id, (const char *)match, n_match, normalized, flags,
                                        r->error);
}

static whit_status read_added_tokens(const reader *r)
{
    uint32_t list = field(r, WHIT_JSON_ROOT, "added_tokens");
    const whit_allocator *allocator = r->builder->allocator;
    whit_buf work[3] = {{.allocator = allocator}, {.allocator = allocator}, {.allocator = allocator}};
    whit_regex *regexes[WHIT_TOKENIZER_MAX_STEPS] = {0};
    whit_status status = WHIT_OK;
    for (uint32_t at = whit_json_first(r->json, list); at != WHIT_JSON_NONE && status == WHIT_OK;
         at = whit_json_next(r->json, list, at))
        status = read_added_token(r, at, work, regexes);
    for (size_t i = 0; i < 3; i++) whit_buf_free(&work[i]);
    for (size_t i = 0; i < WHIT_TOKENIZER_MAX_STEPS; i++) whit_regex_close(regexes[i]);
    return status;
}

/* ---- the whole document -------------------------------------------------------------------- */

static whit_status read_all(const reader *r, const whit_tokenizer_config *config)
{
    whit_tokenizer_builder *builder = r->builder;
    if (whit_json_type_of(r->json, r->model) != WHIT_JSON_OBJECT)
        return whit_json_fail(r->json, WHIT_JSON_ROOT, r->error,
                              "this file has no model, so it is not a tokenizer.json");
    WHIT_TRY(read_model(r));
    WHIT_TRY(whit_json_normalizer(builder, r->json, field(r, 0, "normalizer"), r->error));
    WHIT_TRY(whit_json_pre_tokenizer(builder, r->json, field(r, 0, "pre_tokenizer"), r->error));
    WHIT_TRY(whit_json_post_processor(builder, r->json, field(r, 0, "post_processor"), r->error));
    WHIT_TRY(whit_json_decoder(builder, r->json, field(r, 0, "decoder"), r->error));
    WHIT_TRY(read_added_tokens(r));
    return whit_tokenizer_apply_config(builder, config, r->error);
}

whit_status whit_tokenizer_from_json(const char *name, const char *text, size_t text_bytes,
                                     const whit_tokenizer_config *config, whit_buf *image, whit_error *error)
{
    whit_json json;
    whit_tokenizer_builder builder;
    WHIT_TRY(whit_json_parse(name, text, text_bytes, image->allocator, &json, error));
    whit_tokenizer_builder_init(&builder, name, text_bytes, image->allocator);
    const reader r = {&builder, &json, error, whit_json_get(&json, WHIT_JSON_ROOT, "model")};
    whit_status status = read_all(&r, config);
    if (status == WHIT_OK) status = whit_tokenizer_builder_finish(&builder, image, error);
    whit_tokenizer_builder_close(&builder);
    whit_json_close(&json);
    return status;
}
