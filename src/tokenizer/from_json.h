/* SPDX-License-Identifier: MIT
 * Tokenizers of Hugging Face's `tokenizer.json`. */
#ifndef WHIT_TOKENIZER_FROM_JSON_H
#define WHIT_TOKENIZER_FROM_JSON_H

#include "base/json.h"
#include "tokenizer/builder.h"

/* The other files of the folder that know special tokens; NULL where absent. They name bos, eos,
 * unk and pad, and the ids that end a turn; what is added around a text, and what is special, is
 * tokenizer.json's alone. */
typedef struct whit_tokenizer_config {
    const whit_json *tokenizer_config, *special_tokens_map, *generation_config, *config;
} whit_tokenizer_config;

/* Appends the image of a tokenizer.json to `image`. `config` may be NULL. Errors name the place
 * (name:line:column) and the part that is damaged, or not supported. */
whit_status whit_tokenizer_from_json(const char *name, const char *text, size_t text_bytes,
                                     const whit_tokenizer_config *config, whit_buf *image,
                                     whit_error *error);

/* Fills the builder's bos, eos, pad and ends (tokens are there already). */
whit_status whit_tokenizer_apply_config(whit_tokenizer_builder *builder,
                                        const whit_tokenizer_config *config, whit_error *error);

#endif
