/* SPDX-License-Identifier: MIT
 * Declares finished, packed matrices, which are kept until the file is written. */
#ifndef WHIT_COMPRESS_FINISHED_H
#define WHIT_COMPRESS_FINISHED_H

#include "base/hash.h"
#include "kernels/corrections.h"
#include "model/graph.h"

typedef struct whit_finished {
    char name[WHIT_VALUE_NAME_BYTES];
    whit_tensor tensor;
    uint8_t *part[WHIT_PART_COUNT]; /* allocation of each part; NULL for absent parts and with `spool` */
    void *spool;                    /* mapping that contains all parts (spool.h); NULL: the parts are in `part` */
    size_t spool_bytes;
    uint8_t digest[WHIT_HASH_BYTES];
} whit_finished;

/* Packs all rows of a matrix. corrections: WHIT_PART_COUNT buffers (kernels/corrections.h), which are empty for absent
 * parts; NULL: no corrections. On failure nothing is allocated. */
whit_status whit_finished_make(whit_finished *finished, const char *name, const whit_tensor_type *type,
                               const whit_rows *rows, const whit_buf *corrections, const whit_allocator *allocator,
                               whit_error *error);
/* Pack a matrix piece by piece. begin creates an empty matrix, put packs n_rows rows from row_begin on (`rows` as in
 * whit_codec_pack), and end computes the digest. The caller frees the matrix if put or end fails; after a failed begin
 * nothing is allocated. */
whit_status whit_finished_begin(whit_finished *finished, const char *name, const whit_tensor_type *type,
                                const whit_buf *corrections, const whit_allocator *allocator, whit_error *error);
whit_status whit_finished_put(whit_finished *finished, uint32_t row_begin, uint32_t n_rows, const whit_rows *rows,
                              whit_error *error);
whit_status whit_finished_end(whit_finished *finished, const whit_allocator *allocator, whit_error *error);
/* Moves the parts, if they are large, to an unnamed file in `folder`. Without effect if such a file cannot be
 * created. */
void whit_finished_spool(whit_finished *finished, const char *folder, const whit_allocator *allocator);
void whit_finished_free(whit_finished *finished, const whit_allocator *allocator); /* accepts a zeroed matrix */

#endif
