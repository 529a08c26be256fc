/* SPDX-License-Identifier: MIT
 * Finished matrices, packed, which wait until the file is written. */
#ifndef WHIT_COMPRESS_FINISHED_H
#define WHIT_COMPRESS_FINISHED_H

#include "base/hash.h"
#include "kernels/corrections.h"
#include "model/graph.h"

typedef struct whit_finished {
    char name[WHIT_VALUE_NAME_BYTES];
    whit_tensor tensor;
    uint8_t *part[WHIT_PART_COUNT]; /* each separately allocated */
    void *spool;                    /* or all parts in one mapping (spool.h) */
    size_t spool_bytes;
    uint8_t digest[WHIT_HASH_BYTES];
} whit_finished;

/* Packs all rows of the content. corrections: WHIT_PART_COUNT buffers (kernels/corrections.h), each empty if the part
 * is absent; NULL: no corrections. On failure nothing is allocated. */
whit_status whit_finished_make(whit_finished *finished, const char *name, const whit_tensor_type *type,
                               const whit_rows *rows, const whit_buf *corrections, const whit_allocator *allocator,
                               whit_error *error);
/* Make a finished matrix in pieces: begin makes an empty one, put adds n rows from row_begin on, as whit_codec_pack
 * takes them, and end makes the digest. The caller frees the matrix if put or end fails; after a failed begin nothing
 * is allocated. */
whit_status whit_finished_begin(whit_finished *finished, const char *name, const whit_tensor_type *type,
                                const whit_buf *corrections, const whit_allocator *allocator, whit_error *error);
whit_status whit_finished_put(whit_finished *finished, uint32_t row_begin, uint32_t n_rows, const whit_rows *rows,
                              whit_error *error);
whit_status whit_finished_end(whit_finished *finished, const whit_allocator *allocator, whit_error *error);
/* Moves large parts to an unnamed file in `folder` if one can be created there. */
void whit_finished_spool(whit_finished *finished, const char *folder, const whit_allocator *allocator);
void whit_finished_free(whit_finished *finished, const whit_allocator *allocator); /* accepts a zeroed matrix */

#endif
