/* SPDX-License-Identifier: MIT
 * Measures how far variants of a model are from the original: mean KL of their logits over a text. All variants run
 * side by side, layer by layer, so that one layer's weights at a time are in memory. A variant shares the original's
 * activations up to its first own matrix. */
#ifndef WHIT_COMPRESS_DIVERGENCE_H
#define WHIT_COMPRESS_DIVERGENCE_H

#include "compress/stream.h"

/* Functions of this type return the matrix that a variant has in place of a tensor of the source, by its number; NULL:
 * the original's matrix. */
typedef const whit_tensor *whit_variant_fn(void *user, uint32_t variant, uint32_t tensor);

/* Runs n variants over the stream's text, which is used up: the stream must have been opened for this call. kl: (n),
 * in nats. */
whit_status whit_divergence_measure(whit_stream *stream, uint32_t n, whit_variant_fn *choose, void *user, double *kl,
                                    whit_error *error);

#endif
