/* SPDX-License-Identifier: MIT
 * Random adapters for a model, for tests: they change all layer matrices or every second one, with ranks that are
 * not multiples of a block size. */
#ifndef WHIT_TESTS_ADAPTER_SAMPLE_H
#define WHIT_TESTS_ADAPTER_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "model/adapter.h"

typedef struct adapter_sample {
    uint64_t seed;
    uint32_t rank;       /* rank for the first matrix; the ranks for others are up to three greater or smaller */
    bool every_second;   /* changes only every second matrix */
    uint32_t n_matrices; /* maximum number of changed matrices; 0: no limit */
    float size;          /* magnitude of the elements of B */
} adapter_sample;

static inline float *adapter_sample_floats(whit_rng *rng, size_t n, float size)
{
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; values && i < n; i++) values[i] = (float)(whit_rng_uniform(rng) * 2 - 1) * size;
    return values;
}

/* Returns whether a tensor belongs to a layer that attends to the keys and values of an earlier layer. */
static inline bool is_shared(const whit_ndf *model, const char *name)
{
    uint64_t n_layers = 0, n_shared = 0;
    unsigned layer;
    whit_table_get_u64(whit_ndf_config(model), "n_layers", &n_layers);
    whit_table_get_u64(whit_ndf_config(model), "n_shared_layers", &n_shared);
    return sscanf(name, "layers.%u.", &layer) == 1 && layer >= n_layers - n_shared;
}

/* Builds the adapter's image into `out`. Returns false if memory runs out. */
static inline bool adapter_sample_build(const adapter_sample *sample, const whit_ndf *model, whit_buf *out,
                                        whit_error *error)
{
    enum { PAIRS_MAX = 256 };
    whit_rng rng = {sample->seed};
    whit_adapter_floats *pairs = calloc(PAIRS_MAX, sizeof *pairs);
    uint32_t n = 0, most = sample->n_matrices ? sample->n_matrices : PAIRS_MAX;
    for (uint32_t i = 0, k = 0; i < whit_ndf_n_tensors(model) && n < most; i++) {
        const whit_tensor_type *type = whit_ndf_tensor_type(model, i);
        const char *name = whit_ndf_tensor_name(model, i);
        if (is_shared(model, name)) continue; /* adapters on such layers are refused */
        if (!whit_adapter_may_change(name, type) || (k++ % 2 && sample->every_second)) continue;
        whit_adapter_floats pair = {.name = name,
                                    .n_rows = type->n_rows,
                                    .n_cols = type->n_cols,
                                    .rank = sample->rank + (uint32_t)whit_rng_below(&rng, 4) * (n > 0)};
        pair.a = adapter_sample_floats(&rng, (size_t)pair.rank * pair.n_cols, 1.0f);
        pair.b = adapter_sample_floats(&rng, (size_t)pair.rank * pair.n_rows, sample->size);
        pairs[n++] = pair;
    }
    whit_table_builder meta = {0};
    whit_table_set_string(&meta, "general.name", "sample");
    whit_status status = whit_adapter_build(whit_ndf_identity(model), &meta, pairs, n, out, error);
    whit_table_builder_free(&meta);
    for (uint32_t i = 0; i < n; i++) {
        free((void *)pairs[i].a);
        free((void *)pairs[i].b);
    }
    free(pairs);
    return status == WHIT_OK;
}

#endif
