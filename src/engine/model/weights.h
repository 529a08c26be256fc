/* SPDX-License-Identifier: MIT
 * Holds the weights of an open model: every tensor of the container, checked against its codec and used in place. They
 * resolve names for the graph. */
#ifndef WHIT_MODEL_WEIGHTS_H
#define WHIT_MODEL_WEIGHTS_H

#include "model/graph.h"

typedef struct whit_weights {
    const whit_ndf *file;
    whit_tensor *tensors; /* (n_tensors) the tensors, in the container's order */
    uint32_t n_tensors;
    const whit_allocator *allocator;
} whit_weights;

/* Opens the weights of a file: checks the types of all tensors and the lengths of their parts. It reads only the
 * directory of the file. */
whit_status whit_weights_open(const whit_ndf *file, const whit_allocator *allocator, whit_weights *weights,
                              whit_error *error);
void whit_weights_close(whit_weights *weights);

/* Returns a resolver of the weights for a graph; `weights` must not move while the resolver is used. */
whit_resolver whit_weights_resolver(whit_weights *weights);

/* Returns the average number of bits per weight in the layers' matrices, including scales, corrections and padding. */
double whit_weights_layer_bits(const whit_weights *weights);

#endif
