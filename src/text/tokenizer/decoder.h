/* SPDX-License-Identifier: MIT
 * Converts ids to text. A decoder is a stream: push an id, get the text that became final with it. */
#ifndef WHIT_TOKENIZER_DECODER_H
#define WHIT_TOKENIZER_DECODER_H

#include "tokenizer/image.h"

/* Returns the byte of a token spelt <0xNN>; -1 for any other token. */
int whit_tokenizer_spelt_byte(const uint8_t *text, size_t n);

typedef struct whit_token_decoder whit_token_decoder;

typedef struct whit_token_decoder_options {
    bool skip_special;
    /* A run of byte tokens that is not UTF-8 as a whole is replaced as a whole, so its first
     * characters are not final before its end. True holds runs back, which gives exactly the text
     * of the whole sequence; false shows a character once it is complete (chat, streams). */
    bool hold_bytes;
    /* Decodes a single token that follows others: nothing is dropped as at the beginning of a text, and bytes that
     * are not complete characters are passed on unchanged. */
    bool is_inner;
} whit_token_decoder_options;

/* Opens a decoder. The image must outlive it. Only one thread may use it at a time. */
whit_status whit_token_decoder_open(const whit_tokenizer_view *view, whit_token_decoder_options options,
                                    const whit_allocator *allocator, whit_token_decoder **decoder, whit_error *error);
/* Returns the text that became final with `id`, which never ends within a character. It belongs to the decoder and is
 * valid until the next call. Ids that have no text are dropped. Allocates only while its buffers grow. */
whit_status whit_token_decoder_push(whit_token_decoder *decoder, int32_t id, const char **text, size_t *n_bytes,
                                    whit_error *error);
/* Returns the remaining text at the end; the decoder then begins a new text. */
whit_status whit_token_decoder_flush(whit_token_decoder *decoder, const char **text, size_t *n_bytes,
                                     whit_error *error);
void whit_token_decoder_close(whit_token_decoder *decoder);

/* Decodes a whole sequence and appends it to `text`. */
whit_status whit_tokenizer_decode(const whit_tokenizer_view *view, const int32_t *ids, size_t n_ids, bool skip_special,
                                  whit_buf *text, whit_error *error);

#endif
