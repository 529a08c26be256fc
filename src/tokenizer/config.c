/* SPDX-License-Identifier: MIT */
#include "tokenizer/config.h"

/* A token named in a config file, as "text" or {"content": "text"}; -1 where it is not. */
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

/* A number, or the i-th of a list of numbers; false where there is no such. */
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

int whit_tokenizer_config_flag(const whit_tokenizer_config *config, const char *key)
{
    const whit_json *json = config ? config->tokenizer_config : NULL;
    if (!json) return -1;
    uint32_t at = whit_json_get(json, WHIT_JSON_ROOT, key);
    return whit_json_type_of(json, at) == WHIT_JSON_BOOL ? whit_json_bool(json, at, false) : -1;
}
