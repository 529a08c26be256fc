/* SPDX-License-Identifier: MIT
 * The tape runs a model's graph forward over a batch, and backward for the gradients.
 *
 * It runs the nodes of the same whit_graph that inference compiles. The forward and the gradient function of an
 * operation are next to each other in ops_*.c. A batch has n_sequences sequences of n_tokens tokens each, all of which
 * begin at position 0; its number of rows is n_sequences * n_tokens. The operation "select" selects all rows.
 *
 * The graph is divided into segments, one per layer. A value that is used in several segments is a crossing value. With
 * `checkpoint` only crossing values are stored, and the backward pass runs the forward functions of a segment again
 * before its gradients. Each crossing value has its own memory for its gradient; the gradients of all other values are
 * in one memory that the segments share. All of this is one allocation, whose size is known in advance. The gradient of
 * the logits replaces the logits in their memory, so the gradient function of the operation that computes them must not
 * need them (that of attention would; no model ends with attention).
 *
 * The graph may be a part of another graph, such as the nodes of one layer. The caller then fills its first input
 * (options.input).
 *
 * Work is divided into the same pieces for any number of threads, and every sum is computed by one thread, so the
 * results do not depend on the number of threads. Only one thread at a time may use a tape. */
#ifndef WHIT_TRAIN_TAPE_H
#define WHIT_TRAIN_TAPE_H

#include "kernels/kernels.h"
#include "linalg/blas.h"
#include "model/rope_scaling.h"
#include "train/params.h"

typedef struct whit_tape_options {
    uint32_t n_sequences, n_tokens;
    bool gradients;  /* the backward pass will be run */
    bool checkpoint; /* stores few values and computes the others again */
    whit_precision precision;
    float balance;  /* weight of the loss that balances experts (ops_experts.c) */
    whit_ref input; /* a value that no node computes and that the caller fills before the forward pass; 0: no such
                     * value */
} whit_tape_options;

typedef struct whit_tape_step {
    const whit_node *node;
    uint32_t segment;
    bool needed;        /* the output has a gradient, so the backward pass runs this step */
    bool overwrites[3]; /* the step is the first to write the gradient of input i, and overwrites it; otherwise it adds
                         * to it */
    /* The step is needed and is a linear layer whose weight no other node uses. The weight's gradient is overwritten in
     * the first backward pass after whit_tape_zero_gradients; later passes add to it. */
    bool is_sole;
    /* output of the last router up to and including this step, whose pairs an operation of experts uses; 0: no router
     * yet */
    whit_ref route;
} whit_tape_step;

/* The (token, expert) pairs of the layer whose expert operation ran last, sorted by expert and then by token. */
typedef struct whit_tape_pairs {
    uint32_t n_experts, n_used; /* number of experts, and of experts per token; 0: the graph has no experts */
    uint32_t *first;            /* (n_experts + 1) first pair of each expert, then the number of pairs */
    uint32_t *token_of;         /* (n_rows n_used) token of each pair */
    float *weight_of;           /* (n_rows n_used) weight of each pair */
    uint32_t *row_of;           /* (n_rows, n_used) pairs of each token, in the order in which its experts were
                                 * chosen */
} whit_tape_pairs;

typedef struct whit_tape {
    const whit_graph *graph;
    whit_params *params;
    whit_pool *pool;
    const whit_allocator *allocator;
    const whit_loops *loops;
    whit_kernels kernels; /* inference kernels, for operations that are computed with them */
    whit_blas blas;
    whit_tape_options options;
    uint32_t n_rows, n_ropes;
    whit_rope ropes[WHIT_ROPES_MAX];
    whit_tape_step *steps;
    uint32_t n_steps, n_segments;
    uint32_t *segment_of;        /* per value: the segment that computes it */
    bool *is_sole;               /* per parameter: there is a step with is_sole for it */
    bool is_first;               /* the next backward pass is the first since whit_tape_zero_gradients */
    bool *crosses;               /* per value: it is a crossing value, or the input or output of the graph */
    uint32_t *root;              /* per value: the value whose memory it uses */
    float **value, **gradient;   /* per value: its memory, and that of its gradient (NULL without options.gradients) */
    float *rope[WHIT_ROPES_MAX]; /* (n_tokens, dims) cosines and sines of each table */
    float *scratch;              /* (threads, scratch_elems) */
    size_t scratch_elems;
    float *partials; /* (n_chunks, partial_elems) sums over chunks of rows, or sums over sequences */
    size_t partial_elems;
    float *rounded;       /* (n_rows, rounded_elems) rounded input of the current product */
    size_t rounded_elems; /* largest number of columns of a weight that requires rounded inputs */
    float *low;           /* (2, n_rows, rank) x Aᵀ of an adapter, and its gradient */
    size_t low_elems;
    whit_tape_pairs pairs;
    size_t common_elems, own_elems; /* number of floats for packed right operands of products: for the common one, and
                                     * for that of each thread */
    float *arena;
    size_t arena_bytes;
    const int32_t *ids;        /* ids of the current batch */
    void (*watch)(void *user); /* called after each operation, but not in whit_tape_forward_to; NULL: not called */
    void *watch_user;
    /* Segment that was run last. If segments share the memory of values (with `checkpoint`, or without gradients), only
     * its values and crossing values are in memory; otherwise the values of all segments are. */
    uint32_t resident;
} whit_tape;

/* Opens a tape. `graph` must have been built with the resolver of `params`. Both, and the pool, must outlive the
 * tape. */
whit_status whit_tape_open(whit_tape *tape, const whit_graph *graph, const whit_config *config, whit_params *params,
                           const whit_tape_options *options, whit_pool *pool, const whit_allocator *allocator,
                           whit_error *error);
void whit_tape_close(whit_tape *tape); /* accepts a zero-initialised tape */
/* Returns the number of bytes of values, gradients of values and packed operands. */
size_t whit_tape_bytes(const whit_tape *tape);

/* Runs the graph forward. ids (n_sequences, n_tokens) must be below the size of the vocabulary and stay valid until the
 * backward pass is done. */
void whit_tape_forward(whit_tape *tape, const int32_t *ids);
/* Runs forward only up to the node that computes `value`, and leaves `resident` as it was. The backward pass must not
 * follow. */
void whit_tape_forward_to(whit_tape *tape, const int32_t *ids, whit_ref value);
/* Returns the number of rows of a value: n_rows, or one row for each (token, expert) pair. */
static inline uint32_t whit_tape_rows(const whit_tape *tape, whit_ref value)
{
    return tape->graph->values[value - 1].rows == WHIT_ROWS_EXPERT ? tape->n_rows * tape->pairs.n_used : tape->n_rows;
}
/* Return a value or its gradient (rows, width). Those of crossing values are always valid. Other gradients are valid
 * only while the backward pass is in their segment, other values only while their segment is resident, unless each
 * segment has memory of its own (gradients without `checkpoint`). */
float *whit_tape_value(const whit_tape *tape, whit_ref value);
float *whit_tape_gradient(const whit_tape *tape, whit_ref value);

/* A function of this type is called in the backward pass when the gradient of a crossing value other than the graph's
 * output is complete. The function may change this gradient. */
typedef void whit_tape_hook(void *user, whit_tape *tape, whit_ref value);

/* Begins a sum of gradients: sets the gradients of the parameters to zero. Those of weights with is_sole are undefined
 * instead until the next backward pass overwrites them. Needs options.gradients. */
void whit_tape_zero_gradients(whit_tape *tape);
/* Runs the backward pass, which adds to the parameters' gradients. The caller has replaced the logits by their
 * gradient. `hook` may be NULL. */
void whit_tape_backward(whit_tape *tape, whit_tape_hook *hook, void *user);

/* ---- for the operations --------------------------------------------------------------------- */

#define WHIT_TAPE_ROW_CHUNK 64 /* number of rows of a work item; a sum over rows has one partial sum per chunk */

static inline uint32_t whit_tape_chunks_of(uint32_t n_rows)
{
    return (n_rows + WHIT_TAPE_ROW_CHUNK - 1) / WHIT_TAPE_ROW_CHUNK;
}
static inline uint32_t whit_tape_chunks(const whit_tape *tape)
{
    return whit_tape_chunks_of(tape->n_rows);
}

#endif
