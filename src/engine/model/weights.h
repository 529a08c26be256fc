/* SPDX-License-Identifier: MIT
 * The weights of an open model: every tensor of the container, checked against its codec, used in
 * place. Resolves names for the graph. */
#ifndef WHIT_MODEL_WEIGHTS_H
#define WHIT_MODEL_WEIGHTS_H

#include "model/graph.h"

typedef struct whit_weights {
    const whit_ndf *file;
    whit_tensor *tensors; /* indexed like the container's tensors */
    uint32_t n_tensors;
    const whit_allocator *allocator;
} whit_weights;

/* Checks types and the lengths of parts; reads only the directory. */
whit_status whit_weights_open(const whit_ndf *file, const whit_allocator *allocator, whit_weights *weights,
                              whit_error *error);
void whit_weights_close(whit_weights *weights);

/* `weights` must not move while the resolver is used. */
whit_resolver whit_weights_resolver(whit_weights *weights);

/* Returns bits per weight of the layers' matrices, including scales, parts and padding. */
double whit_weights_layer_bits(const whit_weights *weights);

#endif
