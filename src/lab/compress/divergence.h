/* SPDX-License-Identifier: MIT
 * Measures how far variants of a model are from the original: the mean KL divergence of their logits over a text. All
 * variants run side by side, layer by layer, so that only one layer's weights are in memory at a time. A variant uses
 * the original's activations up to the first layer in which it differs. */
#ifndef WHIT_COMPRESS_DIVERGENCE_H
#define WHIT_COMPRESS_DIVERGENCE_H

#include "compress/stream.h"

/* Returns the matrix that a variant has in place of tensor number `tensor` of the source; NULL: the original's. */
typedef const whit_tensor *whit_variant_fn(void *user, uint32_t variant, uint32_t tensor);

/* Runs n variants over the stream's text. kl: (n), receives the mean divergence of each variant from the original, in
 * nats per token. Afterwards the stream cannot be used again, so it must have been opened for this call. */
whit_status whit_divergence_measure(whit_stream *stream, uint32_t n, whit_variant_fn *choose, void *user, double *kl,
                                    whit_error *error);

#endif
