/* SPDX-License-Identifier: MIT */
#include "compress/hessian.h"

#include <math.h>

static bool make(const whit_allocator *a, whit_hessian *hessian, uint32_t n, uint32_t n_out, bool moved)
{
    *hessian = (whit_hessian){.n = n, .n_out = n_out};
    hessian->h = whit_zalloc_array(a, (size_t)n * n, sizeof(float));
    if (moved) hessian->shift = whit_zalloc_array(a, (size_t)n * n, sizeof(float));
    if (n_out) hessian->lost = whit_zalloc_array(a, (size_t)n_out * n, sizeof(float));
    return hessian->h && (!moved || hessian->shift) && (!n_out || hessian->lost);
}

static void release(const whit_allocator *a, whit_hessian *hessian)
{
    whit_free(a, hessian->h, (size_t)hessian->n * hessian->n * sizeof(float));
    whit_free(a, hessian->shift, (size_t)hessian->n * hessian->n * sizeof(float));
    whit_free(a, hessian->lost, (size_t)hessian->n_out * hessian->n * sizeof(float));
    *hessian = (whit_hessian){0};
}

void whit_hessian_drop_shift(whit_hessian *hessian, const whit_allocator *a)
{
    whit_free(a, hessian->shift, (size_t)hessian->n * hessian->n * sizeof(float));
    whit_free(a, hessian->lost, (size_t)hessian->n_out * hessian->n * sizeof(float));
    hessian->shift = hessian->lost = NULL;
}

void whit_hessian_free(whit_hessian_pair *pair)
{
    release(pair->allocator, &pair->text);
    release(pair->allocator, &pair->held);
}

struct weigh_job {
    const whit_loops *loops;
    float *x, *other;
    const float *weights; /* (n_rows) */
    size_t width;
    bool subtract; /* x = other - x first */
};

/* Rows times the root of their weights. */
static void weigh_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct weigh_job *job = context;
    for (uint32_t r = begin; r < end; r++) {
        float *x = job->x + r * job->width, *other = job->other ? job->other + r * job->width : NULL;
        if (other) {
            for (size_t k = 0; k < job->width; k++) other[k] -= x[k];
        }
        if (!job->weights) continue;
        float root = sqrtf(job->weights[r]);
        if (!job->subtract) job->loops->scale(x, x, root, job->width);
        if (other) job->loops->scale(other, other, root, job->width);
    }
}

static void add_product(const whit_blas *blas, whit_pool *pool, const float *a, size_t n_a, const float *b, size_t n_b,
                        size_t n_rows, float *c)
{
    whit_blas_share(blas, pool,
                    &(whit_product){.transpose_a = true,
                                    .m = n_a,
                                    .n = n_b,
                                    .k = n_rows,
                                    .a = a,
                                    .lda = n_a,
                                    .b = b,
                                    .ldb = n_b,
                                    .beta = 1,
                                    .c = c,
                                    .ldc = n_b});
}

/* The one of two values that is made last; the block's input is there before all others. */
static whit_ref later(const whit_graph *block, whit_ref a, whit_ref b)
{
    for (uint32_t i = block->n_nodes; i-- > 0;)
        if (block->nodes[i].output == a || block->nodes[i].output == b) return block->nodes[i].output;
    return a;
}

static bool are_finite(const float *values, size_t n)
{
    for (size_t i = 0; values && i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static whit_status check_finite(const whit_stream *s, const whit_hessian *hessian, whit_ref value, whit_ref residual,
                                whit_error *error)
{
    size_t n = hessian->n;
    whit_ref bad = 0;
    if (!are_finite(hessian->lost, hessian->n_out * n)) bad = residual;
    if (!are_finite(hessian->h, n * n) || !are_finite(hessian->shift, n * n)) bad = value;
    if (!bad) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_NUMERIC, "value '%s' is no number any more on the calibration text",
                     s->graph.values[bad - 1].name);
}

whit_status whit_hessian_gather(whit_hessian_pair *pair, whit_stream *s, const whit_blas *blas, whit_ref value,
                                bool moved, whit_ref residual, uint32_t n_out, const float *row_weights,
                                whit_error *error)
{
    uint32_t n = s->graph.values[value - 1].width;
    bool held = whit_stream_is_held(s, 7);
    whit_ref until = later(&s->block, value, residual); /* some layers compute the residual after the matrix */
    *pair = (whit_hessian_pair){.allocator = s->allocator};
    WHIT_TRY(whit_stream_wake(s, error));
    if (!residual) n_out = 0;
    if (!make(s->allocator, &pair->text, n, n_out, moved) ||
        (held && !make(s->allocator, &pair->held, n, n_out, moved)))
        return whit_fail_memory(error, "a Hessian", (size_t)n * n * sizeof(float));
    for (uint32_t batch = 0; batch < s->n_batches; batch++) {
        whit_hessian *to = held && whit_stream_is_held(s, batch) ? &pair->held : &pair->text;
        const float *weights = row_weights ? row_weights + (size_t)batch * s->n_rows : NULL;
        whit_stream_run(s, batch, until);
        float *x = whit_tape_value(&s->tape[1], value), *original = whit_tape_value(&s->tape[0], value);
        struct weigh_job job = {
            .loops = blas->loops, .x = x, .other = moved ? original : NULL, .weights = weights, .width = n};
        whit_pool_run(s->pool, weigh_rows, &job, s->n_rows, 16);
        add_product(blas, s->pool, x, n, x, n, s->n_rows, to->h);
        if (moved) add_product(blas, s->pool, original, n, x, n, s->n_rows, to->shift);
        if (!n_out) continue;
        job = (struct weigh_job){.loops = blas->loops,
                                 .x = whit_tape_value(&s->tape[1], residual),
                                 .other = whit_tape_value(&s->tape[0], residual),
                                 .weights = weights,
                                 .width = n_out,
                                 .subtract = true};
        if (residual != value) /* otherwise the first call has computed the losses */
            whit_pool_run(s->pool, weigh_rows, &job, s->n_rows, 16);
        add_product(blas, s->pool, job.other, n_out, x, n, s->n_rows, to->lost);
    }
    WHIT_TRY(check_finite(s, &pair->text, value, residual, error));
    return check_finite(s, &pair->held, value, residual, error);
}
