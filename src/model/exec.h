/* SPDX-License-Identifier: MIT
 * Running a plan: its steps bound to memory, kernels and weights, so that a pass over a batch is a
 * walk along a list of function pointers. Nothing is allocated, looked up or decided by type there. */
#ifndef WHIT_MODEL_EXEC_H
#define WHIT_MODEL_EXEC_H

#include "base/arena.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kv/cache.h"
#include "model/adapter.h"
#include "model/plan.h"

/* The tokens of one pass. */
typedef struct whit_batch {
    uint32_t n_rows;
    const int32_t *ids;        /* (n_rows), each below the vocabulary's size */
    const uint32_t *sequences; /* (n_rows); rows of a sequence follow each other by position */
    const uint32_t *positions; /* (n_rows); they have a place in the KV cache */
    const uint32_t *selected;  /* (n_selected) rows whose outputs are wanted, ascending */
    uint32_t n_selected;
    uint32_t selected_begin; /* where they go among the selected rows of the whole step */
    /* (n_selected) how many of its largest logits a selected row needs exactly, 0: all; NULL: all of
     * all. Others may then be estimates, every one below those. */
    const uint32_t *tops;
} whit_batch;

typedef struct whit_exec_options {
    uint32_t n_batch_rows;    /* most rows of a pass */
    uint32_t n_selected_rows; /* most selected rows of a step */
    uint32_t n_threads;
    double rope_theta;
    uint32_t rope_pairs;
    const float *rope_factors; /* (rope_pairs), NULL: none */
} whit_exec_options;

typedef struct whit_exec_step whit_exec_step;
typedef struct whit_exec whit_exec;

#define WHIT_EXEC_BUCKETS 20 /* kernels by number of rows: 1 to 8, then powers of two */

/* Some of a pass's rows. */
typedef struct whit_exec_rows {
    uint32_t begin, n;
} whit_exec_rows;

struct whit_exec_step {
    /* Items [begin, end) of the group: rows; (KV head, row tile) pairs. NULL for a matrix. */
    void (*run)(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end);
    uint8_t *input[2], *output;
    size_t input_stride[2], output_stride; /* floats */
    uint32_t n_together;                   /* steps from this one on that `run` does in one go, itself included */
    uint32_t width;
    uint32_t n_cols; /* of the activations that a matrix reads */
    bool selected;
    uint32_t layer, group, rotary, window;
    float constant;
    const whit_tensor *tensor;
    const float *vector; /* norm weight, bias */
    uint32_t vector_elems;
    whit_gate_fn *gate;
    /* Of a gate's matrix: the step that gates; of that step: the first of its two matrices. NULL
     * where somebody else wants the products. */
    const whit_exec_step *gated;
    /* Of a matrix: the step that adds its product to what lies where both outputs go; of that step: the
     * matrix. NULL where somebody else wants the product. */
    const whit_exec_step *added;
    /* Of attention: the step before it that turns its queries in place (RoPE); of that step: attention. NULL
     * where somebody else wants them. */
    const whit_exec_step *turned;
    whit_row_source source; /* where run does a norm and activations too */
    whit_acts_spec acts;
    uint32_t n_tiles;
    bool is_screened; /* a step that rescores follows */
    const whit_matmul_kernel *kernels[WHIT_EXEC_BUCKETS];
    int32_t weight;             /* number of `tensor` in the model */
    uint32_t place, first_tile; /* in its group: which matrix, and its first tile among all */
    const whit_matmul_kernel *low_kernels[WHIT_EXEC_BUCKETS]; /* of an adapter's first factor */
};

/* ---- adapters (exec_adapt.c) ---- */

#define WHIT_EXEC_MOUNTS 8 /* adapters of one sequence */

typedef struct whit_exec_adapter {
    const whit_adapter_weights *weights;
    float strength;
    uint32_t offset; /* of its ranks among those of the sequence's adapters */
} whit_exec_adapter;

/* What a sequence has mounted, in order; width: ranks of all, each rounded up to a tile. */
typedef struct whit_exec_mounting {
    whit_exec_adapter mounts[WHIT_EXEC_MOUNTS];
    uint32_t n, width;
} whit_exec_mounting;

/* Rows [begin, end) of the pass that one adapter changes. */
typedef struct whit_exec_span {
    uint32_t begin, end, width;
    const whit_exec_adapter *mount;
} whit_exec_span;

typedef struct whit_exec_adapt {
    const whit_allocator *allocator;
    whit_exec_mounting *of_sequence;   /* (n_sequences); NULL while nothing was mounted ever */
    whit_exec_span *spans;             /* of the pass that runs */
    float *low;                        /* (n_batch_rows, low_stride) values x Aᵀ of one group */
    struct whit_exec_low_state *state; /* of the group that runs */
    size_t low_stride, mountings_bytes, spans_bytes, low_bytes, state_bytes;
    uint32_t n_spans, n_mounted; /* sequences with adapters */
} whit_exec_adapt;

/* What a worker's attention has made of groups of one KV head (kernels/kv_block.h), good within a run.
 * The last room is for groups that find no other: in it nothing stays. */
enum { WHIT_EXEC_ROOMS = 4 };
typedef struct whit_exec_rooms {
    _Alignas(64) uint64_t run; /* lines of its own: each worker writes its rooms all the time */
    uint32_t head, sequence, n_kept;
    struct {
        uint32_t group, made;
    } of[WHIT_EXEC_ROOMS];
} whit_exec_rooms;

struct whit_exec {
    const whit_plan *plan;
    const whit_kernels *kernels;
    const whit_batch *batch; /* of the pass that runs */
    whit_kv *kv;
    whit_kv_append_fn *kv_append;
    whit_kv_query_fn *kv_query;
    whit_kv_attend_fn *kv_attend;
    whit_pool *pool;
    uint64_t *group_ns; /* (n_groups) time is added here; NULL: nobody asks */
    whit_exec_step *steps;
    uint8_t *slots;
    double *rope_frequencies;
    float *rope_tables; /* (n_batch_rows, 2 * rope_pairs) */
    uint32_t rope_pairs;
    uint8_t *scratch; /* (n_threads, scratch_bytes) */
    size_t scratch_bytes;
    uint8_t
        *prepared; /* (n_threads, prepared_bytes) whit_exec_prepared, and what kernels made there; 0 bytes: none do */
    size_t prepared_bytes;
    whit_exec_rooms *rooms; /* (n_threads); NULL: kernels make nothing of groups */
    uint8_t *room;          /* (n_threads, WHIT_EXEC_ROOMS, whit_kv_room_bytes) */
    uint64_t n_runs;        /* groups run so far */
    bool screens;           /* this pass reads the head's high nibbles first */
    uint32_t *n_rescored;   /* (n_selected_rows) rows of the head that were then read whole */
    uint32_t *row_tiles;    /* attention: first row of each tile of rows, and the end */
    uint32_t n_row_tiles;
    uint32_t n_batch_rows;
    whit_exec_adapt adapt;
    uint8_t *queries;           /* attention divided by groups of blocks: those of one tile of rows, made ready */
    float *partials;            /* (n_partials, whit_kv_partial_elems): its partials */
    uint64_t n_partials;        /* one row's, over the whole context */
    _Atomic uint32_t *n_joined; /* (n_kv_heads) groups of a head that its first partials are the sum of */
    uint32_t heads_per_kv_head, n_kv_heads;
};

/* Takes what the plan needs from the arena and, when that has memory, binds every step. Called
 * twice, first counting (base/arena.h). plan, kernels, kv and the tensors outlive the exec; `pool`
 * is set by the caller before the first run. */
void whit_exec_place(whit_exec *exec, whit_plan *plan, const whit_tensor *tensors, const whit_kernels *kernels,
                     whit_kv *kv, const whit_exec_options *options, whit_arena *arena);

/* One pass. Gives false where `cancel` was seen set between groups; the KV cache then holds no
 * more than before in the positions that count. */
bool whit_exec_run(whit_exec *exec, const whit_batch *batch, const volatile bool *cancel);

/* Row `i` of a kept f32 value. */
float *whit_exec_row(const whit_exec *exec, uint32_t plan_value, uint32_t i);

/* The kernel of a matrix for so many rows. */
const whit_matmul_kernel *whit_exec_kernel(const whit_exec_step *step, uint32_t n_rows);

/* The one of some kernels that is meant for so many rows. */
const whit_matmul_kernel *whit_exec_bucket(const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS], uint32_t n_rows);
/* A worker's scratch for a kernel's runs on x, prepared where it wants that. */
void *whit_exec_scratch(const whit_exec *exec, const whit_matmul_kernel *kernel, const whit_acts *x, uint32_t worker);
/* Tiles [begin, end) of a matrix for some rows; for all where an adapter changes it. */
void whit_exec_run_linear(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                          uint32_t begin, uint32_t end);
/* The activations that a matrix reads, of all its rows. */
whit_acts whit_exec_acts(const whit_exec_step *step, const whit_exec *exec);

/* Mounts adapters on a sequence in place of those it has; 0 of them: none. Takes memory where the
 * session had none so large yet, so it is no part of a step. `offset` and `width` are filled in. */
whit_status whit_exec_mount(whit_exec *exec, uint32_t sequence, whit_exec_mounting mounting,
                            const whit_allocator *allocator, whit_error *error);
/* The memory that this takes where nothing was mounted yet; the exec may be one that was only counted. */
size_t whit_exec_mount_bytes(const whit_exec *exec, whit_exec_mounting mounting);
void whit_exec_adapt_free(whit_exec_adapt *adapt);
/* The parts of a pass: in front of it; a group of matrices whose n_tiles tiles `run_tiles` makes, for
 * at most `chunk` at a time; before and after it makes tiles of one matrix. */
void whit_exec_make_spans(whit_exec *exec);
void whit_exec_run_adapted(const whit_exec *exec, const whit_plan_group *group, whit_pool_fn *run_tiles, void *context,
                           uint32_t n_tiles, uint32_t chunk);
void whit_exec_fetch_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end);
void whit_exec_add_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end);

/* Sets the functions of a step; part of binding (exec_steps.c). */
void whit_exec_bind_step(whit_exec_step *step, const whit_plan_step *from, const whit_kernels *kernels);

/* A gate and what it gates in one product, where the kernel offers it (exec_products.c). Joins the
 * group `g` to the step behind it, all steps being bound. */
void whit_exec_join_gate(const whit_plan *plan, uint32_t g, whit_exec_step *steps);
/* Whether this pass does: then the gate's product is already gated, and the other not there. `step`
 * is the gate's matrix, or the step that gates. */
bool whit_exec_gates(const whit_exec_step *step, const whit_exec *exec);
/* Tiles [begin, end) of both matrices for some rows. */
void whit_exec_run_gated(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                         uint32_t begin, uint32_t end);
/* The same for a matrix and the sum that its product goes into. */
void whit_exec_join_sum(const whit_plan *plan, uint32_t g, whit_exec_step *steps);
bool whit_exec_adds(const whit_exec_step *step, const whit_exec *exec);

/* Whether one step alone reads a value. */
bool whit_exec_is_read_once(const whit_plan *plan, uint32_t value);
/* Has a norm and the activations made of it run with the step that makes its input, where nobody
 * else wants what is between: those of step i, all steps being bound. */
void whit_exec_join_steps(const whit_plan *plan, const whit_plan_group *group, uint32_t i, whit_exec_step *steps);

/* Has attention turn its queries itself, in a pass over several rows: they are read and written once less.
 * Joins step i to the one that does, both being bound. */
void whit_exec_join_rope(const whit_plan *plan, uint32_t i, whit_exec_step *steps);
bool whit_exec_turns(const whit_exec_step *step, const whit_exec *exec);

/* Attention (exec_attend.c): items are (KV head, tile of rows) pairs. Where they are too few for
 * the threads, as in decoding, whit_exec_attend_divided gives blocks of positions to the threads, which
 * join them in ascending order: the same operations in the same order. */
void whit_exec_attend(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end);
bool whit_exec_attend_divides(const whit_exec_step *step, const whit_exec *exec);
void whit_exec_attend_divided(const whit_exec_step *step, const whit_exec *exec);

/* Bytes of a worker's scratch for attention over `n_queries` queries at once. */
size_t whit_exec_attend_scratch_bytes(whit_kv_type type, uint32_t head_dim, uint32_t n_queries);

/* Selected rows of a pass up to which screening reads less time than the whole product. */
#define WHIT_EXEC_SCREENED_ROWS 8

#endif
