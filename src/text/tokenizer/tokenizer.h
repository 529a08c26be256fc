/* SPDX-License-Identifier: MIT
 * Converts text to ids straight from an image (image.h); decoder.h converts ids to text.
 *
 * The stages are those of the field's `tokenizer.json`: added tokens are cut out of the raw text,
 * what lies between is normalized, cut into pieces and given to the model, and the post-processor
 * puts ids around it.
 *
 * A tokenizer object holds scratch and the patterns compiled so far. It belongs to one thread at a
 * time; any number of them may read one image. Opening costs next to nothing. */
#ifndef WHIT_TOKENIZER_TOKENIZER_H
#define WHIT_TOKENIZER_TOKENIZER_H

#include "tokenizer/decoder.h"
#include "tokenizer/image.h"

typedef struct whit_tokenizer whit_tokenizer;

/* Describes a range of bytes of the text. */
typedef struct whit_text_range {
    size_t start, end;
} whit_text_range;

typedef struct whit_encode_options {
    bool add_special;   /* adds the post-processor's ids, such as BOS */
    bool parse_special; /* special tokens written in the text are honoured */
    /* These ranges of text came from a user: special tokens are never honoured where they touch a range. They are
     * sorted, disjoint, inside the text, and begin and end at character borders. */
    const whit_text_range *plain;
    size_t n_plain;
} whit_encode_options;

/* Opens a tokenizer; the image must outlive it. Checks the pipeline's strings; compiles no pattern yet. */
whit_status whit_tokenizer_open(const whit_tokenizer_view *view, const whit_allocator *allocator,
                                whit_tokenizer **tokenizer, whit_error *error);
void whit_tokenizer_close(whit_tokenizer *tokenizer);
/* Frees every buffer that has grown to more than `keep_bytes`. */
void whit_tokenizer_trim(whit_tokenizer *tokenizer, size_t keep_bytes);

/* Appends the ids (int32_t) of `text` to `ids`; bytes that are not UTF-8 count as U+FFFD. On failure `ids` is as
 * before. Errors: limit (a text over 1 GiB, a pattern that backtracks for ever), format (damaged image), memory. */
whit_status whit_tokenizer_encode(whit_tokenizer *tokenizer, const char *text, size_t n_bytes,
                                  const whit_encode_options *options, whit_buf *ids, whit_error *error);

#endif
