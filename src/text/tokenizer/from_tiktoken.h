/* SPDX-License-Identifier: MIT
 * Reads tokenizers from tiktoken files: each line has a token in Base64 and its rank. The file contains neither a
 * pattern nor special tokens; both are derived from the number of ranks (128,000: Llama 3; 151,643: Qwen). */
#ifndef WHIT_TOKENIZER_FROM_TIKTOKEN_H
#define WHIT_TOKENIZER_FROM_TIKTOKEN_H

#include "tokenizer/config.h"

bool whit_is_tiktoken(const uint8_t *data, size_t n_bytes);

/* Appends the image to `image`. `config` (may be NULL) adds and names special tokens. Errors: format (with the line),
 * unsupported (unknown number of ranks). */
whit_status whit_tokenizer_from_tiktoken(const char *name, const uint8_t *data, size_t n_bytes,
                                         const whit_tokenizer_config *config, whit_buf *image, whit_error *error);

#endif
