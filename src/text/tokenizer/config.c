/* SPDX-License-Identifier: MIT */
#include "tokenizer/config.h"

/* Returns the id of the token that a config file names under `key`, as "text" or {"content": "text"}; -1 if not
 * found. */
static int32_t named_token(const whit_tokenizer_builder *builder, const whit_json *json, const char *key)
{
    if (!json) return -1;
    uint32_t at = whit_json_get(json, WHIT_JSON_ROOT, key);
    size_t n;
    if (whit_json_type_of(json, at) == WHIT_JSON_OBJECT) at = whit_json_get(json, at, "content");
    const char *text = whit_json_string(json, at, &n);
    return text ? whit_tokenizer_builder_find_any(builder, text, n) : -1;
}

static int32_t find_named(const whit_tokenizer_builder *builder, const whit_tokenizer_config *config, const char *key)
{
    int32_t id = named_token(builder, config->tokenizer_config, key);
    return id >= 0 ? id : named_token(builder, config->special_tokens_map, key);
}

/* Reads the id under `key` (only for i = 0), or id i of the array there. Returns false if there is no such number, or
 * it is not from 0 to INT32_MAX. */
static bool numbered_id(const whit_json *json, const char *key, size_t i, int64_t *id)
{
    if (!json) return false;
    uint32_t at = whit_json_get(json, WHIT_JSON_ROOT, key);
    if (whit_json_type_of(json, at) == WHIT_JSON_ARRAY) {
        uint32_t list = at;
        at = whit_json_first(json, list);
        for (; i > 0 && at != WHIT_JSON_NONE; i--) at = whit_json_next(json, list, at);
    }
    return i == 0 && whit_json_i64(json, at, id) && *id >= 0 && *id <= INT32_MAX;
}

whit_status whit_tokenizer_apply_config(whit_tokenizer_builder *builder, const whit_tokenizer_config *config,
                                        whit_error *error)
{
    static const whit_tokenizer_config none = {0};
    whit_tokenizer_header *header = &builder->header;
    int64_t id;
    if (!config) config = &none;
    int32_t bos = find_named(builder, config, "bos_token"), eos = find_named(builder, config, "eos_token");
    int32_t pad = find_named(builder, config, "pad_token");
    if (bos >= 0) header->bos = bos;
    if (eos >= 0) header->eos = eos;
    if (pad >= 0) header->pad = pad;
    const whit_json *numbered[] = {config->generation_config, config->config};
    for (size_t k = 0; k < 2; k++) {
        if (header->bos < 0 && numbered_id(numbered[k], "bos_token_id", 0, &id)) header->bos = (int32_t)id;
        if (header->eos < 0 && numbered_id(numbered[k], "eos_token_id", 0, &id)) header->eos = (int32_t)id;
        for (size_t i = 0; i < 64 && numbered_id(numbered[k], "eos_token_id", i, &id); i++)
            WHIT_TRY(whit_tokenizer_builder_end(builder, id, error));
    }
    return whit_tokenizer_builder_end_names(builder, error);
}

/* ---- added tokens -------------------------------------------------------------------------- */

/* Returns whether the node has this text, as "text" or {"content": "text"}. */
static bool is_text(const whit_json *json, uint32_t at, const char *text, size_t n)
{
    size_t n_named;
    if (whit_json_type_of(json, at) == WHIT_JSON_OBJECT) at = whit_json_get(json, at, "content");
    const char *named = whit_json_string(json, at, &n_named);
    return named && n_named == n && memcmp(named, text, n) == 0;
}

static bool names_special(const whit_json *json, const char *text, size_t n)
{
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
    if (!json) return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (is_text(json, whit_json_get(json, WHIT_JSON_ROOT, keys[i]), text, n)) return true;
    uint32_t list = whit_json_get(json, WHIT_JSON_ROOT, "additional_special_tokens");
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at))
        if (is_text(json, at, text, n)) return true;
    return false;
}

/* Returns whether a token of added_tokens.json, which does not say so itself, is special. For transformers it is
 * special if the other files name it as a special token. But old folders often name only the token that ends a turn,
 * and not the token that begins it; therefore texts that look like special tokens count too. A prompt has the same ids
 * either way. */
static bool is_special(const whit_tokenizer_config *config, const char *text, size_t n)
{
    bool looks_so = n > 4 && memcmp(text, "<|", 2) == 0 && memcmp(text + n - 2, "|>", 2) == 0;
    return looks_so || whit_tokenizer_is_end_name(text, n) || names_special(config->tokenizer_config, text, n) ||
        names_special(config->special_tokens_map, text, n);
}

static int64_t n_rows_of(const whit_tokenizer_config *config)
{
    const whit_json *json = config->config;
    int64_t n_rows;
    if (!json) return INT64_MAX;
    uint32_t text = whit_json_get(json, WHIT_JSON_ROOT, "text_config");
    if (whit_json_i64(json, whit_json_get(json, WHIT_JSON_ROOT, "vocab_size"), &n_rows) ||
        whit_json_i64(json, whit_json_get(json, text, "vocab_size"), &n_rows))
        return n_rows;
    return INT64_MAX;
}

static whit_status add_token(whit_buf *tokens, int64_t n_rows, const whit_config_token *token, whit_error *error)
{
    if (token->id >= n_rows) return WHIT_OK;
    if (!whit_buf_append(tokens, token, sizeof *token))
        return whit_fail_memory(error, "the tokenizer's added tokens", sizeof *token);
    return WHIT_OK;
}

/* Reads {"id": {"content": ..., "special": ...}, ...}. `normalized` is ignored: when transformers reads a
 * tokenizer.model, it searches the raw text for every added token. */
static whit_status read_decoder(const whit_json *json, uint32_t list, int64_t n_rows, whit_buf *tokens,
                                whit_error *error)
{
    static const struct {
        const char *key;
        uint32_t flag;
    } flags[] = {{"special", WHIT_ADDED_SPECIAL},
                 {"single_word", WHIT_ADDED_SINGLE_WORD},
                 {"lstrip", WHIT_ADDED_LSTRIP},
                 {"rstrip", WHIT_ADDED_RSTRIP}};
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at)) {
        size_t n_key;
        const char *key = whit_json_string(json, at, &n_key);
        whit_config_token token = {0};
        token.text = whit_json_string(json, whit_json_get(json, at + 1, "content"), &token.n_bytes);
        for (size_t i = 0; i < n_key && token.id < INT32_MAX / 10; i++)
            token.id = key[i] >= '0' && key[i] <= '9' ? token.id * 10 + (key[i] - '0') : INT32_MAX;
        if (!token.text || token.n_bytes == 0) return whit_json_fail(json, at, error, "an added token has no content");
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
            if (whit_json_bool(json, whit_json_get(json, at + 1, flags[i].key), false)) token.flags |= flags[i].flag;
        WHIT_TRY(add_token(tokens, n_rows, &token, error));
    }
    return WHIT_OK;
}

/* Limit for comparing all added tokens with all names of special tokens; takes a few seconds. */
#define SPECIAL_STEPS (1u << 30)

static uint64_t steps_of(const whit_json *json)
{
    if (!json) return 0;
    uint32_t list = whit_json_get(json, WHIT_JSON_ROOT, "additional_special_tokens");
    return 8 * (uint64_t)whit_json_count(json, WHIT_JSON_ROOT) + whit_json_count(json, list);
}

/* Reads {"text": id, ...}. */
static whit_status read_added_tokens(const whit_tokenizer_config *config, int64_t n_rows, whit_buf *tokens,
                                     whit_error *error)
{
    const whit_json *json = config->added_tokens;
    if (!json || whit_json_type_of(json, WHIT_JSON_ROOT) != WHIT_JSON_OBJECT) return WHIT_OK;
    const uint64_t each = steps_of(config->tokenizer_config) + steps_of(config->special_tokens_map);
    uint64_t steps = 0;
    for (uint32_t at = whit_json_first(json, WHIT_JSON_ROOT); at != WHIT_JSON_NONE;
         at = whit_json_next(json, WHIT_JSON_ROOT, at)) {
        whit_config_token token = {0};
        token.text = whit_json_string(json, at, &token.n_bytes);
        if (!whit_json_i64(json, at + 1, &token.id) || token.id < 0)
            return whit_json_fail(json, at + 1, error, "a token id was expected here");
        if (token.n_bytes == 0 || token.id >= n_rows) continue;
        if ((steps += each) > SPECIAL_STEPS)
            return whit_json_fail(json, at, error, "there are too many added and special tokens");
        if (is_special(config, token.text, token.n_bytes)) token.flags = WHIT_ADDED_SPECIAL;
        WHIT_TRY(add_token(tokens, n_rows, &token, error));
    }
    return WHIT_OK;
}

whit_status whit_tokenizer_config_tokens(const whit_tokenizer_config *config, whit_buf *tokens, whit_error *error)
{
    if (!config) return WHIT_OK;
    const whit_json *json = config->tokenizer_config;
    uint32_t list = json ? whit_json_get(json, WHIT_JSON_ROOT, "added_tokens_decoder") : WHIT_JSON_NONE;
    return list != WHIT_JSON_NONE ? read_decoder(json, list, n_rows_of(config), tokens, error)
                                  : read_added_tokens(config, n_rows_of(config), tokens, error);
}

int whit_tokenizer_config_flag(const whit_tokenizer_config *config, const char *key)
{
    const whit_json *json = config ? config->tokenizer_config : NULL;
    if (!json) return -1;
    uint32_t at = whit_json_get(json, WHIT_JSON_ROOT, key);
    return whit_json_type_of(json, at) == WHIT_JSON_BOOL ? whit_json_bool(json, at, false) : -1;
}
