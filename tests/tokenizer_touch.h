/* SPDX-License-Identifier: MIT
 * Uses every part of a tokenizer image, for fuzz targets. */
#ifndef WHIT_TESTS_TOKENIZER_TOUCH_H
#define WHIT_TESTS_TOKENIZER_TOUCH_H

#include "tokenizer/tokenizer.h"

static inline void touch_tokenizer(const void *image, size_t size_bytes)
{
    static const char text[] = "The 1,234 tools'll <s>meet</s> at\t\r\n  \xE2\x96\x81\xC3\xA9\xCC\x81 "
                               "\xF0\x9F\x98\x80 aaaaaaaa\xFF hello";
    static const whit_text_range user[] = {{4, 9}, {20, 30}};
    whit_tokenizer_view view;
    whit_tokenizer *tokenizer;
    whit_token_decoder *decoder;
    whit_error error;
    whit_buf ids = {0}, back = {0};
    if (whit_tokenizer_check(image, size_bytes, &view, &error) != WHIT_OK) return;
    if (whit_tokenizer_open(&view, NULL, &tokenizer, &error) == WHIT_OK) {
        const whit_encode_options options[] = {
            {.add_special = true, .parse_special = true},
            {.parse_special = true, .plain = user, .n_plain = 2},
        };
        for (int i = 0; i < 2; i++)
            (void)whit_tokenizer_encode(tokenizer, text, sizeof text - 1, &options[i], &ids, &error);
        whit_tokenizer_close(tokenizer);
    }
    for (int32_t id = -1; id < 400; id++) (void)whit_buf_append(&ids, &id, sizeof id);
    const int32_t *values = (const int32_t *)(const void *)ids.data;
    size_t n = ids.size_bytes / sizeof *values, n_bytes;
    (void)whit_tokenizer_decode(&view, values, n, true, &back, &error);
    if (whit_token_decoder_open(&view, (whit_token_decoder_options){0}, NULL, &decoder, &error) == WHIT_OK) {
        const char *piece;
        for (size_t i = 0; i < n; i++)
            if (whit_token_decoder_push(decoder, values[i], &piece, &n_bytes, &error) != WHIT_OK) break;
        (void)whit_token_decoder_flush(decoder, &piece, &n_bytes, &error);
        whit_token_decoder_close(decoder);
    }
    (void)whit_tokenizer_is_end(&view, 3);
    (void)whit_tokenizer_lookup(&view, (const uint8_t *)"hello", 5);
    whit_buf_free(&ids);
    whit_buf_free(&back);
}

#endif
