/* SPDX-License-Identifier: MIT
 * Reads adapters, which are int8 low-rank additions to the matrices of one model, in place in an ADAPTER frame
 * (docs/dev/format.md, section 8).
 *
 * A matrix W (n_rows, n_cols) with the pair A (rank, n_cols), B (n_rows, rank) gives x Wᵀ plus
 * strength (x Aᵀ) Bᵀ (Hu et al. 2021, section 4.1, with alpha / rank folded into B). A and B are
 * tensors like any other: i8 with an f32 scale per row. */
#ifndef WHIT_MODEL_ADAPTER_H
#define WHIT_MODEL_ADAPTER_H

#include "format/ndf.h"

#define WHIT_ADAPTER_MAX_RANK 1024

typedef struct whit_adapter_pair {
    const char *name; /* name of the tensor in the model */
    whit_tensor a, b; /* factors A (rank, n_cols) and B (n_rows, rank) */
} whit_adapter_pair;

/* Describes a checked image of an adapter; the view points into the image's bytes. */
typedef struct whit_adapter_view {
    const uint8_t *data;
    size_t size_bytes;
    const uint8_t *identity; /* identity of the model that the adapter belongs to */
    whit_table meta;
    uint32_t n_pairs;
    uint32_t max_rank;
} whit_adapter_view;

/* Checks an image (64-byte aligned): header, metadata, bounds, order of names, ranks and shapes. `place` begins the
 * error line. */
whit_status whit_adapter_check(const void *data, size_t size_bytes, const char *place, whit_adapter_view *view,
                               whit_error *error);
/* Returns pair i < n_pairs, in the order of names. */
whit_adapter_pair whit_adapter_pair_at(const whit_adapter_view *view, uint32_t i);

/* Returns whether adapters may change this matrix: matrices of layers may be changed; embedding, head and the matrices
 * of experts may not. */
bool whit_adapter_may_change(const char *tensor_name, const whit_tensor_type *type);

/* Holds the pairs of an adapter, indexed by the model's tensors. */
typedef struct whit_adapter_weights {
    whit_adapter_pair *pairs;            /* (n_pairs) pairs, sorted by name */
    const whit_adapter_pair **of_tensor; /* (n_tensors) pair of each tensor; NULL if the tensor has no pair */
    uint32_t n_pairs, n_tensors, max_rank;
    const whit_allocator *allocator;
} whit_adapter_weights;

/* Finds the model's tensor for each pair. Refuses an adapter of another model (by identity), models with rotated
 * matrices, and pairs for which the model has no matrix of that name and shape that adapters may change. `weights`
 * points into the image. */
whit_status whit_adapter_bind(const whit_adapter_view *view, const whit_ndf *model, const char *place,
                              const whit_allocator *allocator, whit_adapter_weights *weights, whit_error *error);
void whit_adapter_unbind(whit_adapter_weights *weights);

/* ---- building an image ---- */

/* Holds one pair of factors as floats; `b` is already multiplied by alpha / rank. */
typedef struct whit_adapter_floats {
    const char *name;
    uint32_t n_rows, n_cols, rank;
    const float *a; /* factor A, (rank, n_cols) */
    const float *b; /* factor B, (n_rows, rank) */
} whit_adapter_floats;

/* Rounds pairs to int8 and appends the image to `out`, which must be empty. Pairs must be sorted by name, without
 * duplicates. */
whit_status whit_adapter_build(const uint8_t identity[WHIT_HASH_BYTES], const whit_table_builder *meta,
                               const whit_adapter_floats *pairs, uint32_t n_pairs, whit_buf *out, whit_error *error);

#endif
