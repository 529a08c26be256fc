/* SPDX-License-Identifier: MIT
 * Reads the JSON files in a tokenizer's folder that name its special tokens. */
#ifndef WHIT_TOKENIZER_CONFIG_H
#define WHIT_TOKENIZER_CONFIG_H

#include "base/json.h"
#include "tokenizer/builder.h"

/* Points to the other files of the folder that name special tokens; NULL if absent. The files name bos, eos, unk and
 * pad, and the ids that end a turn. The ids that are added around a text, and the special tokens, are read from
 * tokenizer.json alone; a tokenizer.model states neither, so with it these files decide. */
typedef struct whit_tokenizer_config {
    const whit_json *tokenizer_config, *special_tokens_map, *generation_config, *config;
    const whit_json *added_tokens; /* added_tokens.json; only used with a tokenizer.model */
} whit_tokenizer_config;

/* Describes a token that these files add to a vocabulary, or whose flags they set. `text` points into the file's
 * JSON. */
typedef struct whit_config_token {
    int64_t id;
    const char *text;
    size_t n_bytes;
    uint32_t flags; /* WHIT_ADDED_* */
} whit_config_token;

/* Appends the tokens (whit_config_token) of tokenizer_config.json's added_tokens_decoder or, if that is absent, of
 * added_tokens.json, as transformers does. Ids from config.json's vocab_size up are left out: the model has no rows for
 * them, although trainings that add "[PAD]" without using it leave such entries. `config` may be NULL. */
whit_status whit_tokenizer_config_tokens(const whit_tokenizer_config *config, whit_buf *tokens, whit_error *error);

/* Fills the builder's bos, eos, pad and ends (tokens are there already). */
whit_status whit_tokenizer_apply_config(whit_tokenizer_builder *builder, const whit_tokenizer_config *config,
                                        whit_error *error);

/* Reads a boolean of tokenizer_config.json: 0 or 1, -1 if it is absent. */
int whit_tokenizer_config_flag(const whit_tokenizer_config *config, const char *key);

#endif
