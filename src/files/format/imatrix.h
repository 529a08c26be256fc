/* SPDX-License-Identifier: MIT
 * Reads importance matrices of llama.cpp: for each matrix of a model, the mean square of each of its inputs over some
 * text. There are two file formats. One is GGUF with general.type "imatrix" (tensors NAME.in_sum2 and NAME.counts). The
 * older one is binary:
 *
 *    i32 entries | entries: i32 bytes of the name, name, i32 calls, i32 n, n f32 | [i32 chunks [i32 bytes, text file]]
 *
 * Its f32 numbers are mean squares times the calls. Names are those of GGUF ("blk.0.attn_q.weight"). An open file is
 * read-only and may be shared by threads. Memory use is bounded by the bytes present. */
#ifndef WHIT_FORMAT_IMATRIX_H
#define WHIT_FORMAT_IMATRIX_H

#include "format/gguf.h"

typedef struct whit_imatrix_entry {
    const char *name; /* name of the matrix, not terminated */
    size_t name_bytes;
    const uint8_t *sums; /* n f32, at any alignment */
    uint64_t n;          /* number of sums: one per column of the matrix */
    double count;        /* mean square = sum / count; 0: the text did not use this matrix; unusable unless positive and
                          * finite */
} whit_imatrix_entry;

typedef struct whit_imatrix {
    const whit_allocator *allocator;
    char *path;
    whit_map map;                /* the mapped file; unused if the file is in the caller's memory */
    whit_gguf *gguf;             /* the file's reader if it has the GGUF format, else NULL */
    whit_buf memory;             /* memory of `entries` */
    whit_imatrix_entry *entries; /* sorted by name */
    size_t n;
} whit_imatrix;

/* Opens a file. On failure nothing remains open, and the error names the file and the reason. A zero-initialised
 * whit_imatrix counts as closed. */
whit_status whit_imatrix_open(whit_imatrix *imatrix, const char *path, const whit_allocator *allocator,
                              whit_error *error);
/* Like whit_imatrix_open, for a file whose bytes are in the caller's memory, which must outlive `imatrix`. `name` is
 * for messages. */
whit_status whit_imatrix_open_memory(whit_imatrix *imatrix, const void *data, size_t size_bytes, const char *name,
                                     const whit_allocator *allocator, whit_error *error);
void whit_imatrix_close(whit_imatrix *imatrix);

const whit_imatrix_entry *whit_imatrix_find(const whit_imatrix *imatrix, const char *name); /* NULL if absent */
/* Computes the mean squares of the n inputs, which are the diagonal of the Hessian. Fails if the entry has another
 * number of columns, its count is not positive and finite, or a number cannot be a mean square. */
whit_status whit_imatrix_means(const whit_imatrix *imatrix, const whit_imatrix_entry *entry, uint32_t n, float *means,
                               whit_error *error);

#endif
