/* SPDX-License-Identifier: MIT */
#include "tokenizer/from_tiktoken.h"

#include <stdio.h>

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/base64.h"
#include "tokenizer/image.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"

#define LLAMA3_RANKS    128000
#define LLAMA3_SPECIALS 256
#define QWEN_RANKS      151643
#define QWEN_EXTRAS     205

typedef struct ranks {
    whit_buf tokens; /* array of whit_text; while lines are read, `data` is an offset in `spellings` */
    whit_buf scores, types, spellings, bytes;
    const char *name;
    whit_error *error;
} ranks;

bool whit_is_tiktoken(const uint8_t *data, size_t n_bytes)
{
    size_t i = 0;
    while (i < n_bytes && i < 256 && data[i] > ' ' && data[i] < 0x7F) i++;
    return i > 0 && i % 4 == 0 && i + 1 < n_bytes && data[i] == ' ' && data[i + 1] >= '0' && data[i + 1] <= '9';
}

static whit_status out_of_memory(const ranks *r)
{
    return whit_fail_memory(r->error, "the tokenizer's vocabulary", r->tokens.size_bytes + r->spellings.size_bytes);
}

/* Adds a token. Its text is appended to `spellings`, which may be moved later, so the token's `data` is an offset at
 * first. */
static whit_status add_token(ranks *r, const uint8_t *spelling, size_t n, float score, int32_t type)
{
    whit_text text = {(const char *)(uintptr_t)r->spellings.size_bytes, n};
    if (!whit_buf_append(&r->spellings, spelling, n) || !whit_buf_append(&r->tokens, &text, sizeof text) ||
        !whit_buf_append(&r->scores, &score, sizeof score) || !whit_buf_append(&r->types, &type, sizeof type))
        return out_of_memory(r);
    return WHIT_OK;
}

static whit_status add_rank(ranks *r, const char *line, size_t n_base64, size_t rank)
{
    r->bytes.size_bytes = 0;
    if (!whit_base64_decode(line, n_base64, &r->bytes) || r->bytes.size_bytes == 0)
        return r->bytes.failed
            ? out_of_memory(r)
            : whit_fail(r->error, WHIT_ERROR_FORMAT, "%s: line %zu is not base64", r->name, rank + 1);
    uint8_t spelling[4 * 256];
    size_t n = 0;
    if (r->bytes.size_bytes > 256)
        return whit_fail(r->error, WHIT_ERROR_LIMIT, "%s: line %zu: the token has more than 256 bytes, the limit",
                         r->name, rank + 1);
    for (size_t i = 0; i < r->bytes.size_bytes; i++)
        n += whit_utf8_encode(whit_byte_symbol(r->bytes.data[i]), spelling + n);
    return add_token(r, spelling, n, -(float)rank, WHIT_TOKEN_NORMAL);
}

/* Reads the lines. The ranks must be 0, 1, 2 and so on, as in every known file. */
static whit_status read_lines(ranks *r, const char *text, const char *end)
{
    for (size_t rank = 0; text < end; rank++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        const char *space = memchr(text, ' ', (size_t)(stop - text));
        size_t number = 0;
        bool good = space && space + 1 < stop && stop - space < 12;
        for (const char *digit = space; good && ++digit < stop;) {
            good = *digit >= '0' && *digit <= '9';
            number = number * 10 + (size_t)(*digit - '0');
        }
        if (!good || number != rank)
            return whit_fail(r->error, WHIT_ERROR_FORMAT, "%s: line %zu is not base64 and rank %zu", r->name, rank + 1,
                             rank);
        WHIT_TRY(add_rank(r, text, (size_t)(space - text), rank));
        text = stop + 1;
    }
    return WHIT_OK;
}

static whit_status add_special(ranks *r, const char *text)
{
    return add_token(r, (const uint8_t *)text, strlen(text), 0, WHIT_TOKEN_CONTROL);
}

/* Adds Llama 3's special tokens with the ids of Meta's tokenizer.py. */
static whit_status add_llama3_specials(ranks *r)
{
    static const char *const named[] = {[0] = "<|begin_of_text|>",
                                        [1] = "<|end_of_text|>",
                                        [6] = "<|start_header_id|>",
                                        [7] = "<|end_header_id|>",
                                        [9] = "<|eot_id|>"};
    unsigned n_reserved = 0;
    for (size_t i = 0; i < LLAMA3_SPECIALS; i++) {
        char text[48];
        if (i < sizeof named / sizeof named[0] && named[i])
            snprintf(text, sizeof text, "%s", named[i]);
        else
            snprintf(text, sizeof text, "<|reserved_special_token_%u|>", n_reserved++);
        WHIT_TRY(add_special(r, text));
    }
    return WHIT_OK;
}

/* Adds Qwen's special tokens with the ids of its tokenization_qwen.py. */
static whit_status add_qwen_specials(ranks *r)
{
    WHIT_TRY(add_special(r, "<|endoftext|>"));
    WHIT_TRY(add_special(r, "<|im_start|>"));
    WHIT_TRY(add_special(r, "<|im_end|>"));
    for (unsigned i = 0; i < QWEN_EXTRAS; i++) {
        char text[24];
        snprintf(text, sizeof text, "<|extra_%u|>", i);
        WHIT_TRY(add_special(r, text));
    }
    return WHIT_OK;
}

static whit_status build_image(ranks *r, const whit_tokenizer_config *config, whit_buf *image)
{
    whit_vocabulary v = whit_vocabulary_init(r->name, WHIT_VOCABULARY_RANKS);
    size_t n_ranks = r->tokens.size_bytes / sizeof(whit_text);
    if (n_ranks == LLAMA3_RANKS) {
        v.pre = (whit_text){"llama3", 6};
        v.bos = LLAMA3_RANKS;
        v.eos = LLAMA3_RANKS + 1;
        WHIT_TRY(add_llama3_specials(r));
    } else if (n_ranks == QWEN_RANKS) {
        v.pre = (whit_text){"qwen2", 5};
        v.nfc = true;
        v.eos = QWEN_RANKS;
        WHIT_TRY(add_qwen_specials(r));
    } else {
        return whit_fail(r->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the file has %zu tiktoken ranks; the pattern is known for 128,000 (Llama 3) and "
                         "151,643 (Qwen) only",
                         r->name, n_ranks);
    }
    whit_text *tokens = WHIT_ITEMS(whit_text, &r->tokens);
    v.n_tokens = r->tokens.size_bytes / sizeof *tokens;
    for (size_t i = 0; i < v.n_tokens; i++) tokens[i].data = whit_chars(&r->spellings) + (uintptr_t)tokens[i].data;
    v.tokens = tokens;
    v.scores = WHIT_ITEMS(const float, &r->scores);
    v.types = WHIT_ITEMS(const int32_t, &r->types);
    v.config = config;
    return whit_tokenizer_from_vocabulary(&v, image, r->error);
}

whit_status whit_tokenizer_from_tiktoken(const char *name, const uint8_t *data, size_t n_bytes,
                                         const whit_tokenizer_config *config, whit_buf *image, whit_error *error)
{
    ranks r = {.tokens = {.allocator = image->allocator},
               .scores = {.allocator = image->allocator},
               .types = {.allocator = image->allocator},
               .spellings = {.allocator = image->allocator},
               .bytes = {.allocator = image->allocator},
               .name = name,
               .error = error};
    whit_status status = read_lines(&r, (const char *)data, (const char *)data + n_bytes);
    if (status == WHIT_OK) status = build_image(&r, config, image);
    whit_buf_free(&r.tokens);
    whit_buf_free(&r.scores);
    whit_buf_free(&r.types);
    whit_buf_free(&r.spellings);
    whit_buf_free(&r.bytes);
    return status;
}
