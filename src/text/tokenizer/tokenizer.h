/* SPDX-License-Identifier: MIT
 * Converts text to ids with an image (image.h). decoder.h converts ids to text.
 *
 * The stages are those of a `tokenizer.json`. Added tokens are cut out of the raw text. The text between them is
 * normalized and divided into pieces, and the model converts each piece to ids. The post-processor adds ids before and
 * after them.
 *
 * A tokenizer object contains scratch memory and the patterns compiled so far. Only one thread at a time may use it,
 * but any number of objects may share one image. Opening takes very little time. */
#ifndef WHIT_TOKENIZER_TOKENIZER_H
#define WHIT_TOKENIZER_TOKENIZER_H

#include "tokenizer/decoder.h"
#include "tokenizer/image.h"

typedef struct whit_tokenizer whit_tokenizer;

/* Bytes [start, end) of a text. */
typedef struct whit_text_range {
    size_t start, end;
} whit_text_range;

typedef struct whit_encode_options {
    bool add_special;   /* add the post-processor's ids, such as bos */
    bool parse_special; /* special tokens that occur in the text become their ids */
    /* Ranges of the text that came from a user. A special token is not recognised if it overlaps one of them. In
     * normalized text, any of them in the text between two added tokens counts as an overlap. The ranges are sorted,
     * disjoint, inside the text, and begin and end at character boundaries. */
    const whit_text_range *plain;
    size_t n_plain;
} whit_encode_options;

/* Opens a tokenizer. The image must outlive it. The strings of normalizers and pre-tokenizers are checked (those of
 * decoders by whit_token_decoder_open); patterns are compiled when they are first used. */
whit_status whit_tokenizer_open(const whit_tokenizer_view *view, const whit_allocator *allocator,
                                whit_tokenizer **tokenizer, whit_error *error);
void whit_tokenizer_close(whit_tokenizer *tokenizer);
/* Frees every buffer that has grown larger than `keep_bytes`. */
void whit_tokenizer_trim(whit_tokenizer *tokenizer, size_t keep_bytes);

/* Appends the ids (int32_t) of `text` to `ids`. Bytes that are not valid UTF-8 count as U+FFFD. On failure `ids` is
 * unchanged. Errors: argument (wrong ranges), limit (a text of 1 GiB or more, or one that takes too many steps), format
 * (a damaged image, or an unknown character and no unknown token), memory. */
whit_status whit_tokenizer_encode(whit_tokenizer *tokenizer, const char *text, size_t n_bytes,
                                  const whit_encode_options *options, whit_buf *ids, whit_error *error);

#endif
