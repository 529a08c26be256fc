/* SPDX-License-Identifier: MIT
 * Reads the JSON files of a tokenizer's folder that name its special tokens. */
#ifndef WHIT_TOKENIZER_CONFIG_H
#define WHIT_TOKENIZER_CONFIG_H

#include "base/json.h"
#include "tokenizer/builder.h"

/* The other files of a tokenizer's folder, as parsed JSON; NULL or zeroed if absent. They name bos, eos, unk and pad,
 * and the ids that end a turn. If there is a tokenizer.json, only it decides which ids are added around a text and
 * which tokens are special. A tokenizer.model says neither, so with it these files decide. */
typedef struct whit_tokenizer_config {
    const whit_json *tokenizer_config, *special_tokens_map, *generation_config, *config;
    const whit_json *added_tokens; /* added_tokens.json; only used together with a tokenizer.model */
} whit_tokenizer_config;

/* A token that these files add to a vocabulary, or whose flags they set. `text` points into the JSON. */
typedef struct whit_config_token {
    int64_t id;
    const char *text;
    size_t n_bytes;
    uint32_t flags; /* WHIT_ADDED_* */
} whit_config_token;

/* Appends the tokens (whit_config_token) of tokenizer_config.json's added_tokens_decoder or, if that is absent, of
 * added_tokens.json, like transformers. Ids of config.json's vocab_size and above are left out, since the model has no
 * rows for them: training scripts that add an unused "[PAD]" leave such entries. `config` may be NULL. */
whit_status whit_tokenizer_config_tokens(const whit_tokenizer_config *config, whit_buf *tokens, whit_error *error);

/* Sets the builder's bos, eos, pad and ending ids. The tokens must have been added before. */
whit_status whit_tokenizer_apply_config(whit_tokenizer_builder *builder, const whit_tokenizer_config *config,
                                        whit_error *error);

/* Returns a boolean of tokenizer_config.json: 0 or 1; -1 if it is absent. */
int whit_tokenizer_config_flag(const whit_tokenizer_config *config, const char *key);

#endif
