/* SPDX-License-Identifier: MIT
 * Linear layers: y = x W^T + b over rows. W is what the forward reads, rounded where the parameter
 * is coded; its gradient is left as that of the latent weights (straight through).
 *
 * Pieces of the products depend on shapes only, never on the number of threads. */
#include "train/ops.h"

#include <string.h>

#define ROW_PIECE 512 /* rows of x per product: long enough to pay for packing W again */

struct linear_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    const whit_param *weight;
    size_t n_out, n_in;
    uint32_t n_row_pieces, out_piece;
};

static struct linear_job linear_job(const whit_tape *tape, const whit_tape_step *step)
{
    struct linear_job job = {tape, step, &tape->params->items[step->node->weight], 0, 0, 0, 0};
    job.n_out = job.weight->type.n_rows;
    job.n_in = job.weight->type.n_cols;
    job.n_row_pieces = (tape->n_rows + ROW_PIECE - 1) / ROW_PIECE;
    /* Outputs per product of the weight's gradient: about four pieces, each packs all of x again. */
    size_t piece = (job.n_out / 4 + 63) & ~(size_t)63;
    job.out_piece = piece < 64 ? 64 : piece > 512 ? 512 : (uint32_t)piece;
    return job;
}

static uint32_t piece_rows(const whit_tape *tape, uint32_t piece)
{
    uint32_t rest = tape->n_rows - piece * ROW_PIECE;
    return rest < ROW_PIECE ? rest : ROW_PIECE;
}

static void forward_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct linear_job *job = context;
    const whit_tape *tape = job->tape;
    const float *bias = job->step->node->bias >= 0 ? tape->params->items[job->step->node->bias].value : NULL;
    for (uint32_t piece = begin; piece < end; piece++) {
        uint32_t rows = piece_rows(tape, piece);
        float *y = whit_step_output(tape, job->step) + (size_t)piece * ROW_PIECE * job->n_out;
        whit_blas_gemm(&tape->blas, false, true, rows, job->n_out, job->n_in,
                       whit_step_input(tape, job->step, 0) + (size_t)piece * ROW_PIECE * job->n_in, job->n_in,
                       job->weight->value, job->n_in, 0, y, job->n_out);
        for (uint32_t r = 0; bias && r < rows; r++) tape->loops->add(y + r * job->n_out, bias, job->n_out);
    }
}

void whit_op_linear(const whit_tape *tape, const whit_tape_step *step)
{
    struct linear_job job = linear_job(tape, step);
    whit_pool_run(tape->pool, forward_pieces, &job, job.n_row_pieces, 1);
}

/* dx = dy W, rows of a piece. */
static void input_piece(const struct linear_job *job, uint32_t piece)
{
    const whit_tape *tape = job->tape;
    size_t row = (size_t)piece * ROW_PIECE;
    whit_blas_gemm(&tape->blas, false, false, piece_rows(tape, piece), job->n_in, job->n_out,
                   whit_step_doutput(tape, job->step) + row * job->n_out, job->n_out, job->weight->value, job->n_in,
                   job->step->fresh[0] ? 0 : 1, whit_step_dinput(tape, job->step, 0) + row * job->n_in, job->n_in);
}

/* dW += dy^T x, outputs of a piece. */
static void weight_piece(const struct linear_job *job, uint32_t piece)
{
    const whit_tape *tape = job->tape;
    size_t out = (size_t)piece * job->out_piece, n = job->n_out - out;
    if (n > job->out_piece) n = job->out_piece;
    whit_blas_gemm(&tape->blas, true, false, n, job->n_in, tape->n_rows, whit_step_doutput(tape, job->step) + out,
                   job->n_out, whit_step_input(tape, job->step, 0), job->n_in, 1,
                   whit_param_gradient(tape->params, job->weight) + out * job->n_in, job->n_in);
}

static void gradient_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct linear_job *job = context;
    for (uint32_t piece = begin; piece < end; piece++)
        if (piece < job->n_row_pieces)
            input_piece(job, piece);
        else
            weight_piece(job, piece - job->n_row_pieces);
}

static void bias_partials(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct linear_job *job = context;
    const whit_tape *tape = job->tape;
    const float *dy = whit_step_doutput(tape, job->step);
    for (uint32_t chunk = begin; chunk < end; chunk++) {
        float *partial = tape->partials + chunk * tape->partial_elems;
        memset(partial, 0, job->n_out * sizeof *partial);
        for (uint32_t r = chunk * WHIT_TAPE_ROW_CHUNK; r < whit_chunk_end(tape, chunk); r++)
            tape->loops->add(partial, dy + r * job->n_out, job->n_out);
    }
}

void whit_op_linear_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct linear_job job = linear_job(tape, step);
    uint32_t n_out_pieces = (uint32_t)((job.n_out + job.out_piece - 1) / job.out_piece);
    whit_pool_run(tape->pool, gradient_pieces, &job, job.n_row_pieces + n_out_pieces, 1);
    if (step->node->bias < 0) return;
    whit_pool_run(tape->pool, bias_partials, &job, whit_tape_chunks(tape), 1);
    float *dbias = whit_param_gradient(tape->params, &tape->params->items[step->node->bias]);
    for (uint32_t chunk = 0; chunk < whit_tape_chunks(tape); chunk++)
        tape->loops->add(dbias, tape->partials + chunk * tape->partial_elems, job.n_out);
}
