/* SPDX-License-Identifier: MIT
 * Declares pre-tokenizers, which divide a text into the pieces that the model encodes. */
#ifndef WHIT_TOKENIZER_SPLIT_H
#define WHIT_TOKENIZER_SPLIT_H

#include "tokenizer/regex.h"
#include "tokenizer/scan.h"

typedef struct whit_piece {
    uint32_t start, end; /* bytes [start, end) of the text */
} whit_piece;

/* A text, its pieces, and memory for the next step's pieces. Only one thread may use it. */
typedef struct whit_splitter {
    const whit_allocator *allocator;
    const uint8_t *text; /* the caller's text, or texts[text_in_use] after a step has rewritten it */
    size_t n_bytes;
    whit_buf texts[2], pieces[2], ranges;
    int text_in_use, pieces_in_use; /* index of the current buffer; the next step writes to the other one */
    bool at_start;                  /* `text` is at the beginning of the whole input */
} whit_splitter;

void whit_splitter_init(whit_splitter *splitter, const whit_allocator *allocator);
void whit_splitter_free(whit_splitter *splitter);

/* Begins with a single piece, the whole of `text` (with no piece if it is empty), which is valid UTF-8, smaller than 1
 * GiB, and must outlive the splitting. */
whit_status whit_splitter_begin(whit_splitter *splitter, const uint8_t *text, size_t n_bytes, bool at_start,
                                whit_error *error);
/* Applies one step to all pieces. `pattern` is the step's text, *regex its compiled pattern (NULL before the first
 * use). */
whit_status whit_splitter_apply(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                                whit_regex **regex, whit_error *error);
static inline const whit_piece *whit_splitter_pieces(const whit_splitter *splitter, size_t *n)
{
    const whit_buf *pieces = &splitter->pieces[splitter->pieces_in_use];
    *n = pieces->size_bytes / sizeof(whit_piece);
    return (const whit_piece *)(const void *)pieces->data;
}

#endif
