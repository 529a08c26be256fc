/* SPDX-License-Identifier: MIT
 * Conversion: a source written out as an .ndf. Lossless unless an option names a codec. */
#ifndef WHIT_MODEL_CONVERT_H
#define WHIT_MODEL_CONVERT_H

#include "format/ndf_write.h"
#include "model/source.h"

/* Changes whenever the same source would give another file: part of the cache's key. */
#define WHIT_CONVERT_VERSION "2"

typedef struct whit_convert_tensor_report {
    uint32_t i, n;
    const char *name;
    const whit_tensor_type *from, *to;
    uint64_t bytes;
} whit_convert_tensor_report;

typedef struct whit_convert_options {
    const char *ternary; /* "t5" or "t2": how ternary matrices lie; NULL: t5 where it can hold them */
    const char *embd;    /* lossy: codec of the embedding (f32 f16 bf16 i8 i4); NULL: as it is */
    const char *head;    /* lossy: codec of the head (also i8s); of a tied matrix this one counts */
    const char *command; /* provenance; NULL: none */
    uint32_t n_threads;  /* 0: one per physical core; the bytes written do not depend on it */
    whit_progress_fn *progress;
    void (*report)(void *user, const whit_convert_tensor_report *report); /* NULL: none */
    void *user;                                                           /* of progress and report */
} whit_convert_options;

/* Refuses option values that mean nothing, before any work. */
whit_status whit_convert_options_check(const whit_convert_options *options, whit_error *error);

/* Writes `source` into an opened, empty writer and commits it. Memory: a few chunks of rows, and
 * what the largest tensor has in parts behind its codes. */
whit_status whit_convert(const whit_source *source, const whit_convert_options *options, whit_ndf_writer *writer,
                         whit_error *error);

#endif
