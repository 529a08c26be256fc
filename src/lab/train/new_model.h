/* SPDX-License-Identifier: MIT
 * Makes a new model: a configuration with random weights, open like any other model.
 *
 * Matrices are normal with variance 2 / (5 inputs) (Nguyen, Salazar 2019); matrices whose output is added to the
 * residual stream are divided by sqrt(2 layers) (Radford et al. 2019) so that it does not grow with depth; norms are 1,
 * biases 0. Taps of convolutions are normal with variance 1 / taps; decays of a delta rule are from -1 to -16, its
 * steps from 0.001 to 0.1 (Gu, Dao 2023, section 3.6). The family's program names the tensors. The same seed gives the
 * same bits on every machine. */
#ifndef WHIT_TRAIN_NEW_MODEL_H
#define WHIT_TRAIN_NEW_MODEL_H

#include "runtime/model.h"

typedef struct whit_new_model {
    const whit_config *config; /* n_vocab fits the tokenizer */
    const void *tokenizer;     /* tokenizer image, or NULL */
    size_t tokenizer_bytes;
    const char *chat_template; /* template, or NULL */
    const char *name;          /* general.name, or NULL */
    uint64_t seed;
} whit_new_model;

/* Sets tokenizer and template to those of an open model, which outlives the description. */
void whit_new_model_like(whit_new_model *new_model, const whit_model *model);

/* Opens a new model, which lies in memory (4 bytes a weight) and is the caller's. Refuses configurations that no graph
 * can run. Nothing of `new_model` is kept. */
whit_status whit_new_model_open(const whit_new_model *new_model, const whit_allocator *allocator, whit_model **model,
                                whit_error *error);

#endif
