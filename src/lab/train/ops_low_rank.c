/* SPDX-License-Identifier: MIT
 * Implements the adapter of a linear layer: y += (x Aᵀ) Bᵀ. The forward pass uses A and B rounded to int8; the
 * gradients of the rounded factors serve as the gradients of the latent ones (straight-through). x Aᵀ is small, so the
 * backward pass computes it again instead of storing it. */
#include "train/ops.h"

struct factors {
    const whit_param *a, *b;
    size_t n_out, n_in, rank, n_rows;
    const float *x;
    float *low, *dlow; /* (n_rows, rank) x Aᵀ and its gradient */
};

static struct factors factors_of(const whit_tape *tape, const whit_tape_step *step, const float *x)
{
    const whit_param *weight = &tape->params->items[step->node->weight];
    struct factors f = {.a = &tape->params->items[weight->low_a],
                        .b = &tape->params->items[weight->low_b],
                        .n_out = weight->type.n_rows,
                        .n_in = weight->type.n_cols,
                        .n_rows = tape->n_rows,
                        .x = x,
                        .low = tape->low};
    f.rank = f.a->type.n_rows;
    f.dlow = f.low + f.n_rows * f.rank;
    return f;
}

static void project(const whit_tape *tape, const struct factors *f)
{
    whit_blas_share(&tape->blas, tape->pool,
                    &(whit_product){.transpose_b = true,
                                    .m = f->n_rows,
                                    .n = f->rank,
                                    .k = f->n_in,
                                    .a = f->x,
                                    .lda = f->n_in,
                                    .b = f->a->value,
                                    .ldb = f->n_in,
                                    .c = f->low,
                                    .ldc = f->rank});
}

void whit_op_low_rank(const whit_tape *tape, const whit_tape_step *step, const float *x)
{
    struct factors f = factors_of(tape, step, x);
    project(tape, &f);
    whit_blas_share(&tape->blas, tape->pool,
                    &(whit_product){.transpose_b = true,
                                    .m = f.n_rows,
                                    .n = f.n_out,
                                    .k = f.rank,
                                    .a = f.low,
                                    .lda = f.rank,
                                    .b = f.b->value,
                                    .ldb = f.rank,
                                    .beta = 1,
                                    .c = whit_step_output(tape, step),
                                    .ldc = f.n_out});
}

void whit_op_low_rank_gradient(const whit_tape *tape, const whit_tape_step *step, const float *x)
{
    struct factors f = factors_of(tape, step, x);
    const float *dy = whit_step_doutput(tape, step);
    project(tape, &f);
    const whit_product products[] = {
        {.m = f.n_rows,
         .n = f.rank,
         .k = f.n_out,
         .a = dy,
         .lda = f.n_out,
         .b = f.b->value,
         .ldb = f.rank,
         .c = f.dlow,
         .ldc = f.rank},
        {.transpose_a = true,
         .m = f.n_out,
         .n = f.rank,
         .k = f.n_rows,
         .a = dy,
         .lda = f.n_out,
         .b = f.low,
         .ldb = f.rank,
         .beta = 1,
         .c = whit_param_gradient(tape->params, f.b),
         .ldc = f.rank},
        {.transpose_a = true,
         .m = f.rank,
         .n = f.n_in,
         .k = f.n_rows,
         .a = f.dlow,
         .lda = f.rank,
         .b = f.x,
         .ldb = f.n_in,
         .beta = 1,
         .c = whit_param_gradient(tape->params, f.a),
         .ldc = f.n_in},
        {.m = f.n_rows,
         .n = f.n_in,
         .k = f.rank,
         .a = f.dlow,
         .lda = f.rank,
         .b = f.a->value,
         .ldb = f.n_in,
         .beta = 1,
         .c = whit_step_dinput(tape, step, 0),
         .ldc = f.n_in},
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        whit_blas_share(&tape->blas, tape->pool, &products[i]);
}
