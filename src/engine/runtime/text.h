/* SPDX-License-Identifier: MIT
 * A tokenizer object serves one thread at a time: a model keeps unused ones and makes another if all are in use. */
#ifndef WHIT_RUNTIME_TEXT_H
#define WHIT_RUNTIME_TEXT_H

#include "tokenizer/tokenizer.h"

typedef struct whit_tokenizers whit_tokenizers;

whit_status whit_tokenizers_open(const whit_allocator *allocator, whit_tokenizers **tokenizers, whit_error *error);
void whit_tokenizers_close(whit_tokenizers *tokenizers);

/* The tokens that end a repetition (DRY): bits, (n_vocab / 8 rounded up), found once for a model and kept with it.
 * NULL: no token is one. */
whit_status whit_model_breakers(const whit_model *model, const uint8_t **bits, whit_error *error);

/* As whit_tokenize, with ranges of plain (user) text; appends int32_t to `ids`. */
whit_status whit_model_encode(const whit_model *model, const char *text, size_t text_bytes,
                              const whit_encode_options *options, whit_buf *ids, whit_error *error);

#endif
