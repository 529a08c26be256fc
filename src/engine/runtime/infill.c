/* SPDX-License-Identifier: MIT
 * Prompts that ask for the text between two texts, for models trained with fill-in-the-middle tokens (Bavarian et al.
 * 2022, arXiv:2207.14255). Models do not declare these tokens, so they are found by their text. */
#include "runtime/model.h"
#include "base/items.h"
#include "runtime/text.h"

#include <string.h>

struct style {
    const char *prefix, *suffix, *middle; /* tokens before the two texts, and before the answer; middle NULL: the
                                           * answer follows the second text directly */
    bool suffix_first;
};
static const struct style styles[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", false}, /* Qwen2.5-Coder, CodeGemma */
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", false},       /* StarCoder, Granite, Refact */
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", false},       /* SantaCoder */
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", false}, /* DeepSeek-Coder */
    {"▁<PRE>", "▁<SUF>", "▁<MID>", false},                         /* Code Llama */
    {"<PRE>", "<SUF>", "<MID>", false},
    {"[PREFIX]", "[SUFFIX]", NULL, true}, /* Codestral */
};

/* Sets *id to the token if `text` is a single token, else to -1. */
static whit_status find_token(const whit_model *model, const char *text, int32_t *id, whit_error *error)
{
    *id = -1;
    whit_buf ids = {.allocator = model->allocator};
    whit_encode_options options = {.parse_special = true};
    whit_status status = whit_model_encode(model, text, strlen(text), &options, &ids, error);
    if (status == WHIT_OK && ids.size_bytes == sizeof *id) memcpy(id, ids.data, sizeof *id);
    whit_buf_free(&ids);
    return status;
}

static whit_status has_style(const whit_model *model, const struct style *style, bool *has, whit_error *error)
{
    int32_t prefix, suffix, middle = -2;
    *has = false;
    WHIT_TRY(find_token(model, style->prefix, &prefix, error));
    if (prefix < 0) return WHIT_OK;
    WHIT_TRY(find_token(model, style->suffix, &suffix, error));
    if (style->middle) WHIT_TRY(find_token(model, style->middle, &middle, error));
    /* Unknown texts may all become the same token, so equal ids mean that the model does not have these tokens. */
    *has = suffix >= 0 && middle != -1 && prefix != suffix && prefix != middle && suffix != middle;
    return WHIT_OK;
}

static whit_status encode_parts(const whit_model *model, const struct style *style, const char *prefix,
                                size_t prefix_bytes, const char *suffix, size_t suffix_bytes, whit_buf *prompt,
                                whit_buf *ids, whit_error *error)
{
    const char *mark[2] = {style->prefix, style->suffix}, *text[2] = {prefix, suffix};
    size_t n[2] = {prefix_bytes, suffix_bytes};
    whit_text_range plain[2];
    size_t n_plain = 0;
    bool whole = true;
    for (int i = 0; i < 2; i++) {
        int which = style->suffix_first ? 1 - i : i;
        whole = whole && whit_buf_append_str(prompt, mark[which]);
        size_t start = prompt->size_bytes;
        if (!n[which]) continue;
        whole = whole && whit_buf_append(prompt, text[which], n[which]);
        plain[n_plain++] = (whit_text_range){start, prompt->size_bytes};
    }
    if (style->middle) whole = whole && whit_buf_append_str(prompt, style->middle);
    if (!whole) return whit_fail_memory(error, "a prompt of two texts", prefix_bytes + suffix_bytes);
    whit_encode_options options = {.add_special = true, .parse_special = true, .plain = plain, .n_plain = n_plain};
    return whit_model_encode(model, whit_chars(prompt), prompt->size_bytes, &options, ids, error);
}

whit_status whit_tokenize_infill(const whit_model *model, const char *prefix, size_t prefix_bytes, const char *suffix,
                                 size_t suffix_bytes, int32_t *ids, size_t capacity, size_t *n_ids, whit_error *error)
{
    WHIT_NEED(n_ids);
    WHIT_NEED(model);
    WHIT_NEED_ARRAY(prefix, prefix_bytes);
    WHIT_NEED_ARRAY(suffix, suffix_bytes);
    WHIT_NEED_ARRAY(ids, capacity);
    *n_ids = 0;
    const struct style *style = NULL;
    for (size_t i = 0; i < sizeof styles / sizeof *styles && !style; i++) {
        bool has;
        WHIT_TRY(has_style(model, &styles[i], &has, error));
        if (has) style = &styles[i];
    }
    if (!style)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has no fill-in-the-middle tokens: it continues texts and fills no gaps",
                         model->path);
    whit_buf prompt = {.allocator = model->allocator}, found = {.allocator = model->allocator};
    whit_status status = encode_parts(model, style, prefix, prefix_bytes, suffix, suffix_bytes, &prompt, &found, error);
    size_t n = found.size_bytes / sizeof *ids;
    if (status == WHIT_OK) {
        *n_ids = n;
        if (n > capacity)
            status = whit_fail(error, WHIT_ERROR_LIMIT,
                               "the prompt has %zu tokens, but the array given for them has room for %zu", n, capacity);
        else
            memcpy(ids, found.data, found.size_bytes);
    }
    whit_buf_free(&prompt);
    whit_buf_free(&found);
    return status;
}
