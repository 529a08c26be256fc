/* SPDX-License-Identifier: MIT
 * Reads tokenizers from GGUF files. The key `tokenizer.ggml.model` is "llama" (SentencePiece BPE by scores), "t5"
 * (Unigram), "bert" (WordPiece) or "gpt2" (byte-level BPE, whose pattern `tokenizer.ggml.pre` names). */
#ifndef WHIT_TOKENIZER_FROM_GGUF_H
#define WHIT_TOKENIZER_FROM_GGUF_H

#include "format/gguf.h"

/* Metadata keys that only whit writes. They are true if a SentencePiece vocabulary lacks the token, because other
 * readers assume a default if its id is absent. */
#define WHIT_GGUF_NO_BOS     "whit.tokenizer.no_bos"
#define WHIT_GGUF_NO_EOS     "whit.tokenizer.no_eos"
#define WHIT_GGUF_NO_UNKNOWN "whit.tokenizer.no_unknown"

/* Appends the image of the file's tokenizer to `image`; `name` is for messages. If the file has no tokenizer
 * (`no_vocab`, `none`, or no model named), *found is false, nothing is appended, and the result is WHIT_OK. Errors:
 * unsupported (names the unknown model or pattern), format. */
whit_status whit_tokenizer_from_gguf(const whit_gguf *gguf, const char *name, bool *found, whit_buf *image,
                                     whit_error *error);

#endif
