/* SPDX-License-Identifier: MIT
 * Conversion: a source written out as an .ndf. Lossless unless an option names a codec. */
#ifndef WHIT_MODEL_CONVERT_H
#define WHIT_MODEL_CONVERT_H

#include "format/conversion_cache.h"
#include "format/ndf_write.h"
#include "model/source.h"

typedef struct whit_convert_tensor_report {
    uint32_t i, n;
    const char *name;
    const whit_tensor_type *from, *to;
    uint64_t bytes;
} whit_convert_tensor_report;

/* A tensor that is to be stored otherwise than it is: rounded to `type`, or, where it was made elsewhere, as
 * `finished` says, with its digest. */
typedef struct whit_convert_change {
    whit_tensor_type type;
    const whit_tensor *finished; /* NULL: the source's rows are rounded */
    const uint8_t *digest;
} whit_convert_change;

typedef struct whit_convert_options {
    /* How ternary matrices lie: "t5", "t2", or "q2", as two planes of signs with a = b, which says the same
     * weights; NULL: t5 where it can hold them. */
    const char *ternary;
    const char *embd;    /* lossy: codec of the embedding (f32 f16 bf16 i8 i4); NULL: as it is */
    const char *head;    /* lossy: codec of the head (also i8s); of a tied matrix this one counts */
    const char *command; /* provenance; NULL: none */
    /* Fills `change` and says true for a tensor that changes; NULL: none does. */
    bool (*change)(void *user, const whit_source_tensor *tensor, whit_convert_change *change);
    uint32_t n_threads; /* 0: one per physical core; the bytes written do not depend on it */
    whit_progress_fn *progress;
    void (*report)(void *user, const whit_convert_tensor_report *report); /* NULL: none */
    void *user;                                                           /* of change, progress and report */
} whit_convert_options;

/* Refuses option values that mean nothing, before any work. */
whit_status whit_convert_options_check(const whit_convert_options *options, whit_error *error);

/* Writes `source` into an opened, empty writer and commits it. Memory: a few chunks of rows, and
 * what the largest tensor has in parts behind its codes. */
whit_status whit_convert(const whit_source *source, const whit_convert_options *options, whit_ndf_writer *writer,
                         whit_error *error);

#endif
