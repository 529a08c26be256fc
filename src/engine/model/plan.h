/* SPDX-License-Identifier: MIT
 * Declares the plan: a graph compiled into a flat list of operations on slots.
 *
 * Compiling drops operations that no output needs, folds scales, inserts the activation formats that matrices read
 * (each once per value), groups operations into phases and gives every value a slot by liveness:
 *
 *   rows   operations on single rows (norms, gates, RoPE, residuals, activation formats), executed
 *          one after the other on a few rows while they are in cache; tokens are partitioned among threads
 *   tiles  matrices with the same input; tiles of 16 outputs are partitioned
 *   heads  attention; (KV head, query block) pairs are partitioned
 *   state  recurrent layers; channels or value heads are partitioned, each runs all tokens in their order
 *   pairs  (token, expert) pairs of a pass, grouped by expert; pairs are partitioned once they are counted
 *   experts  matrices of experts with the same input; (expert, tile of outputs) pairs are partitioned
 *   gather   exchanges the parts of a value that other ranks have computed (plan_split.h)
 *
 * Threads wait for each other (a barrier) only between phases. Operations on all tokens come first, then operations on
 * selected ones. The executor runs a *schedule* of this list (plan_fuse.h), in which neighbours are fused. The plan has
 * widths, but no batch sizes: whit_plan_layout places the slots for a batch size, and exec.h binds and runs schedules.
 * The plan does not depend on the builder of the graph. */
#ifndef WHIT_MODEL_PLAN_H
#define WHIT_MODEL_PLAN_H

#include "base/ranks.h"
#include "kernels/acts.h"
#include "model/graph.h"

typedef enum whit_plan_op {
    WHIT_PLAN_EMBED,
    WHIT_PLAN_NORM,
    WHIT_PLAN_ACTS,    /* converts f32 rows to the activation format that a matrix reads */
    WHIT_PLAN_LINEAR,  /* multiplies by one matrix */
    WHIT_PLAN_RESCORE, /* recomputes the largest logits of a screened head exactly, in place */
    WHIT_PLAN_BIAS,
    WHIT_PLAN_ROPE,
    WHIT_PLAN_APPEND, /* appends k and v rows to the cache */
    WHIT_PLAN_ATTEND,
    WHIT_PLAN_GATE,
    WHIT_PLAN_ADD,
    WHIT_PLAN_SCALE,
    WHIT_PLAN_SELECT,
    WHIT_PLAN_TEMPERATURE,
    WHIT_PLAN_CONV,
    WHIT_PLAN_DELTA,
    WHIT_PLAN_HADAMARD,
    WHIT_PLAN_SOFTCAP,
    WHIT_PLAN_SLICE,
    WHIT_PLAN_SCALE_BY,
    WHIT_PLAN_CLAMP,
    WHIT_PLAN_SCALE_ROWS,
    WHIT_PLAN_ROUTE,
    WHIT_PLAN_DISPATCH,
    WHIT_PLAN_EXPERT_LINEAR, /* multiplies each row by the matrix of its expert */
    WHIT_PLAN_EXPERT_BIAS,
    WHIT_PLAN_COMBINE,
    WHIT_PLAN_LAYER_NORM,
    WHIT_PLAN_ACTIVATE,
    WHIT_PLAN_JOIN,
    WHIT_PLAN_GATHER, /* completes input[0]: each rank has computed only its own columns */
    /* The following operations are fused from several steps, and occur only in schedules. */
    WHIT_PLAN_SCREEN,         /* estimates the logits of the head; RESCORE follows */
    WHIT_PLAN_LINEAR_GATED,   /* two matrices with the same input x: gate(x weight) * (x gated) */
    WHIT_PLAN_LINEAR_ADDED,   /* input[1] + x weight, written to input[1] */
    WHIT_PLAN_NORM_ACTS,      /* acts = format(norm(input[0])) */
    WHIT_PLAN_ADD_NORM_ACTS,  /* output = input[0] + input[1]; acts = format(norm(output)) */
    WHIT_PLAN_GATE_NORM_ACTS, /* acts = format(norm(f(input[0]) * input[1])) */
    WHIT_PLAN_ROPE_ATTEND,    /* attention that also rotates its queries */
    WHIT_PLAN_OP_COUNT
} whit_plan_op;

const char *whit_plan_op_name(whit_plan_op op);

/* Columns [begin, end) of a value, or units [begin, end). */
typedef struct whit_columns {
    uint32_t begin, end;
} whit_columns;

typedef struct whit_plan_step {
    uint8_t op;   /* whit_plan_op */
    uint8_t gate; /* whit_gate, whit_activation or whit_row_index, as in whit_node */
    uint16_t layer;
    uint8_t rows;      /* whit_row_set of the step's rows */
    uint32_t number;   /* index of the step in the plan; a fused step has the number of its first step, but ROPE_ATTEND
                        * that of the attention */
    uint32_t input[3]; /* numbers of plan values; 0: no value */
    uint32_t output;
    uint32_t acts;  /* fused norm: plan value of the activations that the step writes */
    int32_t weight; /* index of a tensor in the resolver, -1 if absent */
    int32_t gated;  /* gated product: index of the second tensor, -1 if absent */
    int32_t second; /* index of another tensor: dt of a delta rule, factors of a route, bias of a layer norm; -1 if
                     * absent */
    uint32_t head_dim, rotary, window;
    uint32_t rope;                                    /* rotation: index of the RoPE table */
    uint32_t n_taps, n_heads, n_key_heads, value_dim; /* parameters of a convolution or a delta rule; split plan:
                                                       * n_key_heads of attention is its number of KV heads, and a
                                                       * convolution before a delta rule has the rule's heads */
    bool is_silu;
    bool is_inverse;            /* Hadamard: the inverse transform */
    bool is_grouped;            /* delta rule: order of value heads (kernels/delta.h) */
    uint32_t first;             /* slice: index of its first element */
    bool is_shared;             /* attention: appends nothing, and reads the keys and values that layer `layer` has
                                 * appended */
    bool only_above;            /* clamp: no lower limit */
    uint8_t route;              /* route: whit_route_flag bits */
    uint32_t n_experts, n_used; /* route, dispatch, expert matrices, combine: number of experts, number used per
                                 * token */
    float added;                /* route: added to the sum that the chosen scores are divided by */
    float constant;
    bool is_split;    /* the step computes only this rank's columns */
    whit_columns own; /* split product: columns of the output that this step computes; end 0: they follow from the
                       * output's units */
    bool to_first;    /* gather: only rank 0 needs the complete value */
} whit_plan_step;

typedef enum whit_plan_domain {
    WHIT_DOMAIN_ROWS,
    WHIT_DOMAIN_TILES,
    WHIT_DOMAIN_HEADS,
    WHIT_DOMAIN_STATE,
    WHIT_DOMAIN_PAIRS,
    WHIT_DOMAIN_EXPERTS,
    WHIT_DOMAIN_GATHER,
    WHIT_DOMAIN_COUNT
} whit_plan_domain;

/* Steps [first, first + n_steps), with one barrier at the end. */
typedef struct whit_plan_phase {
    uint32_t first, n_steps;
    uint8_t domain; /* whit_plan_domain */
    uint8_t rows;   /* whit_row_set */
    uint32_t place; /* in a schedule: index of the phase in the plan */
} whit_plan_phase;

typedef struct whit_plan_value {
    uint32_t graph_value; /* number of the graph's value; 0 for activation formats */
    uint32_t width;
    whit_acts_spec acts; /* WHIT_ACTS_F32: f32 rows of `width`; else an activation format */
    uint8_t rows;        /* whit_row_set */
    uint32_t n_reads;    /* number of step inputs that read the value; a split product of several steps counts once */
    bool kept;           /* the value's slot is not used for other values; selected rows are valid until the end of a
                          * step, batch rows until its next pass */
    bool external;       /* the caller writes the value, because no compiled node computes it (in a range of nodes, or
                          * GIVEN) */
    /* split over ranks: number of units, columns per unit (the last may have fewer); n_units 0: every rank computes all
     * columns */
    uint32_t n_units, unit_cols;
    uint32_t slot;
} whit_plan_value;

typedef struct whit_plan_slot {
    uint64_t row_bytes;                /* bytes per row of the largest value that uses the slot */
    uint8_t rows;                      /* whit_row_set */
    uint64_t offset_bytes, size_bytes; /* set by whit_plan_layout */
} whit_plan_slot;

typedef struct whit_plan_options {
    whit_act_type act;       /* activation format of coded weights, except those with a fixed format */
    bool no_fuse;            /* every operation becomes a phase of its own, and nothing is fused */
    bool keep_hidden;        /* keep the value from which vectors are pooled (graph->vector) */
    bool only_vectors;       /* do not compute the graph's output, the logits */
    const char *const *keep; /* (n_keep) names of further values that are kept */
    size_t n_keep;
    uint32_t first_node, n_nodes; /* nodes [first_node, first_node + n_nodes) of the graph are compiled; n_nodes 0: all
                                   * nodes */
    const whit_ranks *ranks;      /* the ranks that share the plan's work; NULL: one process executes all of it */
} whit_plan_options;

typedef struct whit_plan {
    const whit_allocator *allocator;
    const whit_graph *graph; /* the compiled graph; must outlive the plan */
    const whit_ranks *ranks; /* as in the options; must outlive the plan */
    bool no_fuse;
    whit_plan_step *steps;
    uint32_t n_steps, capacity_steps;
    whit_plan_phase *phases;
    uint32_t n_phases;
    whit_plan_value *values; /* value v is values[v - 1] */
    uint32_t n_values, capacity_values;
    whit_plan_slot *slots;
    uint32_t n_slots;
    uint32_t output, hidden;    /* plan values of graph->output and graph->vector; 0 if the plan does not compute
                                 * them */
    uint32_t n_experts, n_used; /* number of experts in a layer, and number that a token uses; 0: the graph has no
                                 * route */
} whit_plan;

/* Compiles a graph. Its resolver must still be valid, because tensor types are read from it. On failure the plan is
 * empty; whit_plan_free accepts an empty plan. */
whit_status whit_plan_compile(const whit_graph *graph, const whit_plan_options *options,
                              const whit_allocator *allocator, whit_plan *plan, whit_error *error);
void whit_plan_free(whit_plan *plan);

/* Places the slots for passes of n_batch_rows rows and n_selected_rows selected rows; sets *total_bytes to their total
 * size. Returns false if it overflows. */
bool whit_plan_layout(whit_plan *plan, uint32_t n_batch_rows, uint32_t n_selected_rows, uint64_t *total_bytes);

/* Returns the stride in floats between rows of an f32 value: an odd number of cache lines. Matrix kernels write a line
 * or two of every row in turn, which is slower if the rows' addresses map to the same cache sets. */
static inline size_t whit_plan_stride(const whit_plan_value *value)
{
    return (((size_t)value->width + 15) / 16 | 1) * 16;
}

/* Appends a step as one line of text, including its line feed. `name` returns the name of a tensor. */
void whit_plan_print_step(const whit_plan *plan, const whit_plan_step *step,
                          const char *(*name)(void *context, int32_t tensor), void *context, whit_buf *out);

/* Appends the slots, one line of text each. */
void whit_plan_print_slots(const whit_plan *plan, whit_buf *out);

#endif
