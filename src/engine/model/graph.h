/* SPDX-License-Identifier: MIT
 * Declares the graph: a forward pass as operations on named values, one row per token.
 *
 * A family's program builds the graph through the calls below, independently of codecs, slots and batches. Every call
 * takes and returns numbers of values, so an interpreter can make the same calls. Errors are sticky: after the first
 * one every call returns 0, and whit_graph_finish reports it. The graph is not changed afterwards; plan.h compiles it.
 *
 * A value is (n_tokens, width) f32. A weight is named; its shape is checked when it is used. */
#ifndef WHIT_MODEL_GRAPH_H
#define WHIT_MODEL_GRAPH_H

#include "base/mem.h"
#include "base/tensor.h"
#include "model/config.h"

#define WHIT_VALUE_NAME_BYTES 48

typedef uint32_t whit_ref; /* number of a value: 1, 2, ...; 0: no value (after an error, or an absent input) */

typedef enum whit_op {
    WHIT_OP_EMBED,            /* rows of a table, selected by token id, position or type */
    WHIT_OP_RMS_NORM,         /* w * x / sqrt(mean(x^2) + eps), with means over groups of `head_dim` elements */
    WHIT_OP_LINEAR,           /* x W^T (+ bias) */
    WHIT_OP_ROPE,             /* rotates each head by RoPE */
    WHIT_OP_ATTENTION,        /* appends k and v to the layer's cache, and attends to earlier positions and its own, or
                               * to both sides */
    WHIT_OP_GATE,             /* whit_gate function of a and b */
    WHIT_OP_ADD,              /* a + b */
    WHIT_OP_SCALE,            /* x * constant */
    WHIT_OP_SELECT,           /* the rows whose outputs are requested */
    WHIT_OP_TEMPERATURE,      /* x * (1 + constant ln(1 + floor(position / window))) */
    WHIT_OP_CONV,             /* causal convolution over time, for each channel separately, with state */
    WHIT_OP_DELTA,            /* gated delta rule, with state */
    WHIT_OP_HADAMARD,         /* Hadamard transform of blocks, or its inverse (model/hadamard.h) */
    WHIT_OP_SOFTCAP,          /* constant tanh(x / constant) */
    WHIT_OP_SLICE,            /* elements [first, first + width) of a row */
    WHIT_OP_SCALE_BY,         /* x * the weight's only element */
    WHIT_OP_ATTENTION_SHARED, /* attends to the keys and values that layer `owner` has appended */
    WHIT_OP_CLAMP,            /* x clamped to [-constant, constant], or to at most constant */
    WHIT_OP_SCALE_ROWS,       /* x times the sigmoid of another value, which has one element per row */
    WHIT_OP_ROUTE,            /* chooses the experts of each token and computes their weights */
    WHIT_OP_DISPATCH,         /* x copied to one row for each (token, expert) pair, grouped by expert */
    WHIT_OP_EXPERT_LINEAR,    /* x W^T (+ bias) with the matrix of the row's expert */
    WHIT_OP_COMBINE,          /* weighted sum of the rows of each token's experts, in the order of the route */
    WHIT_OP_LAYER_NORM,       /* w * (x - mean(x)) / sqrt(variance(x) + eps) + bias */
    WHIT_OP_ACTIVATE,         /* an activation function, applied to each element */
    WHIT_OP_JOIN,             /* the elements of a, then those of b */
    WHIT_OP_GIVEN,            /* rows that the caller writes before a pass */
    WHIT_OP_COUNT
} whit_op;

const char *whit_op_name(whit_op op);

typedef struct whit_node {
    uint8_t op;   /* the operation, a whit_op */
    uint8_t gate; /* gated: whit_gate; activation: whit_activation of kernels.h; embedding: whit_row_index */
    uint16_t layer;
    whit_ref input[3];
    whit_ref output;
    int32_t weight;        /* index of a tensor in the resolver, -1 if absent */
    int32_t bias;          /* index of another tensor, -1 if absent: bias, dt of a delta rule, scales of a route */
    uint32_t head_dim;     /* rope, attention: head size; norm: number of elements in a group with a common mean;
                            * Hadamard: size of a block */
    uint32_t rotary;       /* rope: number of leading dimensions that are rotated */
    uint32_t first;        /* slice: index of its first element */
    uint32_t owner;        /* shared attention: the layer whose keys and values are read; attention to a target model:
                            * the draft model's own layer, in place of a layer of the target */
    uint32_t rope;         /* rope: index of the configuration's RoPE table */
    uint32_t window;       /* attention: sliding window in tokens, 0: no window; temperature: length in tokens */
    uint32_t n_taps;       /* convolution: number of taps */
    bool is_silu;          /* convolution: SiLU follows */
    bool only_above;       /* clamp: no lower limit */
    uint8_t route;         /* route: whit_route_flag bits */
    bool is_bidirectional; /* attention: a query attends to positions at most window / 2 away on both sides; window 0:
                            * to all */
    uint32_t n_heads, n_key_heads, value_dim; /* delta rule: number of value heads, number of key heads, size of a value
                                               * head (head_dim: size of a key head) */
    uint16_t is_grouped;                      /* delta rule: order of value heads (kernels/delta.h) */
    /* Hadamard: the inverse transform. is_grouped and is_inverse have 16 bits each, because nodes are compared as bytes
     * and must not contain padding. */
    uint16_t is_inverse;
    uint32_t n_experts; /* route, dispatch, expert matrices, combine: number of experts of the layer */
    uint32_t n_used;    /* the same operations: number of experts that each token uses */
    float added;        /* route: added to the sum that the chosen scores are divided by */
    float constant;     /* norm: eps; scale, temperature: factor; attention, route: factor of the scores; clamp,
                         * softcap: the limit */
} whit_node;

/* Flags of a route: how it computes the scores of experts. */
typedef enum whit_route_flag {
    WHIT_ROUTE_SIGMOID = 1, /* scores are sigmoids; else the softmax over all experts */
    WHIT_ROUTE_NORM = 2,    /* the scores of the chosen experts are divided by their sum */
} whit_route_flag;

/* Selects which number of a token is its row in a table: its id, position or type. */
typedef enum whit_row_index {
    WHIT_INDEX_ID,
    WHIT_INDEX_POSITION,
    WHIT_INDEX_TYPE, /* token type: 0 in the first part of a text, 1 in the second */
} whit_row_index;

/* Names the sets of rows of a pass; a value is computed for the rows of one set. */
typedef enum whit_row_set {
    WHIT_ROWS_BATCH,    /* one row per token */
    WHIT_ROWS_SELECTED, /* one row per token whose outputs are requested */
    WHIT_ROWS_COUNT,    /* number of row sets with their own schedules */
    /* one row per (token, expert) pair, ordered by expert, then by token; belongs to the schedules of BATCH */
    WHIT_ROWS_EXPERT = WHIT_ROWS_COUNT,
    WHIT_ROW_SETS
} whit_row_set;

typedef struct whit_graph_value {
    char name[WHIT_VALUE_NAME_BYTES];
    uint32_t width;
    uint8_t rows; /* whit_row_set */
} whit_graph_value;

/* Holds the tensors that a graph may name. */
typedef struct whit_resolver {
    void *context;
    int32_t (*find)(void *context, const char *name); /* returns the index of a tensor, or -1 if not found */
    const whit_tensor_type *(*type)(void *context, int32_t index);
    /* Declares an absent tensor with the shape that the graph needs and returns its index, or -1 with an error. An
     * absent tensor is an error if the member is NULL, or if the graph does not determine the tensor's shape (embedding
     * tables). */
    int32_t (*add)(void *context, const char *name, uint32_t n_rows, uint32_t n_cols, whit_layout layout,
                   whit_error *error);
} whit_resolver;

typedef struct whit_graph {
    const whit_allocator *allocator;
    whit_resolver resolver;
    whit_node *nodes;
    uint32_t n_nodes, capacity_nodes;
    whit_graph_value *values; /* value v is values[v - 1] */
    uint32_t n_values, capacity_values;
    whit_ref output; /* the logits; 0: whit_graph_output was not called, as in programs that only make vectors */
    whit_ref hidden; /* the input of the head */
    /* the value from which vectors are pooled; whit_graph_finish sets it to `hidden` if the program declares no
     * other */
    whit_ref vector;
    whit_ref dispatched;        /* newest result of a dispatch, 0: no dispatch yet; pairs of earlier dispatches are no
                                 * longer valid */
    uint32_t n_experts, n_used; /* number of experts and number that each token uses, the same in all routes; 0 until
                                 * the first route is added */
    uint32_t hadamard_block, hadamard_matrices; /* as in whit_config: size of blocks, and bits of the matrices whose
                                                 * inputs are rotated */
    uint32_t hadamard_layers;                   /* matrices of layers from this number on are not rotated */
    bool hadamard_signs;
    whit_status status;
    whit_error *error;
} whit_graph;

/* Begins a graph. The resolver and the error must stay valid until the graph is finished. */
void whit_graph_begin(whit_graph *graph, const whit_allocator *allocator, whit_resolver resolver, whit_error *error);
/* Returns WHIT_OK if every call succeeded and an output or a vector was set. */
whit_status whit_graph_finish(whit_graph *graph);
void whit_graph_free(whit_graph *graph);

/* The functions below add a node to the graph and return its value, which gets the name `name`. With `layer` >= 0 the
 * names of values and weights get the prefix "layers.N.". */
/* Adds the rows of a table that the token ids select; the table has n_vocab rows. */
whit_ref whit_graph_embed(whit_graph *graph, const char *name, const char *table, uint32_t n_vocab);
/* Adds the rows of a table that the ids, positions or types of tokens select (index); the table has n_rows rows. */
whit_ref whit_graph_embed_by(whit_graph *graph, const char *name, const char *table, uint32_t n_rows,
                             whit_row_index index);
whit_ref whit_graph_rms_norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                             double eps);
/* Adds the RMSNorm of x, each head by itself. The weight has head_dim elements; NULL: no weight. */
whit_ref whit_graph_head_norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                              uint32_t head_dim, double eps);
whit_ref whit_graph_layer_norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                               const char *bias, double eps);
/* Adds a function of each element of x; activation: a whit_activation of kernels.h. */
whit_ref whit_graph_activate(whit_graph *graph, int layer, const char *name, whit_ref x, uint32_t activation);
/* Adds the product x W^T + bias. `bias` may be NULL. `width` is the expected number of outputs; 0: any. */
whit_ref whit_graph_linear(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                           const char *bias, uint32_t width);
/* Adds x, rotated by the configuration's RoPE table number `rope`. */
whit_ref whit_graph_rope(whit_graph *graph, int layer, const char *name, whit_ref x, uint32_t head_dim, uint32_t rotary,
                         uint32_t rope);
whit_ref whit_graph_attention(whit_graph *graph, int layer, const char *name, whit_ref q, whit_ref k, whit_ref v,
                              uint32_t head_dim, uint32_t window, double scale);
/* Adds bidirectional attention: a query attends to positions at most window / 2 away, or to all if `window` is 0. */
whit_ref whit_graph_attention_both(whit_graph *graph, int layer, const char *name, whit_ref q, whit_ref k, whit_ref v,
                                   uint32_t head_dim, uint32_t window, double scale);
/* Changes `attended`, which the previous call has added: adds to each head's softmax one more logit without a value,
 * from the vector `weight` (heads). Returns `attended`. */
whit_ref whit_graph_attention_sinks(whit_graph *graph, int layer, whit_ref attended, const char *weight);
/* Adds attention of queries to the keys and values that an earlier layer, `owner`, has appended; this layer appends
 * none. The number and size of heads must equal the owner's; the window is the owner's. Queries may be selected
 * rows. */
whit_ref whit_graph_attention_shared(whit_graph *graph, int layer, const char *name, whit_ref q, uint32_t owner,
                                     uint32_t head_dim, double scale);
/* For a draft model: adds attention to the keys and values of its target model, of the target's last layer with the
 * same window as layer `layer` of the draft model. */
whit_ref whit_graph_attention_target(whit_graph *graph, int layer, const char *name, whit_ref q, uint32_t head_dim,
                                     double scale);
/* Adds a value that consists of the elements [first, first + width) of each row of x. */
whit_ref whit_graph_slice(whit_graph *graph, int layer, const char *name, whit_ref x, uint32_t first, uint32_t width);
/* Adds a value whose rows are rows of a, each followed by the same row of b. */
whit_ref whit_graph_join(whit_graph *graph, int layer, const char *name, whit_ref a, whit_ref b);
/* Adds a value with one row per token of the batch; the caller writes the rows before each pass. */
whit_ref whit_graph_given(whit_graph *graph, const char *name, uint32_t width);
/* Adds cap tanh(x / cap). */
whit_ref whit_graph_softcap(whit_graph *graph, int layer, const char *name, whit_ref x, double cap);
/* Adds x times a number, the only element of a vector. */
whit_ref whit_graph_scale_by(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight);
whit_ref whit_graph_gate(whit_graph *graph, int layer, const char *name, whit_gate gate, whit_ref a, whit_ref b);
whit_ref whit_graph_add(whit_graph *graph, int layer, const char *name, whit_ref a, whit_ref b);
whit_ref whit_graph_scale(whit_graph *graph, int layer, const char *name, whit_ref x, double factor);
/* Adds x times (1 + factor ln(1 + floor(position / length))), by which Llama 4 and Ministral 3 scale queries. */
whit_ref whit_graph_temperature(whit_graph *graph, int layer, const char *name, whit_ref x, double factor,
                                uint32_t length);
whit_ref whit_graph_select(whit_graph *graph, const char *name, whit_ref x);
/* Adds a causal convolution over time of each channel of x separately, followed by SiLU if is_silu. `weight` is a
 * vector (n_taps, width of x), the oldest tap first. */
whit_ref whit_graph_conv(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                         uint32_t n_taps, bool is_silu);
/* Holds the shape of a gated delta rule: numbers of value heads and key heads, and their sizes. is_grouped: order of
 * the value heads (kernels/delta.h). */
typedef struct whit_delta_shape {
    uint32_t n_heads, n_key_heads, key_dim, value_dim;
    bool is_grouped;
} whit_delta_shape;
/* Adds a gated delta rule (docs/dev/numerics.md). mixed: queries and keys (n_key_heads, key_dim each), then values
 * (n_heads, value_dim); beta, decay: (n_heads) before their sigmoid and softplus; a, dt: vectors (n_heads). The result
 * is (n_heads, value_dim). */
whit_ref whit_graph_delta(whit_graph *graph, int layer, const char *name, whit_ref mixed, whit_ref beta, whit_ref decay,
                          const char *a, const char *dt, whit_delta_shape shape);
/* Adds x clamped to [-limit, limit]; only_above: x limited to at most `limit`. */
whit_ref whit_graph_clamp(whit_graph *graph, int layer, const char *name, whit_ref x, double limit, bool only_above);
/* Adds x times 1 / (1 + exp(-g)), where g is the only element of the same row of `gate`. */
whit_ref whit_graph_scale_rows(whit_graph *graph, int layer, const char *name, whit_ref x, whit_ref gate);

/* ---- experts ---- */

/* Describes a choice of experts. A layer with experts calls route, dispatch, the matrices and combine in this order.
 * All layers of a graph have the same number of experts, and use the same number per token. */
typedef struct whit_route_shape {
    uint32_t n_used;
    uint8_t flags;        /* whit_route_flag bits */
    double added, factor; /* chosen scores are divided by their sum plus `added` (with WHIT_ROUTE_NORM), then multiplied
                           * by `factor` */
    const char *choice;   /* vector (n_experts) added to the scores for the choice only; NULL: not used */
    const char *scales;   /* vector (n_experts) of factors by which the weights are multiplied at last; NULL: not
                           * used */
} whit_route_shape;
/* Adds the choice of experts. logits: (n_experts) for each token. The result has 2 n_used elements: the indices of the
 * n_used experts with the largest ranks, in descending order of rank (equal ranks: lower index first), and then their
 * weights. The rank is the score, plus the expert's element of `choice` if there is one. */
whit_ref whit_graph_route(whit_graph *graph, int layer, const char *name, whit_ref logits, whit_route_shape shape);
/* Adds a value with one row per (token, expert) pair, a copy of the token's row of x. */
whit_ref whit_graph_dispatch(whit_graph *graph, int layer, const char *name, whit_ref x, whit_ref route);
/* Adds the product of each row with the matrix of its expert. weight: (n_experts * width) rows, those of one expert
 * adjacent; width is a multiple of 16. bias: a matrix (n_experts, width), or NULL. */
whit_ref whit_graph_expert_linear(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                                  const char *bias, uint32_t width);
/* Adds the sum over a token's experts of weight * x, in the order of the route. */
whit_ref whit_graph_combine(whit_graph *graph, int layer, const char *name, whit_ref x, whit_ref route);

void whit_graph_output(whit_graph *graph, whit_ref hidden, whit_ref logits);
/* Declares the value from which the vectors of texts are pooled. */
void whit_graph_vector(whit_graph *graph, whit_ref vector);

/* Returns the value with that name; 0 if not found. */
whit_ref whit_graph_find(const whit_graph *graph, const char *name);

#endif
