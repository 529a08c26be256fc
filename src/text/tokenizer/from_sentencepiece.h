/* SPDX-License-Identifier: MIT
 * Reads tokenizers of SentencePiece models (`tokenizer.model`, a protobuf ModelProto), BPE and Unigram. */
#ifndef WHIT_TOKENIZER_FROM_SENTENCEPIECE_H
#define WHIT_TOKENIZER_FROM_SENTENCEPIECE_H

#include "tokenizer/config.h"

/* Appends the image to `image`. The model does not say whether bos is added: `config` (may be NULL) says it, and by
 * default BPE models add it and Unigram models do not. Errors: format with the byte where the file is damaged;
 * unsupported. */
whit_status whit_tokenizer_from_sentencepiece(const char *name, const uint8_t *data, size_t n_bytes,
                                              const whit_tokenizer_config *config, whit_buf *image, whit_error *error);

#endif
