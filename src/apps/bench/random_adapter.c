/* SPDX-License-Identifier: MIT
 * Makes a random adapter for benchmarks: every matrix of the layers has its own pair of factors. */
#include <stdlib.h>

#include "base/rng.h"
#include "bench/bench.h"

/* Lists the factor pairs of all matrices that an adapter may change. All factors are at `values`, because the cost of
 * an adapter does not depend on its values. */
static uint32_t list_pairs(const whit_model *model, uint32_t rank, const float *values, whit_adapter_floats *pairs,
                           size_t *n_values)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->weights.n_tensors; i++) {
        const whit_tensor_type *type = &model->weights.tensors[i].type;
        const char *name = whit_ndf_tensor_name(model->file, i);
        if (!whit_adapter_may_change(name, type)) continue;
        uint32_t longest = type->n_rows > type->n_cols ? type->n_rows : type->n_cols;
        if ((size_t)rank * longest > *n_values) *n_values = (size_t)rank * longest;
        pairs[n++] = (whit_adapter_floats){
            .name = name, .n_rows = type->n_rows, .n_cols = type->n_cols, .rank = rank, .a = values, .b = values};
    }
    return n;
}

whit_status bench_adapter_mount(whit_session *session, uint32_t rank, bench_adapter *bench, whit_error *error)
{
    const whit_model *model = session->model;
    whit_adapter_floats *pairs = calloc(model->weights.n_tensors, sizeof *pairs);
    if (!pairs) return whit_fail_memory(error, "an adapter", model->weights.n_tensors);
    size_t n_values = 0;
    whit_table_builder meta = {0};
    (void)list_pairs(model, rank, NULL, pairs, &n_values);
    float *values = malloc(n_values * sizeof *values);
    whit_rng rng = {1};
    for (size_t i = 0; values && i < n_values; i++) values[i] = (float)(whit_rng_uniform(&rng) - 0.5) * 0.01f;
    whit_status status = values ? WHIT_OK : whit_fail_memory(error, "an adapter", n_values);
    if (status == WHIT_OK)
        status = whit_adapter_build(whit_model_identity(model), &meta, pairs,
                                    list_pairs(model, rank, values, pairs, &n_values), &bench->image, error);
    whit_table_builder_free(&meta);
    free(values);
    free(pairs);
    bench->adapter.model = model;
    if (status == WHIT_OK)
        status =
            whit_adapter_check(bench->image.data, bench->image.size_bytes, "the adapter", &bench->adapter.view, error);
    if (status == WHIT_OK)
        status =
            whit_adapter_bind(&bench->adapter.view, model->file, "the adapter", NULL, &bench->adapter.weights, error);
    for (uint32_t s = 0; status == WHIT_OK && s < session->options.n_sequences; s++)
        status = whit_session_mount(session, s, &(whit_mount){&bench->adapter, 1}, 1, error);
    bench->pass_bytes = (double)bench->image.size_bytes;
    return status;
}

void bench_adapter_free(bench_adapter *bench)
{
    whit_adapter_unbind(&bench->adapter.weights);
    whit_buf_free(&bench->image);
}
