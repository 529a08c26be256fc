/* SPDX-License-Identifier: MIT
 * Builds tokenizers that are described by a vocabulary and a few settings instead of a pipeline: GGUF metadata,
 * SentencePiece models, tiktoken ranks. */
#ifndef WHIT_TOKENIZER_VOCABULARY_H
#define WHIT_TOKENIZER_VOCABULARY_H

#include "tokenizer/config.h"

typedef struct whit_text {
    const char *data;
    size_t n_bytes;
} whit_text;

typedef enum whit_vocabulary_kind {
    WHIT_VOCABULARY_SPM = 1,    /* SentencePiece BPE: merges by scores */
    WHIT_VOCABULARY_UNIGRAM,    /* SentencePiece Unigram */
    WHIT_VOCABULARY_BYTE_LEVEL, /* GPT-2's symbols, ranked merges, a named pattern */
    WHIT_VOCABULARY_RANKS,      /* GPT-2's symbols, merges by the rank of the result (tiktoken) */
    WHIT_VOCABULARY_WORDPIECE,  /* BERT's words; tokens that begin a word have the prefix U+2581, as in GGUF files */
} whit_vocabulary_kind;

/* Describes a tokenizer. All memory is the caller's. Initialise it with whit_vocabulary_init. */
typedef struct whit_vocabulary {
    const char *name; /* name of the file, for messages */
    whit_vocabulary_kind kind;
    whit_text pre;           /* name of the pattern, as in tokenizer.ggml.pre; data NULL: "default" */
    const whit_text *tokens; /* [n_tokens], ids in order */
    const float *scores;     /* [n_tokens] or NULL */
    const int32_t *types;    /* [n_tokens] GGUF's token types, or NULL: all normal */
    size_t n_tokens;
    const whit_text *merges; /* "left right" */
    size_t n_merges;
    int64_t bos, eos, unk, pad, eot, eom;   /* -1: absent */
    int add_bos, add_eos, add_space_prefix; /* -1: absent, 0, 1 */
    bool collapse_spaces, nfc;
    bool keeps_case;    /* WordPiece: texts are not converted to lower case */
    whit_text charsmap; /* SentencePiece's character map; data NULL: no map */
    /* Names special tokens, and adds tokens (whit_tokenizer_config_tokens). NULL means that it is not given. */
    const whit_tokenizer_config *config;
} whit_vocabulary;

whit_vocabulary whit_vocabulary_init(const char *name, whit_vocabulary_kind kind);

/* Appends the image to `image`. Errors: unsupported (a pattern that is not known, by name), format. */
whit_status whit_tokenizer_from_vocabulary(const whit_vocabulary *vocabulary, whit_buf *image, whit_error *error);

#endif
