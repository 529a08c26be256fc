/* SPDX-License-Identifier: MIT
 * Tokenizers of a model. Only one thread at a time can use a tokenizer object, so a model stores idle ones and opens
 * another if all are in use. */
#ifndef WHIT_RUNTIME_TEXT_H
#define WHIT_RUNTIME_TEXT_H

#include "tokenizer/tokenizer.h"

typedef struct whit_tokenizers whit_tokenizers;

whit_status whit_tokenizers_open(const whit_allocator *allocator, whit_tokenizers **tokenizers, whit_error *error);
void whit_tokenizers_close(whit_tokenizers *tokenizers);

/* Sets *bits to the tokens that end a repetition (DRY): a bit per token, (n_vocab / 8 rounded up) bytes, which the
 * model owns and computes once. *bits becomes NULL if the model has no tokenizer: then no token ends a repetition. */
whit_status whit_model_breakers(const whit_model *model, const uint8_t **bits, whit_error *error);

/* Encodes a text like whit_tokenize, but with options such as ranges of plain text, and appends the ids to `ids`
 * (int32_t[]). */
whit_status whit_model_encode(const whit_model *model, const char *text, size_t text_bytes,
                              const whit_encode_options *options, whit_buf *ids, whit_error *error);

#endif
