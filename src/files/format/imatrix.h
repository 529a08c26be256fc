/* SPDX-License-Identifier: MIT
 * Reads importance matrices of llama.cpp: for each matrix of a model the mean square of each of its inputs over some
 * text. Two forms: GGUF files of general.type "imatrix" (tensors NAME.in_sum2 and NAME.counts), and the older binary
 * one:
 *
 *     i32 entries | entries: i32 bytes of the name, name, i32 calls, i32 n, n f32 | [i32 chunks [i32 bytes, text file]]
 *
 * whose numbers are mean squares times the calls. Names are those of GGUF ("blk.0.attn_q.weight"). An open file is
 * read-only and may be shared by threads. Memory is bounded by the bytes present. */
#ifndef WHIT_FORMAT_IMATRIX_H
#define WHIT_FORMAT_IMATRIX_H

#include "format/gguf.h"

typedef struct whit_imatrix_entry {
    const char *name; /* name of the weights, not terminated */
    size_t name_bytes;
    const uint8_t *sums; /* n f32, at any alignment */
    uint64_t n;          /* columns of the matrix */
    double count;        /* divisor of the sums; 0: the text never reached this matrix */
} whit_imatrix_entry;

typedef struct whit_imatrix {
    const whit_allocator *allocator;
    char *path;
    whit_map map;                /* the file in binary form */
    whit_gguf *gguf;             /* the file in GGUF form */
    whit_buf memory;             /* memory of entries */
    whit_imatrix_entry *entries; /* by name */
    size_t n;
} whit_imatrix;

/* Opens a file; a zero-initialised `imatrix` is closed. On failure nothing stays open; the error names file, place and
 * reason. */
whit_status whit_imatrix_open(whit_imatrix *imatrix, const char *path, const whit_allocator *allocator,
                              whit_error *error);
/* Opens a file's bytes in the caller's memory, which must outlive `imatrix`. */
whit_status whit_imatrix_open_memory(whit_imatrix *imatrix, const void *data, size_t size_bytes, const char *name,
                                     const whit_allocator *allocator, whit_error *error);
void whit_imatrix_close(whit_imatrix *imatrix);

const whit_imatrix_entry *whit_imatrix_find(const whit_imatrix *imatrix, const char *name); /* NULL: absent */
/* Reads the mean squares of the n inputs, which are the diagonal of the Hessian. Refuses an entry of another length,
 * one without a count, and numbers that cannot be mean squares. */
whit_status whit_imatrix_means(const whit_imatrix *imatrix, const whit_imatrix_entry *entry, uint32_t n, float *means,
                               whit_error *error);

#endif
