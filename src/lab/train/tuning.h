/* SPDX-License-Identifier: MIT
 * Tunes a model: a trainee whose matrices stay as they are in the model's file, with any codec, learns adapters, norms
 * and scales (QLoRA, Dettmers et al. 2023; the factors of adapters are rounded to int8 in training too).
 *
 * If only an adapter is trained, it is written as an adapter of the model. Tuned norms and scales change the model:
 * then a new model is written, and the adapter, if there is one, is appended to it under the name "tuned". */
#ifndef WHIT_TRAIN_TUNING_H
#define WHIT_TRAIN_TUNING_H

#include "train/trainee.h"

#define WHIT_TUNED_NAME "tuned" /* name of the adapter in a new model's file */

typedef struct whit_tuning {
    uint32_t rank; /* rank of the adapters of the layers' matrices; 0: no adapters */
    /* (n_matrices) names of the matrices with an adapter: q k v o gate up down; empty: all matrices of the layers that
     * may have one; the matrices of experts may not */
    const char *const *matrices;
    size_t n_matrices;
    bool norms, scales;
    uint64_t seed; /* seed of the adapter's initial values */
} whit_tuning;

/* Opens a trainee like whit_trainee_open. Refuses invalid options: nothing to train, a rank above
 * WHIT_ADAPTER_MAX_RANK, an unknown matrix, scales of a model without matrices whose scales training supports, and
 * scales that training cannot represent exactly. */
whit_status whit_tuning_open(whit_trainee *trainee, const whit_model *model, const whit_tuning *tuning,
                             const whit_watcher *watcher, const whit_allocator *allocator, whit_error *error);
/* Writes the adapter to `path`; with `norms` or `scales` a new model, which contains the adapter if there is one. */
whit_status whit_tuning_write(const whit_trainee *trainee, const whit_tuning *tuning, const char *command,
                              const char *path, whit_error *error);

#endif
