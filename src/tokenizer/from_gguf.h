/* SPDX-License-Identifier: MIT
 * Tokenizers of GGUF files: `tokenizer.ggml.model` "llama" (SentencePiece BPE by scores) and
 * "gpt2" (byte-level BPE, its pattern named by `tokenizer.ggml.pre`). */
#ifndef WHIT_TOKENIZER_FROM_GGUF_H
#define WHIT_TOKENIZER_FROM_GGUF_H

#include "base/mem.h"
#include "format/gguf.h"

typedef struct whit_text {
    const char *data;
    size_t n_bytes;
} whit_text;

/* The metadata as plain arrays; all memory is the caller's. */
typedef struct whit_gguf_vocabulary {
    const char *name;       /* of the file, for messages */
    whit_text model, pre;   /* data NULL: absent */
    const whit_text *tokens; /* [n_tokens] */
    const float *scores;    /* [n_tokens] or NULL */
    const int32_t *types;   /* [n_tokens] or NULL: all normal */
    size_t n_tokens;
    const whit_text *merges; /* "left right" */
    size_t n_merges;
    int64_t bos, eos, unk, pad, eot, eom; /* -1: absent */
    int add_bos, add_eos, add_space_prefix; /* -1: absent, 0, 1 */
} whit_gguf_vocabulary;

/* Appends the image to `image`. Errors: unsupported (a model or pattern that is not known, by
 * name), format. */
whit_status whit_tokenizer_from_vocabulary(const whit_gguf_vocabulary *vocabulary, whit_buf *image,
                                           whit_error *error);

/* The same from an open file. Where it has no tokenizer (`no_vocab`, or no tokens) *found is false,
 * nothing is appended, and the status is WHIT_OK. */
whit_status whit_tokenizer_from_gguf(const whit_gguf *gguf, const char *name, bool *found,
                                     whit_buf *image, whit_error *error);

#endif
