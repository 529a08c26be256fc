/* SPDX-License-Identifier: MIT
 * Builds tokenizers that are given by a vocabulary and a few settings instead of a pipeline: GGUF metadata,
 * SentencePiece models, tiktoken ranks. */
#ifndef WHIT_TOKENIZER_VOCABULARY_H
#define WHIT_TOKENIZER_VOCABULARY_H

#include "tokenizer/config.h"

typedef struct whit_text {
    const char *data;
    size_t n_bytes;
} whit_text;

typedef enum whit_vocabulary_kind {
    WHIT_VOCABULARY_SPM = 1,    /* SentencePiece BPE: merges by score */
    WHIT_VOCABULARY_UNIGRAM,    /* SentencePiece Unigram */
    WHIT_VOCABULARY_BYTE_LEVEL, /* tokens in GPT-2's symbols, ranked merges, a named pattern */
    WHIT_VOCABULARY_RANKS,      /* tokens in GPT-2's symbols, merges by the rank of the result (tiktoken) */
    WHIT_VOCABULARY_WORDPIECE,  /* BERT's words; as in GGUF files, a token that begins a word has the prefix U+2581 */
} whit_vocabulary_kind;

/* A tokenizer's description. The caller owns all memory. Initialise it with whit_vocabulary_init. */
typedef struct whit_vocabulary {
    const char *name; /* name of the file, for messages */
    whit_vocabulary_kind kind;
    whit_text pre;           /* name of the pattern, as in tokenizer.ggml.pre; data NULL: "default" */
    const whit_text *tokens; /* (n_tokens) texts, indexed by id */
    const float *scores;     /* (n_tokens); NULL: the vocabulary has no scores */
    const int32_t *types;    /* (n_tokens) GGUF's token types; NULL: all are normal */
    size_t n_tokens;
    const whit_text *merges; /* (n_merges) texts "LEFT RIGHT" */
    size_t n_merges;
    int64_t bos, eos, unk, pad, eot, eom;   /* -1: absent */
    int add_bos, add_eos, add_space_prefix; /* 0 or 1; -1: the default of the kind or the pattern */
    bool collapse_spaces, nfc;
    bool keeps_case;    /* WordPiece: texts are not lower-cased */
    whit_text charsmap; /* SentencePiece's character map; data NULL: no map */
    /* Configuration that names special tokens and adds tokens (whit_tokenizer_config_tokens); NULL: no
     * configuration. */
    const whit_tokenizer_config *config;
} whit_vocabulary;

whit_vocabulary whit_vocabulary_init(const char *name, whit_vocabulary_kind kind);

/* Appends the image to `image`. Errors: unsupported (names the unknown pattern), format. */
whit_status whit_tokenizer_from_vocabulary(const whit_vocabulary *vocabulary, whit_buf *image, whit_error *error);

#endif
