/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "tokenizer/json_pipeline.h"
#include "base/items.h"

#include "tokenizer/base64.h"
#include "tokenizer/normalize.h"

/* State of the conversion of a normalizer, pre_tokenizer, post_processor or decoder. */
typedef struct reader {
    whit_tokenizer_builder *builder;
    const whit_json *json;
    whit_error *error;
    whit_buf *steps; /* the list to which steps are appended; NULL for a post_processor */
} reader;

static uint32_t field(const reader *r, uint32_t at, const char *key)
{
    return whit_json_get(r->json, at, key);
}

static bool type_is(const reader *r, uint32_t at, const char *type)
{
    return whit_json_is(r->json, field(r, at, "type"), type);
}

static bool is_absent(const reader *r, uint32_t at)
{
    return whit_json_type_of(r->json, at) <= WHIT_JSON_NULL;
}

static whit_status refuse_node(const reader *r, uint32_t at, const char *what)
{
    size_t n;
    const char *type = whit_json_string(r->json, field(r, at, "type"), &n);
    whit_json_fail(r->json, at, r->error, "%s '%.*s' is not supported", what, (int)(n < 60 ? n : 60),
                   whit_or_empty(type));
    if (r->error) r->error->status = WHIT_ERROR_UNSUPPORTED;
    return WHIT_ERROR_UNSUPPORTED;
}

/* Adds a step whose two strings are JSON strings (WHIT_JSON_NONE: empty). */
static whit_status add_step(const reader *r, whit_tokenizer_step step, uint32_t text, uint32_t content)
{
    size_t text_bytes, content_bytes;
    const char *text_start = whit_json_string(r->json, text, &text_bytes);
    const char *content_start = whit_json_string(r->json, content, &content_bytes);
    return whit_tokenizer_builder_step(r->builder, r->steps, step, text_start, text_bytes, content_start, content_bytes,
                                       r->error);
}

static whit_status add_plain(const reader *r, uint32_t kind)
{
    return add_step(r, (whit_tokenizer_step){.kind = kind}, WHIT_JSON_NONE, WHIT_JSON_NONE);
}

/* Reads an object at a node. read_members calls such a function for each member of a Sequence. Sequences may be nested;
 * the JSON parser's depth limits the recursion. */
typedef whit_status read_fn(const reader *r, uint32_t at);

static whit_status read_members(const reader *r, uint32_t list, read_fn *read)
{
    for (uint32_t at = whit_json_first(r->json, list); at != WHIT_JSON_NONE; at = whit_json_next(r->json, list, at))
        WHIT_TRY(read(r, at));
    return WHIT_OK;
}

/* Reads {"String": text} or {"Regex": pattern}. The latter sets WHIT_STEP_FLAG_REGEX in *flags. */
static whit_status read_pattern(const reader *r, uint32_t at, uint32_t *text, uint32_t *flags)
{
    uint32_t pattern = field(r, at, "pattern"), regex = field(r, pattern, "Regex");
    *text = regex != WHIT_JSON_NONE ? regex : field(r, pattern, "String");
    if (whit_json_type_of(r->json, pattern) == WHIT_JSON_STRING) *text = pattern;
    if (regex != WHIT_JSON_NONE) *flags |= WHIT_STEP_FLAG_REGEX;
    if (whit_json_type_of(r->json, *text) != WHIT_JSON_STRING)
        return whit_json_fail(r->json, at, r->error, "the pattern (String or Regex) is missing");
    return WHIT_OK;
}

static whit_status add_replace(const reader *r, uint32_t at)
{
    whit_tokenizer_step step = {.kind = WHIT_STEP_REPLACE};
    uint32_t text, content = field(r, at, "content");
    WHIT_TRY(read_pattern(r, at, &text, &step.flags));
    if (whit_json_type_of(r->json, content) != WHIT_JSON_STRING)
        return whit_json_fail(r->json, at, r->error, "Replace needs its content");
    return add_step(r, step, text, content);
}

/* ---- normalizers --------------------------------------------------------------------------- */

static whit_status add_charsmap(const reader *r, uint32_t at)
{
    size_t n;
    const char *text = whit_json_string(r->json, field(r, at, "precompiled_charsmap"), &n);
    if (!text) return whit_json_fail(r->json, at, r->error, "precompiled_charsmap is missing");
    if (n == 0) return WHIT_OK;
    whit_buf map = {.allocator = r->builder->allocator};
    whit_status status;
    if (!whit_base64_decode(text, n, &map))
        status = map.failed ? whit_fail_memory(r->error, "the tokenizer's character map", n)
                            : whit_json_fail(r->json, at, r->error, "precompiled_charsmap is not base64");
    else if (!whit_charsmap_check(map.data, map.size_bytes))
        status = whit_json_fail(r->json, at, r->error, "precompiled_charsmap is damaged");
    else
        status = whit_tokenizer_builder_step(r->builder, r->steps, (whit_tokenizer_step){.kind = WHIT_STEP_PRECOMPILED},
                                             whit_chars(&map), map.size_bytes, NULL, 0, r->error);
    whit_buf_free(&map);
    return status;
}

/* Adds BERT's normalizer as several steps. If strip_accents is absent, it has the value of lowercase. */
static whit_status add_bert(const reader *r, uint32_t at)
{
    const bool lowers = whit_json_bool(r->json, field(r, at, "lowercase"), true);
    const bool strips = whit_json_bool(r->json, field(r, at, "strip_accents"), lowers);
    if (whit_json_bool(r->json, field(r, at, "clean_text"), true)) WHIT_TRY(add_plain(r, WHIT_STEP_CLEAN));
    if (whit_json_bool(r->json, field(r, at, "handle_chinese_chars"), true))
        WHIT_TRY(add_plain(r, WHIT_STEP_SPACE_HAN));
    if (strips) WHIT_TRY(add_plain(r, WHIT_STEP_NFD));
    if (strips)
        WHIT_TRY(add_step(r, (whit_tokenizer_step){.kind = WHIT_STEP_STRIP_ACCENTS, .a = 1}, WHIT_JSON_NONE,
                          WHIT_JSON_NONE));
    return lowers ? add_plain(r, WHIT_STEP_LOWERCASE) : WHIT_OK;
}

static whit_status read_normalizer(const reader *r, uint32_t at)
{
    static const struct {
        const char *type;
        uint32_t kind;
    } plain[] = {
        {"NFC", WHIT_STEP_NFC},
        {"NFD", WHIT_STEP_NFD},
        {"NFKC", WHIT_STEP_NFKC},
        {"NFKD", WHIT_STEP_NFKD},
        {"Lowercase", WHIT_STEP_LOWERCASE},
        {"StripAccents", WHIT_STEP_STRIP_ACCENTS},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (type_is(r, at, plain[i].type)) return add_plain(r, plain[i].kind);
    if (type_is(r, at, "Sequence")) return read_members(r, field(r, at, "normalizers"), read_normalizer);
    if (type_is(r, at, "BertNormalizer")) return add_bert(r, at);
    if (type_is(r, at, "Replace")) return add_replace(r, at);
    if (type_is(r, at, "Precompiled")) return add_charsmap(r, at);
    if (type_is(r, at, "Prepend"))
        return add_step(r, (whit_tokenizer_step){.kind = WHIT_STEP_PREPEND}, field(r, at, "prepend"), WHIT_JSON_NONE);
    if (type_is(r, at, "Strip"))
        return add_step(r,
                        (whit_tokenizer_step){.kind = WHIT_STEP_STRIP,
                                              .a = whit_json_bool(r->json, field(r, at, "strip_left"), true),
                                              .b = whit_json_bool(r->json, field(r, at, "strip_right"), true)},
                        WHIT_JSON_NONE, WHIT_JSON_NONE);
    return refuse_node(r, at, "normalizer");
}

whit_status whit_json_normalizer(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at, whit_error *error)
{
    const reader r = {builder, json, error, &builder->normalize};
    return is_absent(&r, at) ? WHIT_OK : read_normalizer(&r, at);
}

/* ---- pre-tokenizers ------------------------------------------------------------------------ */

static whit_status read_behaviour(const reader *r, uint32_t at, uint32_t fallback, uint32_t *value)
{
    static const char *const names[] = {
        [WHIT_SPLIT_REMOVED] = "Removed",
        [WHIT_SPLIT_ISOLATED] = "Isolated",
        [WHIT_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [WHIT_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [WHIT_SPLIT_CONTIGUOUS] = "Contiguous",
    };
    uint32_t behaviour = field(r, at, "behavior");
    *value = fallback;
    if (behaviour == WHIT_JSON_NONE) return WHIT_OK;
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (whit_json_is(r->json, behaviour, names[i])) {
            *value = i;
            return WHIT_OK;
        }
    return whit_json_fail(r->json, behaviour, r->error, "this behavior is not known");
}

static whit_status add_split(const reader *r, uint32_t at)
{
    whit_tokenizer_step step = {.kind = WHIT_STEP_SPLIT};
    uint32_t text;
    WHIT_TRY(read_pattern(r, at, &text, &step.flags));
    WHIT_TRY(read_behaviour(r, at, WHIT_SPLIT_REMOVED, &step.a));
    if (whit_json_bool(r->json, field(r, at, "invert"), false)) step.flags |= WHIT_STEP_FLAG_INVERT;
    return add_step(r, step, text, WHIT_JSON_NONE);
}

static whit_status add_byte_level(const reader *r, uint32_t at)
{
    whit_tokenizer_step step = {.kind = WHIT_STEP_BYTE_LEVEL};
    if (whit_json_bool(r->json, field(r, at, "add_prefix_space"), true)) step.flags |= WHIT_STEP_FLAG_PREFIX_SPACE;
    if (whit_json_bool(r->json, field(r, at, "use_regex"), true)) step.flags |= WHIT_STEP_FLAG_REGEX;
    r->builder->header.flags |= WHIT_TOKENIZER_BYTE_LEVEL;
    return add_step(r, step, WHIT_JSON_NONE, WHIT_JSON_NONE);
}

/* Adds Metaspace, as a pre-tokenizer or decoder. Old files have add_prefix_space, new ones prepend_scheme. */
static whit_status add_metaspace(const reader *r, uint32_t at)
{
    whit_tokenizer_step step = {.kind = WHIT_STEP_METASPACE, .a = WHIT_PREPEND_ALWAYS};
    uint32_t scheme = field(r, at, "prepend_scheme");
    if (whit_json_is(r->json, scheme, "first"))
        step.a = WHIT_PREPEND_FIRST;
    else if (whit_json_is(r->json, scheme, "never"))
        step.a = WHIT_PREPEND_NEVER;
    else if (!is_absent(r, scheme) && !whit_json_is(r->json, scheme, "always"))
        return whit_json_fail(r->json, scheme, r->error, "this prepend_scheme is not known");
    if (!whit_json_bool(r->json, field(r, at, "add_prefix_space"), true)) {
        if (!is_absent(r, scheme) && step.a != WHIT_PREPEND_NEVER)
            return whit_json_fail(r->json, scheme, r->error,
                                  "this prepend_scheme contradicts add_prefix_space; only one of them can be meant");
        step.a = WHIT_PREPEND_NEVER;
    }
    if (whit_json_bool(r->json, field(r, at, "split"), true)) step.flags |= WHIT_STEP_FLAG_SPLIT;
    return add_step(r, step, field(r, at, "replacement"), WHIT_JSON_NONE);
}

static whit_status read_pre_tokenizer(const reader *r, uint32_t at)
{
    whit_tokenizer_step step = {0};
    if (type_is(r, at, "Sequence")) return read_members(r, field(r, at, "pretokenizers"), read_pre_tokenizer);
    if (type_is(r, at, "Split")) return add_split(r, at);
    if (type_is(r, at, "ByteLevel")) return add_byte_level(r, at);
    if (type_is(r, at, "Metaspace")) return add_metaspace(r, at);
    if (type_is(r, at, "Whitespace")) return add_plain(r, WHIT_STEP_WHITESPACE);
    if (type_is(r, at, "WhitespaceSplit")) return add_plain(r, WHIT_STEP_WHITESPACE_SPLIT);
    if (type_is(r, at, "BertPreTokenizer")) return add_plain(r, WHIT_STEP_BERT);
    if (type_is(r, at, "Digits")) {
        step.kind = WHIT_STEP_DIGITS;
        step.a = whit_json_bool(r->json, field(r, at, "individual_digits"), false);
        return add_step(r, step, WHIT_JSON_NONE, WHIT_JSON_NONE);
    }
    if (type_is(r, at, "Punctuation")) {
        step.kind = WHIT_STEP_PUNCTUATION;
        WHIT_TRY(read_behaviour(r, at, WHIT_SPLIT_ISOLATED, &step.a));
        return add_step(r, step, WHIT_JSON_NONE, WHIT_JSON_NONE);
    }
    if (type_is(r, at, "CharDelimiterSplit")) {
        step.kind = WHIT_STEP_CHAR_SPLIT;
        return add_step(r, step, field(r, at, "delimiter"), WHIT_JSON_NONE);
    }
    return refuse_node(r, at, "pre-tokenizer");
}

whit_status whit_json_pre_tokenizer(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                    whit_error *error)
{
    const reader r = {builder, json, error, &builder->split};
    return is_absent(&r, at) ? WHIT_OK : read_pre_tokenizer(&r, at);
}

/* ---- post-processors ----------------------------------------------------------------------- */

/* Inserts `ids` before the ids that are added so far, because each post-processor works on the result of the preceding
 * one. */
static whit_status put_in_front(const reader *r, whit_buf *ids)
{
    whit_buf *before = &r->builder->before;
    if (!whit_buf_append(ids, before->data, before->size_bytes))
        return whit_fail_memory(r->error, "the chat template", before->size_bytes);
    before->size_bytes = 0;
    if (!whit_buf_append(before, ids->data, ids->size_bytes))
        return whit_fail_memory(r->error, "the chat template", ids->size_bytes);
    return WHIT_OK;
}

static whit_status add_id(const reader *r, uint32_t at, whit_buf *ids)
{
    int64_t id;
    if (!whit_json_i64(r->json, at, &id)) return whit_json_fail(r->json, at, r->error, "a token id was expected here");
    return whit_tokenizer_builder_id(r->builder, ids, id, r->error);
}

/* Appends the ids of a special token that a template names. */
static whit_status add_template_ids(const reader *r, uint32_t processor, uint32_t token, whit_buf *ids)
{
    uint32_t name = field(r, token, "id"), tokens = field(r, processor, "special_tokens");
    size_t n_name, n;
    const char *wanted = whit_json_string(r->json, name, &n_name);
    for (uint32_t at = whit_json_first(r->json, tokens); at != WHIT_JSON_NONE && wanted;
         at = whit_json_next(r->json, tokens, at)) {
        const char *key = whit_json_string(r->json, at, &n);
        if (n != n_name || memcmp(key, wanted, n) != 0) continue;
        uint32_t list = field(r, at + 1, "ids");
        for (uint32_t id = whit_json_first(r->json, list); id != WHIT_JSON_NONE; id = whit_json_next(r->json, list, id))
            WHIT_TRY(add_id(r, id, ids));
        return WHIT_OK;
    }
    return whit_json_fail(r->json, token, r->error, "this template token is not in special_tokens");
}

static whit_status read_template(const reader *r, uint32_t at, whit_buf *front)
{
    enum { MOST_PIECES = 64 }; /* limit, because each piece is searched for among all special tokens */
    uint32_t single = field(r, at, "single"), n_pieces = 0;
    bool seen = false;
    for (uint32_t piece = whit_json_first(r->json, single); piece != WHIT_JSON_NONE;
         piece = whit_json_next(r->json, single, piece)) {
        uint32_t token = field(r, piece, "SpecialToken");
        if (n_pieces++ == MOST_PIECES)
            return whit_json_fail(r->json, piece, r->error, "the template has more than 64 pieces");
        if (token != WHIT_JSON_NONE) {
            WHIT_TRY(add_template_ids(r, at, token, seen ? &r->builder->after : front));
        } else if (field(r, piece, "Sequence") != WHIT_JSON_NONE && !seen) {
            seen = true;
        } else {
            return whit_json_fail(r->json, piece, r->error,
                                  "a template for one text must have SpecialTokens and one Sequence");
        }
    }
    if (!seen) return whit_json_fail(r->json, at, r->error, "the template has no place for the text");
    return put_in_front(r, front);
}

/* Reads the pairs ["text", id] of cls and sep, which are put before and after a text. */
static whit_status read_pair(const reader *r, uint32_t at, whit_buf *front)
{
    uint32_t cls = field(r, at, "cls"), sep = field(r, at, "sep");
    WHIT_TRY(add_id(r, whit_json_next(r->json, cls, whit_json_first(r->json, cls)), front));
    WHIT_TRY(add_id(r, whit_json_next(r->json, sep, whit_json_first(r->json, sep)), &r->builder->after));
    return put_in_front(r, front);
}

static whit_status read_post_processor(const reader *r, uint32_t at)
{
    if (type_is(r, at, "Sequence")) return read_members(r, field(r, at, "processors"), read_post_processor);
    if (type_is(r, at, "ByteLevel")) return WHIT_OK; /* this post-processor changes offsets, but no ids */
    whit_buf front = {.allocator = r->builder->allocator};
    whit_status status;
    if (type_is(r, at, "TemplateProcessing"))
        status = read_template(r, at, &front);
    else if (type_is(r, at, "RobertaProcessing") || type_is(r, at, "BertProcessing"))
        status = read_pair(r, at, &front);
    else
        status = refuse_node(r, at, "post-processor");
    whit_buf_free(&front);
    return status;
}

whit_status whit_json_post_processor(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at,
                                     whit_error *error)
{
    const reader r = {builder, json, error, NULL};
    return is_absent(&r, at) ? WHIT_OK : read_post_processor(&r, at);
}

/* ---- decoders ------------------------------------------------------------------------------ */

static whit_status add_strip(const reader *r, uint32_t at)
{
    int64_t start = 0, stop = 0;
    whit_json_i64(r->json, field(r, at, "start"), &start);
    whit_json_i64(r->json, field(r, at, "stop"), &stop);
    if (start < 0 || start > INT32_MAX || stop < 0 || stop > INT32_MAX)
        return whit_json_fail(r->json, at, r->error, "start and stop must be from 0 to 2147483647");
    return add_step(r, (whit_tokenizer_step){.kind = WHIT_STEP_STRIP_CHAR, .a = (uint32_t)start, .b = (uint32_t)stop},
                    field(r, at, "content"), WHIT_JSON_NONE);
}

static whit_status read_decoder(const reader *r, uint32_t at)
{
    if (type_is(r, at, "Sequence")) return read_members(r, field(r, at, "decoders"), read_decoder);
    if (type_is(r, at, "ByteLevel")) return add_plain(r, WHIT_STEP_BYTE_LEVEL);
    if (type_is(r, at, "ByteFallback")) return add_plain(r, WHIT_STEP_BYTE_FALLBACK);
    if (type_is(r, at, "Fuse")) return add_plain(r, WHIT_STEP_FUSE);
    if (type_is(r, at, "Replace")) return add_replace(r, at);
    if (type_is(r, at, "Strip")) return add_strip(r, at);
    if (type_is(r, at, "Metaspace")) return add_metaspace(r, at);
    if (type_is(r, at, "WordPiece"))
        return add_step(r,
                        (whit_tokenizer_step){.kind = WHIT_STEP_WORDPIECE,
                                              .a = whit_json_bool(r->json, field(r, at, "cleanup"), true)},
                        field(r, at, "prefix"), WHIT_JSON_NONE);
    if (type_is(r, at, "BPEDecoder"))
        return add_step(r, (whit_tokenizer_step){.kind = WHIT_STEP_SUFFIX}, field(r, at, "suffix"), WHIT_JSON_NONE);
    return refuse_node(r, at, "decoder");
}

whit_status whit_json_decoder(whit_tokenizer_builder *builder, const whit_json *json, uint32_t at, whit_error *error)
{
    const reader r = {builder, json, error, &builder->decode};
    return is_absent(&r, at) ? add_plain(&r, WHIT_STEP_JOIN_SPACE) : read_decoder(&r, at);
}
