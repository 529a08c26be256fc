/* SPDX-License-Identifier: MIT
 * Reads tokenizers from SentencePiece models (`tokenizer.model`, a ModelProto in protobuf format), BPE and Unigram. */
#ifndef WHIT_TOKENIZER_FROM_SENTENCEPIECE_H
#define WHIT_TOKENIZER_FROM_SENTENCEPIECE_H

#include "tokenizer/config.h"

/* Appends the image to `image`. The model does not say whether bos is added to texts. `config` (may be NULL) may say
 * it; by default it is added for BPE and not for Unigram. Errors: format (with the position of the damage),
 * unsupported. */
whit_status whit_tokenizer_from_sentencepiece(const char *name, const uint8_t *data, size_t n_bytes,
                                              const whit_tokenizer_config *config, whit_buf *image, whit_error *error);

#endif
