/* SPDX-License-Identifier: MIT
 * Implements linear layers: y = x W^T + b over rows. If W is coded, the forward pass uses the rounded W, and the
 * gradient of the rounded W serves as the gradient of the latent weights (straight-through). In W1.58A8, where the
 * input is rounded to int8, its gradient is straight-through too; for the gradient of W the input is rounded again
 * instead of being stored. */
#include "train/ops.h"

#include <string.h>

struct round_job {
    const whit_tape *tape;
    const float *x;
    size_t n_in;
};

static void round_chunks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct round_job *job = context;
    for (uint32_t chunk = begin; chunk < end; chunk++)
        for (size_t r = chunk * WHIT_TAPE_ROW_CHUNK; r < whit_chunk_end(job->tape, chunk); r++)
            job->tape->loops->round_row(job->x + r * job->n_in, job->tape->rounded + r * job->n_in, job->n_in);
}

/* Returns the input of the layer's product. If the weight requires a rounded input, this is tape->rounded, filled
 * here. */
static const float *input_of(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_param *weight = &tape->params->items[step->node->weight];
    struct round_job job = {tape, whit_step_input(tape, step, 0), weight->type.n_cols};
    if (!weight->rounds_input) return job.x;
    whit_pool_run(tape->pool, round_chunks, &job, whit_tape_chunks(tape), 1);
    return tape->rounded;
}

struct bias_job {
    const whit_tape *tape;
    const float *bias; /* added to y; NULL in the backward pass, which sums dy instead */
    float *y;
    const float *dy;
    size_t n_out;
};

static void add_bias(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct bias_job *job = context;
    for (uint32_t chunk = begin; chunk < end; chunk++)
        for (uint32_t r = chunk * WHIT_TAPE_ROW_CHUNK; r < whit_chunk_end(job->tape, chunk); r++)
            job->tape->loops->add(job->y + r * job->n_out, job->bias, job->n_out);
}

void whit_op_linear(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_param *weight = &tape->params->items[step->node->weight];
    size_t n_out = weight->type.n_rows, n_in = weight->type.n_cols;
    const float *x = input_of(tape, step);
    float *y = whit_step_output(tape, step);
    whit_blas_share(&tape->blas, tape->pool,
                    &(whit_product){.transpose_b = true,
                                    .m = tape->n_rows,
                                    .n = n_out,
                                    .k = n_in,
                                    .a = x,
                                    .lda = n_in,
                                    .b = weight->value,
                                    .ldb = n_in,
                                    .c = y,
                                    .ldc = n_out});
    if (weight->low_a >= 0) whit_op_low_rank(tape, step, x);
    if (step->node->bias < 0) return;
    struct bias_job job = {.tape = tape, .bias = tape->params->items[step->node->bias].value, .y = y, .n_out = n_out};
    whit_pool_run(tape->pool, add_bias, &job, whit_tape_chunks(tape), 1);
}

static void bias_partials(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct bias_job *job = context;
    const whit_tape *tape = job->tape;
    for (uint32_t chunk = begin; chunk < end; chunk++) {
        float *partial = tape->partials + chunk * tape->partial_elems;
        memset(partial, 0, job->n_out * sizeof *partial);
        for (uint32_t r = chunk * WHIT_TAPE_ROW_CHUNK; r < whit_chunk_end(tape, chunk); r++)
            tape->loops->add(partial, job->dy + r * job->n_out, job->n_out);
    }
}

void whit_op_linear_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_param *weight = &tape->params->items[step->node->weight];
    size_t n_out = weight->type.n_rows, n_in = weight->type.n_cols;
    const float *x = input_of(tape, step), *dy = whit_step_doutput(tape, step);
    whit_product dx = {.m = tape->n_rows,
                       .n = n_in,
                       .k = n_out,
                       .a = dy,
                       .lda = n_out,
                       .b = weight->value,
                       .ldb = n_in,
                       .beta = step->overwrites[0] ? 0 : 1,
                       .c = whit_step_dinput(tape, step, 0),
                       .ldc = n_in};
    whit_product dweight = {.transpose_a = true,
                            .m = n_out,
                            .n = n_in,
                            .k = tape->n_rows,
                            .a = dy,
                            .lda = n_out,
                            .b = x,
                            .ldb = n_in,
                            .beta = tape->is_first && step->is_sole ? 0 : 1,
                            .c = whit_param_gradient(tape->params, weight),
                            .ldc = n_in};
    whit_blas_share(&tape->blas, tape->pool, &dx);
    if (dweight.c) whit_blas_share(&tape->blas, tape->pool, &dweight); /* dweight.c is NULL if the weight is frozen */
    if (weight->low_a >= 0) whit_op_low_rank_gradient(tape, step, x);
    float *dbias =
        step->node->bias >= 0 ? whit_param_gradient(tape->params, &tape->params->items[step->node->bias]) : NULL;
    if (!dbias) return;
    struct bias_job job = {.tape = tape, .dy = dy, .n_out = n_out};
    whit_pool_run(tape->pool, bias_partials, &job, whit_tape_chunks(tape), 1);
    for (uint32_t chunk = 0; chunk < whit_tape_chunks(tape); chunk++)
        tape->loops->add(dbias, tape->partials + chunk * tape->partial_elems, n_out);
}
