/* SPDX-License-Identifier: MIT
 * The JSON files beside a tokenizer that name its special tokens. */
#ifndef WHIT_TOKENIZER_CONFIG_H
#define WHIT_TOKENIZER_CONFIG_H

#include "base/json.h"
#include "tokenizer/builder.h"

/* The other files of the folder that know special tokens; NULL where absent. They name bos, eos,
 * unk and pad, and the ids that end a turn; what is added around a text, and what is special, is
 * tokenizer.json's alone (a tokenizer.model says neither: there they decide). */
typedef struct whit_tokenizer_config {
    const whit_json *tokenizer_config, *special_tokens_map, *generation_config, *config;
} whit_tokenizer_config;

/* Fills the builder's bos, eos, pad and ends (tokens are there already). */
whit_status whit_tokenizer_apply_config(whit_tokenizer_builder *builder, const whit_tokenizer_config *config,
                                        whit_error *error);

/* A boolean of tokenizer_config.json: 0 or 1, -1 where it is absent. */
int whit_tokenizer_config_flag(const whit_tokenizer_config *config, const char *key);

#endif
