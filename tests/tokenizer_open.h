/* SPDX-License-Identifier: MIT
 * A tokenizer with the image that it lies in, opened and checked for a test. */
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

#endif
