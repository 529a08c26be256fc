/* SPDX-License-Identifier: MIT
 * The plan: a graph compiled into a flat list of operations on slots.
 *
 * Compiling drops what no output needs, folds scales, inserts the activation formats that matrices
 * read (each once per value), groups operations into phases and gives every value a slot by liveness:
 *
 *   rows   operations on single token rows (norms, gates, RoPE, residuals, activation formats), run
 *          one after the other on a row while it is in cache; tokens are partitioned among threads
 *   tiles  matrices with the same input; tiles of 16 outputs are partitioned
 *   heads  attention; (KV head, tile of rows) pairs are partitioned
 *   state  recurrent layers; channels or value heads are partitioned, each runs all tokens in their order
 *
 * Threads wait for each other (a barrier) only between phases. Operations on all tokens come first, then those on the
 * selected ones. What runs is not this list but a *schedule* of it (plan_fuse.h), in which neighbours are fused. The
 * plan knows widths, not batch sizes: whit_plan_layout places the slots for those, and exec.h binds and runs
 * schedules. Nothing here depends on who built the graph. */
#ifndef WHIT_MODEL_PLAN_H
#define WHIT_MODEL_PLAN_H

#include "kernels/acts.h"
#include "model/graph.h"

typedef enum whit_plan_op {
    WHIT_PLAN_EMBED,
    WHIT_PLAN_NORM,
    WHIT_PLAN_ACTS,    /* f32 rows to the activation format of a matrix */
    WHIT_PLAN_LINEAR,  /* one matrix */
    WHIT_PLAN_RESCORE, /* makes the largest logits of a screened head right, in place */
    WHIT_PLAN_BIAS,
    WHIT_PLAN_ROPE,
    WHIT_PLAN_APPEND, /* k and v rows into the cache */
    WHIT_PLAN_ATTEND,
    WHIT_PLAN_GATE,
    WHIT_PLAN_ADD,
    WHIT_PLAN_SCALE,
    WHIT_PLAN_SELECT,
    WHIT_PLAN_TEMPERATURE,
    WHIT_PLAN_CONV,
    WHIT_PLAN_DELTA,
    WHIT_PLAN_SOFTCAP,
    WHIT_PLAN_SLICE,
    WHIT_PLAN_SCALE_BY,
    /* Fused ones, in schedules only. */
    WHIT_PLAN_SCREEN,         /* estimates of the head's matrix, which rescoring follows */
    WHIT_PLAN_LINEAR_GATED,   /* two matrices of one input: f(x gate) * (x other) */
    WHIT_PLAN_LINEAR_ADDED,   /* input[1] + x weight, in its place */
    WHIT_PLAN_NORM_ACTS,      /* acts = format(norm(input[0])) */
    WHIT_PLAN_ADD_NORM_ACTS,  /* output = input[0] + input[1]; acts = format(norm(output)) */
    WHIT_PLAN_GATE_NORM_ACTS, /* acts = format(norm(f(input[0]) * input[1])) */
    WHIT_PLAN_ROPE_ATTEND,    /* attention that rotates its queries */
    WHIT_PLAN_OP_COUNT
} whit_plan_op;

const char *whit_plan_op_name(whit_plan_op op);

typedef struct whit_plan_step {
    uint8_t op; /* whit_plan_op */
    uint8_t gate;
    uint16_t layer;
    uint8_t rows;      /* whit_row_set that it runs over */
    uint32_t number;   /* in the plan; of a fused step: its first one's */
    uint32_t input[3]; /* plan values; 0: none */
    uint32_t output;
    uint32_t acts;  /* of a fused norm: the activation format that it makes */
    int32_t weight; /* tensor of the resolver; -1: none */
    int32_t gated;  /* of a gated product: the second tensor; -1: none */
    int32_t second; /* of a delta rule: the vector dt; -1: none */
    uint32_t head_dim, rotary, window;
    uint32_t rope;                                    /* of a rotation: index of the RoPE table */
    uint32_t n_taps, n_heads, n_key_heads, value_dim; /* of convolutions and delta rules */
    bool is_silu;
    uint32_t first; /* first element of a slice */
    bool is_shared; /* attention to keys and values that layer `layer` has appended before */
    float constant;
} whit_plan_step;

typedef enum whit_plan_domain {
    WHIT_DOMAIN_ROWS,
    WHIT_DOMAIN_TILES,
    WHIT_DOMAIN_HEADS,
    WHIT_DOMAIN_STATE
} whit_plan_domain;

/* Steps [first, first + n) with one barrier at the end. */
typedef struct whit_plan_phase {
    uint32_t first, n_steps;
    uint8_t domain; /* whit_plan_domain */
    uint8_t rows;   /* whit_row_set */
    uint32_t place; /* of a schedule's phase: its number in the plan */
} whit_plan_phase;

typedef struct whit_plan_value {
    uint32_t graph_value; /* 0 for activation formats */
    uint32_t width;
    whit_acts_spec acts; /* WHIT_ACTS_F32: (width) f32 rows; else an activation format */
    uint8_t rows;        /* whit_row_set */
    uint32_t n_reads;    /* inputs of steps that it is */
    bool kept;           /* its slot is its own, from the first step to the last */
    bool external;       /* the caller fills it (a plan over a range of nodes) */
    uint32_t slot;
} whit_plan_value;

typedef struct whit_plan_slot {
    uint64_t row_bytes;                /* of its largest value at one row */
    uint8_t rows;                      /* whit_row_set */
    uint64_t offset_bytes, size_bytes; /* set by whit_plan_layout */
} whit_plan_slot;

typedef struct whit_plan_options {
    whit_act_type act;       /* of coded weights that follow the session */
    bool no_fuse;            /* every operation a phase of its own, and none fused */
    bool keep_hidden;        /* keep the graph's hidden value */
    const char *const *keep; /* names of further values to keep after the run */
    size_t n_keep;
    uint32_t first_node, n_nodes; /* a range of the graph's nodes; n_nodes 0: all */
} whit_plan_options;

typedef struct whit_plan {
    const whit_allocator *allocator;
    const whit_graph *graph; /* outlives the plan */
    bool no_fuse;
    whit_plan_step *steps;
    uint32_t n_steps, capacity_steps;
    whit_plan_phase *phases;
    uint32_t n_phases;
    whit_plan_value *values; /* value v is values[v - 1] */
    uint32_t n_values, capacity_values;
    whit_plan_slot *slots;
    uint32_t n_slots;
    uint32_t output, hidden; /* plan values; 0 where the range does not make them */
} whit_plan;

/* Needs the graph's resolver to be valid still (it reads tensor types from it). On failure the plan is
 * empty; whit_plan_free accepts that. */
whit_status whit_plan_compile(const whit_graph *graph, const whit_plan_options *options,
                              const whit_allocator *allocator, whit_plan *plan, whit_error *error);
void whit_plan_free(whit_plan *plan);

/* Places the slots for so many rows; false where the sum overflows. */
bool whit_plan_layout(whit_plan *plan, uint32_t n_batch_rows, uint32_t n_selected_rows, uint64_t *total_bytes);

/* The plan value that holds a graph value; 0 where it was dropped. */
uint32_t whit_plan_find(const whit_plan *plan, whit_ref value);

/* Floats from row to row of an f32 value: an odd number of cache lines. Matrix kernels write a line
 * or two of every row in turn, which takes longer where they end in the same bits of address. */
static inline size_t whit_plan_stride(const whit_plan_value *value)
{
    return (((size_t)value->width + 15) / 16 | 1) * 16;
}
/* Bytes of n rows of a value, as they lie in its slot. */
uint64_t whit_plan_value_bytes(const whit_plan_value *value, uint32_t n_rows);

/* A step as a line of text, its new line included. `name` gives names of tensors. */
void whit_plan_print_step(const whit_plan *plan, const whit_plan_step *step,
                          const char *(*name)(void *context, int32_t tensor), void *context, whit_buf *out);

/* The slots, a line each. */
void whit_plan_print_slots(const whit_plan *plan, whit_buf *out);

#endif
