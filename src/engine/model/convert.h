/* SPDX-License-Identifier: MIT
 * Converts a model: writes a source as an .ndf file. The conversion is lossless unless an option names a codec. */
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

/* Describes how a tensor changes: it is rounded to `type` or, if `finished` is set, replaced by `finished`, whose
 * digest is `digest`. */
typedef struct whit_convert_change {
    whit_tensor_type type;
    const whit_tensor *finished; /* the finished tensor; NULL: the source's rows are rounded to `type` */
    const uint8_t *digest;
} whit_convert_change;

typedef struct whit_convert_options {
    /* Codec of ternary matrices: "t5" (t2 for a matrix that t5 cannot represent); "t2"; "q2", which stores the same
     * weights as two planes of signs with a = b (as NULL for a matrix that q2 cannot represent); NULL: t5 if it can
     * represent them, else t2. */
    const char *ternary;
    const char *embd;    /* lossy: codec of the embedding (f32 f16 bf16 i8 i4); NULL: unchanged */
    const char *head;    /* lossy: codec of the head (those of `embd`, and i8s); also used for an embedding that is the
                          * head; NULL: unchanged */
    const char *command; /* command line to record as provenance; NULL: not recorded */
    /* Fills `change` and returns true for a tensor that changes; NULL: no tensor changes. */
    bool (*change)(void *user, const whit_source_tensor *tensor, whit_convert_change *change);
    uint32_t n_threads; /* 0: one per physical core; the output does not depend on the number */
    whit_progress_fn *progress;
    void (*report)(void *user, const whit_convert_tensor_report *report); /* called for each tensor before the first one
                                                                           * is converted; NULL: no reports */
    void *user;                                                           /* passed to change, progress and report */
} whit_convert_options;

/* Refuses invalid option values before any work is done. */
whit_status whit_convert_options_check(const whit_convert_options *options, whit_error *error);

/* Writes `source` into an open, empty writer and commits it. The memory needed is a few chunks of rows, plus the parts
 * of the largest tensor that follow its codes in the file. */
whit_status whit_convert(const whit_source *source, const whit_convert_options *options, whit_ndf_writer *writer,
                         whit_error *error);

#endif
