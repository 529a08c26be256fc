/* SPDX-License-Identifier: MIT
 * Running a plan: its schedules (plan_fuse.h) bound to memory, kernels and weights, so that a pass over a
 * batch is a walk along two lists of function pointers, chosen once: one for all its tokens, one for those
 * whose outputs are wanted. Nothing is allocated, looked up or decided by type there.
 *
 * This is what callers need; exec_step.h is what the steps need. */
#ifndef WHIT_MODEL_EXEC_H
#define WHIT_MODEL_EXEC_H

#include "base/arena.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kv/cache.h"
#include "model/adapter.h"
#include "model/plan_fuse.h"
#include "model/rope_scaling.h"

/* What the attention of every layer needs of a KV cache, (n_layers), all zero where a layer has none. False where a
 * layer has two kinds of attention. */
bool whit_exec_kv_layers(const whit_graph *graph, whit_kv_layer *layers, uint32_t n_layers);

/* The tokens of one pass. */
typedef struct whit_batch {
    uint32_t n_rows;
    const int32_t *ids;        /* (n_rows), each below the vocabulary's size */
    const uint32_t *sequences; /* (n_rows); rows of a sequence follow each other by position */
    const uint32_t *positions; /* (n_rows); they have a place in the KV cache */
    const uint32_t *selected;  /* (n_selected) rows whose outputs are wanted, in the order wanted */
    uint32_t n_selected;
    uint32_t selected_begin; /* where they go among the selected rows of the whole step */
    /* (n_selected) how many of its largest logits a selected row needs exactly, 0: all; NULL: all of
     * all. Others may then be estimates, every one below those. */
    const uint32_t *tops;
} whit_batch;

typedef struct whit_exec whit_exec;

typedef struct whit_exec_options {
    uint32_t n_batch_rows;    /* most rows of a pass */
    uint32_t n_selected_rows; /* most selected rows of a step */
    uint32_t n_threads;
    uint32_t n_ctx_tokens; /* of the session: some frequencies depend on it */
    uint32_t n_ropes;
    whit_rope ropes[WHIT_ROPES_MAX];
    const float *divisors[WHIT_ROPES_MAX]; /* (dims / 2) of each table, NULL if it has none (rope_scaling.h) */
} whit_exec_options;

/* Sets the RoPE tables of a model and their divisors among its tensors, for n_ctx_tokens, which is set before. */
void whit_exec_find_ropes(const whit_config *config, const whit_resolver *resolver, const whit_tensor *tensors,
                          whit_exec_options *options);

/* A RoPE table as it runs. */
typedef struct whit_exec_rope {
    double *frequencies; /* (pairs) */
    float *tables;       /* (n_batch_rows, 2 * pairs) cosines and sines of the pass's tokens, times magnitude */
    float *offset_table; /* packed types: whit_kv_packing's, of all pairs; NULL: no keys are rotated */
    float *sink_tables;  /* like tables, of an endless cache: rotate a row's queries back to the sinks */
    uint32_t pairs;
    float magnitude;
} whit_exec_rope;

/* ---- schedules (exec_schedule.c) ------------------------------------------------------------- */

#define WHIT_EXEC_BUCKETS 20 /* kernels and schedules by number of rows: 1 to 8, then powers of two */

/* A type of matrix and of what it reads, and the kernels for each number of rows. */
typedef struct whit_exec_choice {
    whit_tensor_type type; /* without the values of its scales */
    whit_acts_spec acts;
    const whit_matmul_kernel *kernels[WHIT_EXEC_BUCKETS];
    const whit_matmul_kernel *low_kernels[WHIT_EXEC_BUCKETS]; /* of an adapter's first factor, and the tensor's own */
    whit_tensor_type plane;                                   /* of its second sign plane; no columns: it has none */
    whit_acts_spec plane_acts;
    uint32_t rank; /* of its low-rank pair; 0: none */
    bool has_outliers;
    const whit_matmul_kernel *plane_kernels[WHIT_EXEC_BUCKETS];
} whit_exec_choice;

/* In what way rows run: those of the batch with adapters or without, selected ones with a screened head or
 * an exact one. */
enum { WHIT_EXEC_PLAIN, WHIT_EXEC_ADAPTED = 1, WHIT_EXEC_SCREENED = 1, WHIT_EXEC_MODES };

typedef struct whit_exec_schedules {
    whit_exec_choice *choices;
    uint32_t *choice_of; /* (steps of the plan), matrices only */
    uint32_t n_choices, capacity;
    struct whit_exec_scheduled {
        whit_schedule schedule;
        uint32_t bucket; /* the first one that it serves */
        uint8_t rows, mode;
    } list[WHIT_ROWS_COUNT * WHIT_EXEC_MODES * WHIT_EXEC_BUCKETS];
    uint32_t n;
    uint8_t of[WHIT_ROWS_COUNT][WHIT_EXEC_MODES][WHIT_EXEC_BUCKETS]; /* numbers in the list */
    uint32_t n_buckets[WHIT_ROWS_COUNT];
} whit_exec_schedules;

/* First chooses the kernels of a plan's matrices, then makes its schedules for passes of so many rows. Memory
 * is of the plan's allocator, until whit_exec_schedules_free, after a failure too; that takes empty ones. */
whit_status whit_exec_choose(const whit_plan *plan, const whit_tensor *tensors, const whit_kernels *kernels,
                             whit_exec_schedules *schedules, whit_error *error);
whit_status whit_exec_schedules_make(const whit_plan *plan, const whit_tensor *tensors, uint32_t n_batch_rows,
                                     uint32_t n_selected_rows, whit_exec_schedules *schedules, whit_error *error);
void whit_exec_schedules_free(const whit_plan *plan, whit_exec_schedules *schedules);
/* The number in the list of the one that runs for n_rows rows (1 or more) of a set. */
uint32_t whit_exec_schedule_of(const whit_exec_schedules *schedules, whit_row_set rows, int mode, uint32_t n_rows);

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

/* Rows [begin, end) of the pass that one adapter changes: a segment. */
typedef struct whit_exec_segment {
    uint32_t begin, end, width;
    const whit_exec_adapter *mount;
} whit_exec_segment;

typedef struct whit_exec_adapt {
    const whit_allocator *allocator;
    whit_exec_mounting *of_sequence;   /* (n_sequences); NULL while nothing was mounted ever */
    whit_exec_segment *segments;       /* of the pass that runs */
    float *low;                        /* (n_batch_rows, low_stride) values x Aᵀ of one phase */
    struct whit_exec_low_state *state; /* of the phase that runs */
    size_t low_stride, mountings_bytes, segments_bytes, low_bytes, state_bytes;
    uint32_t n_segments, n_mounted; /* sequences with adapters */
} whit_exec_adapt;

/* ---- the executor ----------------------------------------------------------------------------- */

struct whit_exec {
    const whit_plan *plan;
    const whit_exec_schedules *schedules;
    const struct whit_exec_bound *bound; /* (schedules->n) */
    const whit_kernels *kernels;
    const whit_batch *batch;                                      /* of the pass that runs */
    uint32_t n_rows[WHIT_ROWS_COUNT], first_row[WHIT_ROWS_COUNT]; /* of that pass, and where they lie in their slots */
    const uint32_t *positions[WHIT_ROWS_COUNT], *sequences[WHIT_ROWS_COUNT]; /* by row set and row */
    uint32_t *selected_positions, *selected_sequences;                       /* (n_selected_rows) */
    whit_kv *kv;
    struct whit_exec_cache *caches; /* (kv->n_classes) */
    whit_pool *pool;
    uint64_t *phase_ns; /* (phases of the plan) time is added here; NULL: not measured */
    uint8_t *slots;
    whit_exec_rope ropes[WHIT_ROPES_MAX];
    uint32_t n_ropes;
    uint32_t *closing; /* (n_closing) packed types: rows of the pass that are the last of their block */
    uint32_t n_closing;
    uint8_t *scratch; /* (n_threads, scratch_bytes) */
    size_t scratch_bytes;
    uint8_t *prepared; /* (n_threads, prepared_bytes) what kernels prepared, behind for what; 0 bytes: none do */
    size_t prepared_bytes;
    struct whit_exec_parts *parts; /* (steps of the plan) of matrices with corrections; NULL: there are none */
    uint8_t
        *corrections; /* (n_threads, correction_bytes) what the parts of the matrix at hand read; 0 bytes: none do */
    size_t correction_bytes;
    struct whit_exec_converted *converted; /* (n_threads) caches of converted KV groups; NULL: no kernel converts */
    uint8_t *converted_data;               /* (n_threads, WHIT_EXEC_CONVERTED_GROUPS, converted_bytes) */
    size_t converted_bytes;                /* whit_kv_converted_bytes of the largest head */
    uint64_t n_runs;                       /* phases run so far */
    uint32_t *n_rescored;                  /* (n_selected_rows) rows of the head that were then read whole */
    uint32_t n_batch_rows;
    whit_exec_adapt adapt;
    uint8_t *queries;           /* split-KV attention: those of one query block, made ready */
    float *partials;            /* (n_partial_elems): its partials */
    uint64_t n_partial_elems;   /* those of one row, over the whole context */
    _Atomic uint32_t *n_merged; /* (n_kv_heads) groups of a head merged into its first partials */
};

/* Takes what the schedules need from the arena and, when that has memory, binds every step. Called
 * twice, first counting (base/arena.h). plan, schedules, kernels, kv and the tensors outlive the exec;
 * `pool` is set by the caller before the first run. */
void whit_exec_place(whit_exec *exec, whit_plan *plan, const whit_exec_schedules *schedules, const whit_tensor *tensors,
                     const whit_kernels *kernels, whit_kv *kv, const whit_exec_options *options, whit_arena *arena);

/* One pass. Gives false where `cancel` was seen set between phases; the KV cache then holds no
 * more than before in the positions that count. */
bool whit_exec_run(whit_exec *exec, const whit_batch *batch, const volatile bool *cancel);

/* Row `i` of a kept f32 value. */
float *whit_exec_row(const whit_exec *exec, uint32_t plan_value, uint32_t i);

/* Mounts adapters on a sequence in place of those it has; 0 of them: none. Takes memory where the
 * session had none so large yet, so it is no part of a step. `offset` and `width` are filled in. */
whit_status whit_exec_mount(whit_exec *exec, uint32_t sequence, whit_exec_mounting mounting,
                            const whit_allocator *allocator, whit_error *error);
/* The memory that this takes where nothing was mounted yet; the exec may be one that was only counted. */
size_t whit_exec_mount_bytes(const whit_exec *exec, whit_exec_mounting mounting);
void whit_exec_adapt_free(whit_exec_adapt *adapt);

/* Selected rows of a pass up to which screening reads less time than the whole product. */
#define WHIT_EXEC_SCREENED_ROWS 8

#endif
