/* SPDX-License-Identifier: MIT
 * Converts ids to text. A decoder is a stream: each id that is pushed returns the text that is final from then on. */
#ifndef WHIT_TOKENIZER_DECODER_H
#define WHIT_TOKENIZER_DECODER_H

#include "tokenizer/image.h"

/* Returns the byte of a token with the text <0xNN>; -1 for any other token. */
int whit_tokenizer_spelt_byte(const uint8_t *text, size_t n);

typedef struct whit_token_decoder whit_token_decoder;

typedef struct whit_token_decoder_options {
    bool skip_special;
    /* A run of byte tokens that is not valid UTF-8 as a whole is replaced as a whole, so that its first characters are
     * not final before the run ends. true: a run is held back until its end, which results in exactly the text of the
     * whole sequence. false: a character is returned once it is complete (for chats and streams). */
    bool hold_bytes;
    /* The decoder gets a token from the middle of a text: nothing is removed as at the beginning of a text, and bytes
     * that are not complete characters are returned unchanged. */
    bool is_inner;
} whit_token_decoder_options;

/* Opens a decoder. The image must outlive it. Only one thread at a time may use it. */
whit_status whit_token_decoder_open(const whit_tokenizer_view *view, whit_token_decoder_options options,
                                    const whit_allocator *allocator, whit_token_decoder **decoder, whit_error *error);
/* Returns the text that is final with `id`; it never ends inside a character, except with is_inner. The decoder owns
 * it, and it is valid until the next call. Ids without a text, and special tokens if skip_special is set, are ignored.
 * Memory is allocated only if a buffer is too small. */
whit_status whit_token_decoder_push(whit_token_decoder *decoder, int32_t id, const char **text, size_t *n_bytes,
                                    whit_error *error);
/* Returns the remaining text at the end of the ids. Afterwards the decoder begins a new text, at whose beginning the
 * first token counts as the first, even if is_inner was given. */
whit_status whit_token_decoder_flush(whit_token_decoder *decoder, const char **text, size_t *n_bytes,
                                     whit_error *error);
void whit_token_decoder_close(whit_token_decoder *decoder);

/* Decodes a whole sequence of ids and appends its text to `text`. */
whit_status whit_tokenizer_decode(const whit_tokenizer_view *view, const int32_t *ids, size_t n_ids, bool skip_special,
                                  whit_buf *text, whit_error *error);

#endif
