/* SPDX-License-Identifier: MIT
 * Merges adapters into a model: writes a model whose matrices include adapters, W + strength B A.
 *
 * A matrix that an adapter changes is encoded again, in the requested codec. If no codec is requested, it keeps its
 * own, which must be a float or i8 (which then has a scale per row): signs, trits and similar codecs cannot hold a sum.
 * The encoding's loss is reported. Everything else is copied. */
#ifndef WHIT_MODEL_MERGE_H
#define WHIT_MODEL_MERGE_H

#include "model/adapter.h"
#include "model/convert.h"
#include "model/weights.h"

typedef struct whit_merge_adapter {
    const whit_adapter_weights *weights;
    float strength;
} whit_merge_adapter;

/* Reports on one changed matrix. error: RMS of the rounding errors divided by RMS of the exact sums. */
typedef struct whit_merge_report {
    const char *name;
    const whit_tensor_type *from, *to;
    double error;
} whit_merge_report;

typedef struct whit_merge_options {
    const char *codec; /* codec of changed matrices: f32 f16 bf16 i8 i4; NULL: each keeps its codec, which must be a
                        * float or i8 */
    const char *command;
    uint32_t n_threads; /* 0: one per physical core */
    whit_progress_fn *progress;
    void (*report)(void *user,
                   const whit_merge_report *report); /* called for each changed matrix after everything is written;
                                                      * NULL: no reports */
    void *user;
} whit_merge_options;

/* Writes the model of `weights`, stored at `path` (an .ndf file), with the adapters merged into it, to an open, empty
 * writer and commits it. Matrices whose codec cannot represent the sum are refused before any work is done. */
whit_status whit_merge(const whit_weights *weights, const char *path, const whit_merge_adapter *adapters,
                       size_t n_adapters, const whit_merge_options *options, whit_ndf_writer *writer,
                       whit_error *error);

#endif
