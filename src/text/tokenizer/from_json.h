/* SPDX-License-Identifier: MIT
 * Reads tokenizers from Hugging Face's `tokenizer.json`. */
#ifndef WHIT_TOKENIZER_FROM_JSON_H
#define WHIT_TOKENIZER_FROM_JSON_H

#include "tokenizer/config.h"

/* Appends the image of a tokenizer.json to `image`. `config` may be NULL. Errors name the position (NAME:LINE:COLUMN)
 * and the part that is damaged or not supported. */
whit_status whit_tokenizer_from_json(const char *name, const char *text, size_t text_bytes,
                                     const whit_tokenizer_config *config, whit_buf *image, whit_error *error);

#endif
