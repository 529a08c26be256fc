/* SPDX-License-Identifier: MIT */
#include "compress/matrix.h"

#include "kernels/codec.h"

#include <string.h>

#define SWEEPS        6
#define ANNEAL_SWEEPS 40

static size_t count_elems(const whit_matrix_solve *m)
{
    return (size_t)m->type->n_rows * m->type->n_cols;
}

static size_t count_fields(const whit_matrix_solve *m)
{
    return (size_t)m->type->n_rows * whit_codec_geometry(m->type).row_fields;
}

/* Returns the number of bytes to allocate for byte-sized scales. Most types have none; the additional byte avoids an
 * empty allocation. */
static size_t count_bytes(const whit_matrix_solve *m)
{
    return (size_t)m->type->n_rows * whit_codec_geometry(m->type).row_bytes + 1;
}

static whit_status find_target(const whit_matrix_solve *m, float *target, const whit_blas *blas, whit_pool *pool,
                               const whit_allocator *a, whit_error *error)
{
    size_t elems = count_elems(m);
    if (!m->moved) {
        memcpy(target, m->w, elems * sizeof *target);
        return WHIT_OK;
    }
    float *scratch = whit_zalloc_array(a, 2 * elems, sizeof(float));
    if (!scratch) return whit_fail_memory(error, "a matrix", 2 * elems * sizeof(float));
    whit_target_correct(m->factor, &m->hessians->text, m->hessians->text.n_out > 0, m->w, m->type->n_rows, blas, pool,
                        target, scratch);
    whit_free(a, scratch, 2 * elems * sizeof(float));
    return WHIT_OK;
}

whit_status whit_matrix_run(whit_matrix_solve *m, const whit_blas *blas, whit_pool *pool, const whit_allocator *a,
                            whit_error *error)
{
    size_t elems = count_elems(m);
    bool held = m->hessians->held.h && m->descends;
    float *target = whit_zalloc_array(a, elems, sizeof(float)), *held_target = NULL;
    m->fields = whit_zalloc_array(a, count_fields(m), sizeof(float));
    m->fields_u8 = whit_zalloc_array(a, count_bytes(m), 1);
    m->codes = whit_zalloc_array(a, elems, 1);
    for (int p = 0; p < WHIT_PART_COUNT; p++) m->corrected.parts[p].allocator = a;
    whit_status status = WHIT_OK;
    if (!target || !m->fields || !m->fields_u8 || !m->codes)
        status = whit_fail_memory(error, "a matrix", elems * sizeof(float));
    if (status == WHIT_OK) status = find_target(m, target, blas, pool, a, error);
    if (m->only) whit_hessian_drop_shift(&m->hessians->text, a);
    if (status == WHIT_OK && held && !(held_target = whit_zalloc_array(a, elems, sizeof(float))))
        status = whit_fail_memory(error, "a matrix", elems * sizeof(float));
    if (status == WHIT_OK && held)
        whit_target_held(&m->hessians->held, m->hessians->text.n_out > 0, m->w, m->type->n_rows, blas, pool,
                         held_target);
    if (m->only) whit_hessian_drop_shift(&m->hessians->held, a);
    whit_solve solve = {.type = m->type,
                        .target = target,
                        .h = m->factor->damped,
                        .u = m->factor->upper,
                        .held_h = held ? m->hessians->held.h : NULL,
                        .held_target = held_target,
                        .order = m->factor->order,
                        .n_anneal = m->descends && m->anneals ? ANNEAL_SWEEPS : 0,
                        .n_sweeps = m->descends ? SWEEPS : m->n_sweeps,
                        .within = m->within,
                        .end = m->sizes.n_columns || m->sizes.n_outliers || m->sizes.rank ? 0.8 : 1,
                        .codes = m->codes,
                        .fields = m->fields,
                        .fields_u8 = m->fields_u8,
                        .values = m->values};
    if (status == WHIT_OK) status = whit_solve_run(&solve, blas, pool, a, error);
    if (status == WHIT_OK) status = whit_correct(&solve, &m->sizes, blas, pool, a, &m->corrected, error);
    m->error_gptq = solve.error_gptq;
    m->error = solve.error;
    m->sweeps = solve.sweeps;
    whit_free(a, target, elems * sizeof(float));
    whit_free(a, held_target, elems * sizeof(float));
    return status;
}

void whit_matrix_free(whit_matrix_solve *m, const whit_allocator *a)
{
    whit_free(a, m->codes, count_elems(m));
    whit_free(a, m->fields, count_fields(m) * sizeof(float));
    whit_free(a, m->fields_u8, count_bytes(m));
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_buf_free(&m->corrected.parts[p]);
    m->codes = NULL;
    m->fields = NULL;
    m->fields_u8 = NULL;
}
