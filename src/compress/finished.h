/* SPDX-License-Identifier: MIT
 * Finished matrices, packed, until the file is written. */
#ifndef WHIT_COMPRESS_FINISHED_H
#define WHIT_COMPRESS_FINISHED_H

#include "base/hash.h"
#include "kernels/corrections.h"
#include "model/graph.h"

typedef struct whit_finished {
    char name[WHIT_VALUE_NAME_BYTES];
    whit_tensor tensor;
    uint8_t *part[WHIT_PART_COUNT];
    uint8_t digest[WHIT_HASH_BYTES];
} whit_finished;

/* Packs all rows of content; outliers: that part (kernels/corrections.h), empty or NULL: none. On failure nothing is
 * left. */
whit_status whit_finished_make(whit_finished *finished, const char *name, const whit_tensor_type *type,
                               const whit_rows *rows, const whit_buf *outliers, const whit_allocator *allocator,
                               whit_error *error);
void whit_finished_free(whit_finished *finished, const whit_allocator *allocator); /* zeroed is free */

#endif
