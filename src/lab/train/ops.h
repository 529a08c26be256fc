/* SPDX-License-Identifier: MIT
 * Declares the operations of the tape: a forward function and a gradient function for every kind of node. Only tape.c,
 * ops_*.c and their tests include this header. */
#ifndef WHIT_TRAIN_OPS_H
#define WHIT_TRAIN_OPS_H

#include "train/tape.h"

typedef void whit_op_fn(const whit_tape *tape, const whit_tape_step *step);

typedef struct whit_train_op {
    /* NULL: nothing to compute, because the output shares the input's memory (select), or the operation cannot be
     * trained */
    whit_op_fn *forward, *backward;
} whit_train_op;

whit_op_fn whit_op_embed, whit_op_embed_gradient;
whit_op_fn whit_op_norm, whit_op_norm_gradient;
whit_op_fn whit_op_linear, whit_op_linear_gradient;
whit_op_fn whit_op_rope, whit_op_rope_gradient;
whit_op_fn whit_op_attention, whit_op_attention_gradient;
whit_op_fn whit_op_gate, whit_op_gate_gradient;
whit_op_fn whit_op_add, whit_op_add_gradient;
whit_op_fn whit_op_scale, whit_op_scale_gradient;
whit_op_fn whit_op_scale_rows, whit_op_scale_rows_gradient;
whit_op_fn whit_op_conv, whit_op_conv_gradient;
whit_op_fn whit_op_delta, whit_op_delta_gradient;
whit_op_fn whit_op_route, whit_op_route_gradient;
whit_op_fn whit_op_dispatch, whit_op_dispatch_gradient;
whit_op_fn whit_op_expert_linear, whit_op_expert_linear_gradient;
whit_op_fn whit_op_combine, whit_op_combine_gradient;
whit_op_fn whit_op_clamp, whit_op_clamp_gradient;

/* Compute an adapter's part of a linear layer, forward and backward. x is the input of the layer's product, rounded if
 * the matrix requires it. */
void whit_op_low_rank(const whit_tape *tape, const whit_tape_step *step, const float *x);
void whit_op_low_rank_gradient(const whit_tape *tape, const whit_tape_step *step, const float *x);

/* Return the number of floats of scratch memory per thread: for attention, a convolution and a delta rule over
 * sequences of n_tokens tokens, and for a router. */
size_t whit_op_attention_scratch(const whit_node *node, uint32_t n_tokens);
size_t whit_op_conv_scratch(uint32_t n_tokens);
size_t whit_op_delta_scratch(const whit_node *node, uint32_t n_tokens);
size_t whit_op_route_scratch(const whit_node *node);

/* Return operands of a step: the value of input 0, 1 or 2, the value of the output, the gradients of both (dinput,
 * doutput), and the number of floats in a row of a value (width). */
static inline const float *whit_step_input(const whit_tape *tape, const whit_tape_step *step, int i)
{
    return tape->value[step->node->input[i]];
}
static inline float *whit_step_output(const whit_tape *tape, const whit_tape_step *step)
{
    return tape->value[step->node->output];
}
static inline float *whit_step_dinput(const whit_tape *tape, const whit_tape_step *step, int i)
{
    return tape->gradient[step->node->input[i]];
}
static inline const float *whit_step_doutput(const whit_tape *tape, const whit_tape_step *step)
{
    return tape->gradient[step->node->output];
}
static inline uint32_t whit_step_width(const whit_tape *tape, whit_ref value)
{
    return tape->graph->values[value - 1].width;
}
/* Returns the first row after a chunk. The chunk begins at row chunk * WHIT_TAPE_ROW_CHUNK. */
static inline uint32_t whit_chunk_end(const whit_tape *tape, uint32_t chunk)
{
    uint32_t end = (chunk + 1) * WHIT_TAPE_ROW_CHUNK;
    return end < tape->n_rows ? end : tape->n_rows;
}

#endif
