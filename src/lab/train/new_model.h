/* SPDX-License-Identifier: MIT
 * Makes a new model: a configuration with random weights, open like any other model.
 *
 * The weights of a matrix are normal with variance 2 / (5 columns) (Nguyen, Salazar 2019). If the matrix's output is
 * added to the residual stream, they are also divided by sqrt(2 layers), so that the stream does not grow with depth
 * (Radford et al. 2019). Norms are 1, biases 0. The taps of a convolution are normal with variance 1 / taps. The decays
 * of a delta rule are from -1 to -16, its steps from 0.001 to 0.1 (Gu, Dao 2023, section 3.6). The program of the
 * model's family determines the tensors and their names. The same seed gives the same bits on every machine. */
#ifndef WHIT_TRAIN_NEW_MODEL_H
#define WHIT_TRAIN_NEW_MODEL_H

#include "runtime/model.h"

typedef struct whit_new_model {
    const whit_config *config; /* its n_vocab must fit the tokenizer */
    const void *tokenizer;     /* image of the tokenizer; NULL: no tokenizer */
    size_t tokenizer_bytes;
    const char *chat_template; /* NULL: no template */
    const char *name;          /* value of the metadata key general.name; NULL: no name */
    uint64_t seed;
} whit_new_model;

/* Sets tokenizer and chat_template to those of an open model, which must stay open as long as *new_model is used. */
void whit_new_model_like(whit_new_model *new_model, const whit_model *model);

/* Opens a new model, which is in memory (4 bytes per weight) and which the caller closes. Refuses a configuration that
 * no graph can run. The model does not refer to *new_model. */
whit_status whit_new_model_open(const whit_new_model *new_model, const whit_allocator *allocator, whit_model **model,
                                whit_error *error);

#endif
