/* SPDX-License-Identifier: MIT
 * The executor of a plan: binds its schedules (plan_fuse.h) to memory, kernels and weights, so that a pass over a
 * batch walks two lists of function pointers, chosen once: one for all its tokens, one for the tokens
 * whose outputs are wanted. A pass allocates nothing, looks nothing up and does not dispatch on types.
 *
 * This header is for callers; exec_step.h is for the implementations of steps. */
#ifndef WHIT_MODEL_EXEC_H
#define WHIT_MODEL_EXEC_H

#include "base/arena.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kv/cache.h"
#include "model/adapter.h"
#include "model/plan_fuse.h"
#include "model/rope_scaling.h"

/* Derives each layer's requirements on the KV cache, (n_layers), all zero for a layer without attention. False if a
 * layer has two kinds of attention. */
bool whit_exec_kv_layers(const whit_graph *graph, whit_kv_layer *layers, uint32_t n_layers);

/* The tokens of one pass. */
typedef struct whit_batch {
    uint32_t n_rows;
    const int32_t *ids;        /* (n_rows), each below the vocabulary's size */
    const uint32_t *sequences; /* (n_rows); rows of a sequence are in ascending order of position */
    const uint32_t *positions; /* (n_rows); each has a slot in the KV cache */
    const uint32_t *selected;  /* (n_selected) rows whose outputs are requested, in the requested order */
    const uint8_t *types;      /* (n_rows) token types; NULL: all 0 */
    uint32_t n_selected;
    uint32_t selected_begin; /* index of the first one among the selected rows of the whole step */
    /* (n_selected) how many of its largest logits a selected row needs exactly, 0: all; NULL: all logits of
     * all rows. The others may be estimates, each below the exact ones. */
    const uint32_t *tops;
    uint32_t rope_ahead; /* added to the positions by which queries and keys are rotated */
} whit_batch;

typedef struct whit_exec whit_exec;

typedef struct whit_exec_options {
    uint32_t n_batch_rows;    /* most rows of a pass */
    uint32_t n_selected_rows; /* most selected rows of a step */
    uint32_t n_threads;
    uint32_t n_ctx_tokens; /* the session's context size: some frequencies depend on it */
    bool releases_tables;  /* tensors are in a file's mapping: pages of tables that are only looked up are released */
    uint32_t n_ropes;
    whit_rope ropes[WHIT_ROPES_MAX];
    const float *divisors[WHIT_ROPES_MAX]; /* each table's divisors (dims / 2), or NULL (rope_scaling.h) */
} whit_exec_options;

/* Counts of the exchanges of values between this rank and others so far. */
typedef struct whit_exec_traffic {
    uint64_t n_gathers, n_messages, sent_bytes, received_bytes;
} whit_exec_traffic;

/* Sets a model's RoPE tables and their divisors among its tensors, for the n_ctx_tokens that the caller has set. */
void whit_exec_find_ropes(const whit_config *config, const whit_resolver *resolver, const whit_tensor *tensors,
                          whit_exec_options *options);

/* A RoPE table bound for execution. */
typedef struct whit_exec_rope {
    double *frequencies; /* (pairs) */
    float *tables;       /* (n_batch_rows, 2 * pairs) cosines and sines of the pass's tokens, times magnitude */
    float *offset_table; /* packed types: the table of whit_kv_packing, for all pairs; NULL: no keys are rotated */
    float *sink_tables;  /* endless caches: like `tables`, rotates a row's queries back to the sinks */
    uint32_t pairs;
    float magnitude;
} whit_exec_rope;

/* ---- schedules (exec_schedule.c) ------------------------------------------------------------- */

#define WHIT_EXEC_BUCKETS 20 /* kernels and schedules by number of rows: 1 to 8, then powers of two */

/* A type of matrix and of its activations, and the kernels for each number of rows. */
typedef struct whit_exec_choice {
    whit_tensor_type type; /* scale values are ignored */
    whit_acts_spec acts;
    const whit_matmul_kernel *kernels[WHIT_EXEC_BUCKETS];
    const whit_matmul_kernel
        *low_kernels[WHIT_EXEC_BUCKETS]; /* for factor A of adapters and of the tensor's own low-rank pair */
    whit_tensor_type plane;              /* type of its second sign plane; n_cols 0 if absent */
    whit_acts_spec plane_acts;
    uint32_t rank; /* rank of its low-rank pair; 0 if absent */
    bool has_outliers;
    const whit_matmul_kernel *plane_kernels[WHIT_EXEC_BUCKETS];
} whit_exec_choice;

/* Execution modes: batch rows run with or without adapters, selected rows with a screened or
 * an exact head. */
enum { WHIT_EXEC_PLAIN, WHIT_EXEC_ADAPTED = 1, WHIT_EXEC_SCREENED = 1, WHIT_EXEC_MODES };

typedef struct whit_exec_schedules {
    whit_exec_choice *choices;
    uint32_t *choice_of; /* (steps of the plan) index into `choices`; set for matrices only */
    uint32_t n_choices, capacity;
    struct whit_exec_scheduled {
        whit_schedule schedule;
        uint32_t bucket; /* the first bucket of row counts that uses it */
        uint8_t rows, mode;
    } list[WHIT_ROWS_COUNT * WHIT_EXEC_MODES * WHIT_EXEC_BUCKETS];
    uint32_t n;
    uint8_t of[WHIT_ROWS_COUNT][WHIT_EXEC_MODES][WHIT_EXEC_BUCKETS]; /* indices into `list` */
    uint32_t n_buckets[WHIT_ROWS_COUNT];
    uint32_t screen_rows; /* selected rows up to which a head is screened */
} whit_exec_schedules;

/* whit_exec_choose chooses the kernels of a plan's matrices; whit_exec_schedules_make then makes its schedules for
 * passes of up to n_batch_rows and n_selected_rows rows. Memory comes from the plan's allocator and is freed by
 * whit_exec_schedules_free, also after a failure; empty schedules are accepted. */
whit_status whit_exec_choose(const whit_plan *plan, const whit_tensor *tensors, const whit_kernels *kernels,
                             whit_exec_schedules *schedules, whit_error *error);
whit_status whit_exec_schedules_make(const whit_plan *plan, const whit_tensor *tensors, uint32_t n_batch_rows,
                                     uint32_t n_selected_rows, whit_exec_schedules *schedules, whit_error *error);
void whit_exec_schedules_free(const whit_plan *plan, whit_exec_schedules *schedules);
/* Returns the index in `list` of the schedule that runs n_rows rows (1 or more) of a set. */
uint32_t whit_exec_schedule_of(const whit_exec_schedules *schedules, whit_row_set rows, int mode, uint32_t n_rows);

/* ---- adapters (exec_adapt.c) ---- */

#define WHIT_EXEC_MOUNTS 8 /* adapters of one sequence */

typedef struct whit_exec_adapter {
    const whit_adapter_weights *weights;
    float strength;
    uint32_t offset; /* index of its first rank among the ranks of the sequence's adapters */
} whit_exec_adapter;

/* The adapters mounted on a sequence, in order; width: sum of their ranks, each rounded up to a tile. */
typedef struct whit_exec_mounting {
    whit_exec_adapter mounts[WHIT_EXEC_MOUNTS];
    uint32_t n, width;
} whit_exec_mounting;

/* A segment: rows [begin, end) of the pass, and an adapter that changes them. */
typedef struct whit_exec_segment {
    uint32_t begin, end, width;
    const whit_exec_adapter *mount;
} whit_exec_segment;

typedef struct whit_exec_adapt {
    const whit_allocator *allocator;
    whit_exec_mounting *of_sequence;   /* (n_sequences); NULL until the first adapter is mounted */
    whit_exec_segment *segments;       /* (n_segments) segments of the current pass */
    float *low;                        /* (n_batch_rows, low_stride) values x Aᵀ of one phase */
    struct whit_exec_low_state *state; /* state of the current phase */
    size_t low_stride, mountings_bytes, segments_bytes, low_bytes, state_bytes;
    uint32_t n_segments, n_mounted; /* n_mounted: number of sequences with adapters */
} whit_exec_adapt;

/* ---- experts (exec_experts.c) ---- */

/* The (token, expert) pairs of the current layer: rows of a value are its pairs by expert, then by token. */
typedef struct whit_exec_pairs {
    uint32_t n_experts, n_used;
    uint32_t *first;    /* (n_experts + 1) first row of each expert, and the end */
    uint32_t *active;   /* (n_active) experts with rows, ascending */
    uint32_t *token_of; /* (rows) token of a row */
    int32_t *expert_of; /* (rows) expert of a row */
    uint32_t *row_of;   /* (tokens, n_used) row of the pair of a token and the rank of its expert */
    uint32_t n_active;
    uint64_t n_read; /* number of experts read by passes so far, over all layers */
} whit_exec_pairs;

/* ---- the executor ----------------------------------------------------------------------------- */

struct whit_exec {
    const whit_plan *plan;
    const whit_exec_schedules *schedules;
    const struct whit_exec_bound *bound; /* (schedules->n) */
    const whit_kernels *kernels;
    const whit_batch *batch; /* batch of the current pass */
    uint32_t n_rows[WHIT_ROW_SETS],
        first_row[WHIT_ROW_SETS]; /* rows of the current pass, and the first one's index in its slot */
    const uint32_t *positions[WHIT_ROWS_COUNT], *sequences[WHIT_ROWS_COUNT]; /* by row set (not experts) and row */
    uint32_t *selected_positions, *selected_sequences;                       /* (n_selected_rows) */
    whit_kv *kv;
    struct whit_exec_cache *caches; /* (kv->n_classes) */
    whit_pool *pool;
    uint64_t *phase_ns; /* (phases of the plan) accumulated time; NULL: not measured */
    uint8_t *slots;
    whit_exec_rope ropes[WHIT_ROPES_MAX];
    uint32_t n_ropes;
    uint32_t *closing; /* (n_closing) packed types: rows of the pass that are the last of their block */
    uint32_t n_closing;
    uint8_t *scratch; /* (n_threads, scratch_bytes) */
    size_t scratch_bytes;
    uint8_t *prepared; /* (n_threads, prepared_bytes) a header (exec.c), then prepared activations; 0 bytes: unused */
    size_t prepared_bytes;
    struct whit_exec_parts *parts; /* (steps of the plan) set for matrices with corrections; NULL: no such matrix */
    uint8_t
        *corrections; /* (n_threads, correction_bytes) inputs of the current matrix's corrections; 0 bytes: unused */
    size_t correction_bytes;
    struct whit_exec_converted *converted; /* (n_threads) caches of converted KV groups; NULL: no kernel converts */
    uint8_t *converted_data;               /* (n_threads, WHIT_EXEC_CONVERTED_GROUPS, converted_bytes) */
    size_t converted_bytes;                /* whit_kv_converted_bytes of the largest head */
    uint64_t n_runs;                       /* phases run so far */
    uint32_t *n_rescored; /* (n_selected_rows) how many rows of the head's matrix rescoring has read whole */
    uint32_t n_batch_rows;
    bool releases_tables;
    whit_exec_adapt adapt;
    whit_exec_pairs pairs;
    struct whit_residency
        *residency;    /* budget of the experts' memory (residency.h), set by the caller; NULL: no limit */
    uint8_t *gathered; /* split over ranks: (n_ranks) shares of the value that is exchanged, one after the other */
    whit_exec_traffic traffic;
    bool is_lost;               /* a rank is lost: no pass can be run any more */
    uint8_t *queries;           /* split-KV attention: the prepared queries of one query block */
    float *partials;            /* split-KV attention: (n_partial_elems) partials of that query block */
    uint64_t n_partial_elems;   /* enough for one row over the whole context */
    _Atomic uint32_t *n_merged; /* (n_kv_heads) groups of a head merged into its first partials */
};

/* Takes the memory of the schedules from the arena and, if the arena has memory, binds every step. Called
 * twice; the first call only counts (base/arena.h). plan, schedules, kernels, kv and the tensors outlive the exec;
 * `pool` is set by the caller before the first run. */
void whit_exec_place(whit_exec *exec, whit_plan *plan, const whit_exec_schedules *schedules, const whit_tensor *tensors,
                     const whit_kernels *kernels, whit_kv *kv, const whit_exec_options *options, whit_arena *arena);

/* Runs one pass. Returns false if `cancel` was set between phases, or a rank is lost (is_lost); the valid positions of
 * the KV cache are then unchanged. Of a plan that is split `cancel` is NULL, since all ranks run the same phases. */
bool whit_exec_run(whit_exec *exec, const whit_batch *batch, const volatile bool *cancel);

/* Row `i` of a kept f32 value. */
float *whit_exec_row(const whit_exec *exec, uint32_t plan_value, uint32_t i);

/* Mounts adapters on a sequence in place of its current ones; n = 0 unmounts all. May allocate memory, so it is not
 * called during a step. Fills in `offset` and `width`. */
whit_status whit_exec_mount(whit_exec *exec, uint32_t sequence, whit_exec_mounting mounting,
                            const whit_allocator *allocator, whit_error *error);
/* Returns the memory that the first mounting takes; the exec may have been counted only. */
size_t whit_exec_mount_bytes(const whit_exec *exec, whit_exec_mounting mounting);
void whit_exec_adapt_free(whit_exec_adapt *adapt);

#endif
