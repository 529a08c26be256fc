/* SPDX-License-Identifier: MIT
 * Opens and checks a tokenizer together with its image, for tests. */
#ifndef WHIT_TESTS_TOKENIZER_OPEN_H
#define WHIT_TESTS_TOKENIZER_OPEN_H

#include "test.h"
#include "tokenizer/tokenizer.h"

typedef struct opened {
    whit_buf image;
    whit_tokenizer_view view;
    whit_tokenizer *tokenizer;
} opened;

static inline void open_image(opened *it)
{
    whit_error error;
    assert_ok(whit_tokenizer_check(it->image.data, it->image.size_bytes, &it->view, &error), error);
    assert_ok(whit_tokenizer_open(&it->view, NULL, &it->tokenizer, &error), error);
}

static inline void close_tokenizer(opened *it)
{
    whit_tokenizer_close(it->tokenizer);
    whit_buf_free(&it->image);
}

/* Returns the id of the token spelled `text` in the vocabulary, otherwise among the added tokens; -1 if there is
 * none. */
static inline int32_t find_token(const whit_tokenizer_view *view, const char *text)
{
    size_t size = strlen(text), n;
    int32_t id = whit_tokenizer_lookup(view, (const uint8_t *)text, size);
    const uint8_t *token;
    for (int32_t i = 0; id < 0 && (token = whit_tokenizer_token_text(view, i, &n)); i++)
        if (n == size && memcmp(token, text, n) == 0) id = i;
    return id;
}

#endif
