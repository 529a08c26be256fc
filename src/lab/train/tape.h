/* SPDX-License-Identifier: MIT
 * The tape runs a model's graph forward over a batch and backward again.
 *
 * It walks the nodes of the same whit_graph that inference compiles; every operation's forward and gradient stand side
 * by side in ops_*.c. A batch is n_sequences of n_tokens each, all positions from 0; rows are n_sequences * n_tokens.
 * Select keeps all rows.
 *
 * The graph is cut into segments, one per layer. With `checkpoint` only values that cross from one segment to another
 * are kept; the backward pass runs a segment's forward again before its gradients. Gradients of values lie in one place
 * that all segments share, the gradients of crossing values by themselves. All of it is one allocation, known
 * beforehand. The logits are replaced by their gradient, in place, so the operation that makes them must not need them
 * again (attention would; no model ends in it).
 *
 * The graph may be a part of another graph, such as the nodes of one layer, whose first input the caller fills
 * (options.input).
 *
 * Work is cut into the same pieces whatever the number of threads, and every sum is one thread's, so the results do not
 * depend on that number. One thread at a time may use a tape. */
#ifndef WHIT_TRAIN_TAPE_H
#define WHIT_TRAIN_TAPE_H

#include "kernels/kernels.h"
#include "linalg/blas.h"
#include "model/rope_scaling.h"
#include "train/params.h"

typedef struct whit_tape_options {
    uint32_t n_sequences, n_tokens;
    bool gradients;  /* backward is wanted */
    bool checkpoint; /* stores few activations and recomputes the others */
    whit_precision precision;
    float balance;  /* weight of the loss that balances experts (ops_experts.c) */
    whit_ref input; /* a value that no node makes: the caller fills it in before forward; 0: no such value */
} whit_tape_options;

typedef struct whit_tape_step {
    const whit_node *node;
    uint32_t segment;
    bool needed;        /* the output of the graph depends on this step; otherwise it has no gradient to pass on */
    bool overwrites[3]; /* the backward step is the first to write the gradient of input i */
    /* The step is a linear layer whose weight no other node reads: its gradient is overwritten, then accumulated. */
    bool is_sole;
    whit_ref route; /* the route whose pairs the operation runs; 0: no experts */
} whit_tape_step;

/* Holds the (token, expert) pairs of the layer whose operation ran last, sorted by expert, then by token. */
typedef struct whit_tape_pairs {
    uint32_t n_experts, n_used; /* 0: the graph has no experts */
    uint32_t *first;            /* (n_experts + 1) first pair of each expert */
    uint32_t *token_of;         /* (n_rows n_used) token of each pair */
    float *weight_of;           /* (n_rows n_used) weight of each pair */
    uint32_t *row_of;           /* (n_rows, n_used) pairs of each token, by rank */
} whit_tape_pairs;

typedef struct whit_tape {
    const whit_graph *graph;
    whit_params *params;
    whit_pool *pool;
    const whit_allocator *allocator;
    const whit_loops *loops;
    whit_kernels kernels; /* inference kernels, for operations that they define */
    whit_blas blas;
    whit_tape_options options;
    uint32_t n_rows, n_ropes;
    whit_rope ropes[WHIT_ROPES_MAX];
    whit_tape_step *steps;
    uint32_t n_steps, n_segments;
    uint32_t *segment_of;        /* per value: segment that computes it */
    bool *is_sole;               /* per parameter: a step with is_sole writes its gradient */
    bool is_first;               /* the next backward pass is the first since the gradients were set to zero */
    bool *crosses;               /* per value: used in another segment too, or stored */
    uint32_t *root;              /* per value: the value whose memory it shares */
    float **value, **gradient;   /* per value; gradients NULL without them */
    float *rope[WHIT_ROPES_MAX]; /* (n_tokens, dims) cosines and sines of each table */
    float *scratch;              /* (threads, scratch_elems) */
    size_t scratch_elems;
    float *partials; /* sums over row chunks: (n_chunks, widest vector); or over sequences */
    size_t partial_elems;
    float *rounded;       /* (n_rows, widest rounded input) the rounded input of the current product */
    size_t rounded_elems; /* elements per row */
    float *low;           /* (2, n_rows, highest rank) values x Aᵀ of an adapter, and their gradient */
    size_t low_elems;
    whit_tape_pairs pairs;
    size_t common_elems, own_elems; /* number of floats for right operands of products, in common and per thread */
    float *arena;
    size_t arena_bytes;
    const int32_t *ids;        /* ids of the current batch */
    void (*watch)(void *user); /* called after each operation, forward or backward; NULL: not called */
    void *watch_user;
    uint32_t resident; /* segment whose inner values are in memory */
} whit_tape;

/* Opens a tape. The graph was built over the parameters' resolver; both, and the pool, outlive the tape. */
whit_status whit_tape_open(whit_tape *tape, const whit_graph *graph, const whit_config *config, whit_params *params,
                           const whit_tape_options *options, whit_pool *pool, const whit_allocator *allocator,
                           whit_error *error);
void whit_tape_close(whit_tape *tape); /* accepts a zero-initialised tape */
/* Returns the bytes of activations and of packed operands. */
size_t whit_tape_bytes(const whit_tape *tape);

/* Runs the graph forward. ids (n_sequences, n_tokens) are each below the vocabulary; they stay valid until backward is
 * done. */
void whit_tape_forward(whit_tape *tape, const int32_t *ids);
/* Runs forward only up to the node that computes `value`; backward must not follow. */
void whit_tape_forward_to(whit_tape *tape, const int32_t *ids, whit_ref value);
/* Returns the number of rows of a value: n_rows, or one for each (token, expert) pair. */
static inline uint32_t whit_tape_rows(const whit_tape *tape, whit_ref value)
{
    return tape->graph->values[value - 1].rows == WHIT_ROWS_EXPERT ? tape->n_rows * tape->pairs.n_used : tape->n_rows;
}
/* Return a value or its gradient, (rows, width): for crossing values always, for others while their segment is
 * resident. */
float *whit_tape_value(const whit_tape *tape, whit_ref value);
float *whit_tape_gradient(const whit_tape *tape, whit_ref value);

/* A function of this type is called when the gradient of a crossing value is complete except for the caller's own
 * addition to it. */
typedef void whit_tape_hook(void *user, whit_tape *tape, whit_ref value);

/* Begins a sum of gradients: sets those of the parameters to zero, except that the next backward pass overwrites
 * those of sole weights, which are undefined until then. Needs options.gradients. */
void whit_tape_zero_gradients(whit_tape *tape);
/* Runs backward. The logits have been replaced by their gradient. Adds to the parameters' gradients. */
void whit_tape_backward(whit_tape *tape, whit_tape_hook *hook, void *user);

/* ---- for the operations --------------------------------------------------------------------- */

#define WHIT_TAPE_ROW_CHUNK 64 /* rows of one item; sums over rows are one partial per chunk */

static inline uint32_t whit_tape_chunks_of(uint32_t n_rows)
{
    return (n_rows + WHIT_TAPE_ROW_CHUNK - 1) / WHIT_TAPE_ROW_CHUNK;
}
static inline uint32_t whit_tape_chunks(const whit_tape *tape)
{
    return whit_tape_chunks_of(tape->n_rows);
}

#endif
