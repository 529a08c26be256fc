/* SPDX-License-Identifier: MIT
 * Reads tokenizers of GGUF files: `tokenizer.ggml.model` "llama" (SentencePiece BPE by scores), "t5" (Unigram) and
 * "gpt2" (byte-level BPE, its pattern named by `tokenizer.ggml.pre`). */
#ifndef WHIT_TOKENIZER_FROM_GGUF_H
#define WHIT_TOKENIZER_FROM_GGUF_H

#include "format/gguf.h"

/* Metadata keys of whit, true if a SentencePiece vocabulary has no such token: other readers have a default for an
 * absent id. */
#define WHIT_GGUF_NO_BOS     "whit.tokenizer.no_bos"
#define WHIT_GGUF_NO_EOS     "whit.tokenizer.no_eos"
#define WHIT_GGUF_NO_UNKNOWN "whit.tokenizer.no_unknown"

/* Appends the image of an open file's tokenizer to `image`; `name` is for messages. If the file has no tokenizer
 * (`no_vocab`, or no model named), *found is false, nothing is appended, and the status is WHIT_OK. Errors: unsupported
 * (names the unknown model or pattern), format. */
whit_status whit_tokenizer_from_gguf(const whit_gguf *gguf, const char *name, bool *found, whit_buf *image,
                                     whit_error *error);

#endif
