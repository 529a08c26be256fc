/* SPDX-License-Identifier: MIT
 * Declares the pre-tokenizers, which cut a text into the pieces that the model sees. */
#ifndef WHIT_TOKENIZER_SPLIT_H
#define WHIT_TOKENIZER_SPLIT_H

#include "tokenizer/regex.h"
#include "tokenizer/scan.h"

typedef struct whit_piece {
    uint32_t start, end; /* bytes of the text */
} whit_piece;

/* Holds a text, its pieces, and memory for the next pieces. It belongs to one thread. */
typedef struct whit_splitter {
    const whit_allocator *allocator;
    const uint8_t *text; /* the caller's, or texts[i] once a step has rewritten it */
    size_t n_bytes;
    whit_buf texts[2], pieces[2], ranges;
    int text_in_use, pieces_in_use; /* the next step writes the other buffer */
    bool at_start;                  /* the text stands at the start of the whole input */
} whit_splitter;

void whit_splitter_init(whit_splitter *splitter, const whit_allocator *allocator);
void whit_splitter_free(whit_splitter *splitter);

/* Begins with one piece: the whole of `text` (valid UTF-8, under 1 GiB), which must outlive the splitting. */
whit_status whit_splitter_begin(whit_splitter *splitter, const uint8_t *text, size_t n_bytes, bool at_start,
                                whit_error *error);
/* Applies one step to all pieces. `pattern` is the step's text, *regex its pattern once compiled.
 */
whit_status whit_splitter_apply(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                                whit_regex **regex, whit_error *error);
static inline const whit_piece *whit_splitter_pieces(const whit_splitter *splitter, size_t *n)
{
    const whit_buf *pieces = &splitter->pieces[splitter->pieces_in_use];
    *n = pieces->size_bytes / sizeof(whit_piece);
    return (const whit_piece *)(const void *)pieces->data;
}

#endif
