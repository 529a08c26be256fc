/* SPDX-License-Identifier: MIT
 * Executes a plan: binds its schedules (plan_fuse.h) to memory, kernels and weights, so that a pass over a batch only
 * calls the functions of two lists, which were chosen when the session was opened: one list for all tokens, one for the
 * tokens whose outputs are wanted. A pass allocates nothing, looks up no names and does not dispatch on types.
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

/* Sets `layers` (n_layers) to each layer's requirements on the KV cache and on the recurrent state. Returns false if a
 * layer has more than one attention, convolution or delta rule, or a node has a layer number of n_layers or more. */
bool whit_exec_kv_layers(const whit_graph *graph, whit_kv_layer *layers, uint32_t n_layers);

/* Holds the tokens of one pass. */
typedef struct whit_batch {
    uint32_t n_rows;
    const int32_t *ids; /* (n_rows) token ids, each below the vocabulary's size */
    /* (n_rows) sequence of each row; rows of one sequence are in ascending order of position */
    const uint32_t *sequences;
    const uint32_t *positions; /* (n_rows) positions; each has a place in the KV cache */
    const uint32_t *selected;  /* (n_selected) indices of the rows whose outputs are requested, in the requested
                                * order */
    const uint8_t *types;      /* (n_rows) token types; NULL: all 0 */
    uint32_t n_selected;
    uint32_t selected_begin; /* number of selected rows in earlier passes of the same step */
    /* (n_selected) number of largest logits that must be exact in each selected row, 0: all; NULL: all logits of all
     * rows. The other logits may be estimates, all smaller than the tops[i]-th largest logit of row i. */
    const uint32_t *tops;
    uint32_t rope_ahead; /* added to all positions when queries and keys are rotated */
} whit_batch;

typedef struct whit_exec whit_exec;

typedef struct whit_exec_options {
    uint32_t n_batch_rows;    /* maximum number of rows of a pass */
    uint32_t n_selected_rows; /* maximum number of selected rows of a step, which may consist of several passes */
    uint32_t n_threads;
    uint32_t n_ctx_tokens; /* the session's context size, on which dynamic and long RoPE scaling depend */
    /* tensors lie in a mapped file, so pages of tables that are only looked up may be released */
    bool releases_tables;
    uint32_t n_ropes;
    whit_rope ropes[WHIT_ROPES_MAX];
    const float *divisors[WHIT_ROPES_MAX]; /* (dims / 2) divisors of the frequencies of each table, or NULL
                                            * (rope_scaling.h) */
} whit_exec_options;

/* Counts the exchanges of values between this rank and the other ranks since whit_exec_place. n_gathers: exchanges;
 * n_messages: messages sent by this rank. */
typedef struct whit_exec_traffic {
    uint64_t n_gathers, n_messages, sent_bytes, received_bytes;
} whit_exec_traffic;

/* Sets the RoPE tables in `options`, and their divisors from the model's tensors. The caller has set
 * options->n_ctx_tokens before. */
void whit_exec_find_ropes(const whit_config *config, const whit_resolver *resolver, const whit_tensor *tensors,
                          whit_exec_options *options);

/* Describes a RoPE table bound for execution. */
typedef struct whit_exec_rope {
    double *frequencies; /* (pairs) angle per position by which each pair is rotated */
    float *tables;       /* (n_batch_rows, 2 * pairs) cosines and sines for the pass's tokens, multiplied by
                          * `magnitude` */
    float *offset_table; /* packed types: table of whit_kv_packing, for all pairs; NULL: no KV class undoes this
                          * rotation of keys before packing */
    float *sink_tables;  /* endless caches: (n_batch_rows, 2 * pairs) cosines and sines, not multiplied by `magnitude`,
                          * which rotate a row's queries back to the context's last position; not written for rows up
                          * to it; NULL: no KV class has sinks */
    uint32_t pairs;
    float magnitude;
} whit_exec_rope;

/* ---- schedules (exec_schedule.c) ------------------------------------------------------------- */

/* number of buckets; a bucket is a range of row counts that share kernels: 1 to 7 have one each, then there is one from
 * each power of two to the next (8 to 15, 16 to 31, ...) */
#define WHIT_EXEC_BUCKETS 20

/* Describes a type of matrix with the activations that it reads, and holds the kernels for each bucket of row
 * counts. */
typedef struct whit_exec_choice {
    whit_tensor_type type; /* values of scales are 0, because kernels do not depend on them */
    whit_acts_spec acts;
    const whit_matmul_kernel *kernels[WHIT_EXEC_BUCKETS];
    /* kernels for factor A of adapters and of the tensor's own low-rank pair */
    const whit_matmul_kernel *low_kernels[WHIT_EXEC_BUCKETS];
    whit_tensor_type plane; /* type of the tensor's second sign plane; n_cols 0 if absent */
    whit_acts_spec plane_acts;
    uint32_t rank; /* rank of the tensor's low-rank pair; 0 if absent */
    bool has_outliers;
    const whit_matmul_kernel *plane_kernels[WHIT_EXEC_BUCKETS];
} whit_exec_choice;

/* Names the modes of execution: batch rows run plain or with adapters, selected rows with an exact head (PLAIN) or a
 * screened head. */
enum { WHIT_EXEC_PLAIN, WHIT_EXEC_ADAPTED = 1, WHIT_EXEC_SCREENED = 1, WHIT_EXEC_MODES };

typedef struct whit_exec_schedules {
    whit_exec_choice *choices;
    uint32_t *choice_of; /* (steps of the plan) index into `choices`; defined only for LINEAR and EXPERT_LINEAR */
    uint32_t n_choices, capacity;
    struct whit_exec_scheduled {
        whit_schedule schedule;
        uint32_t bucket; /* first bucket that uses the schedule */
        uint8_t rows, mode;
    } list[WHIT_ROWS_COUNT * WHIT_EXEC_MODES * WHIT_EXEC_BUCKETS];
    uint32_t n;
    uint8_t of[WHIT_ROWS_COUNT][WHIT_EXEC_MODES][WHIT_EXEC_BUCKETS]; /* index into `list` by row set, mode and bucket */
    uint32_t n_buckets[WHIT_ROWS_COUNT];
    uint32_t screen_rows; /* largest number of selected rows for which a head is screened */
} whit_exec_schedules;

/* whit_exec_choose chooses the kernels for a plan's matrices; afterwards whit_exec_schedules_make makes the schedules
 * for passes of up to n_batch_rows rows and n_selected_rows selected rows. Memory comes from the plan's allocator.
 * whit_exec_schedules_free frees it, also after a failure; zeroed schedules are accepted. */
whit_status whit_exec_choose(const whit_plan *plan, const whit_tensor *tensors, const whit_kernels *kernels,
                             whit_exec_schedules *schedules, whit_error *error);
whit_status whit_exec_schedules_make(const whit_plan *plan, const whit_tensor *tensors, uint32_t n_batch_rows,
                                     uint32_t n_selected_rows, whit_exec_schedules *schedules, whit_error *error);
void whit_exec_schedules_free(const whit_plan *plan, whit_exec_schedules *schedules);
/* Returns the index in `list` of the schedule that runs n_rows rows (1 or more) of a row set in a mode. */
uint32_t whit_exec_schedule_of(const whit_exec_schedules *schedules, whit_row_set rows, int mode, uint32_t n_rows);

/* ---- adapters (exec_adapt.c) ---- */

#define WHIT_EXEC_MOUNTS 8 /* maximum number of adapters of one sequence */

typedef struct whit_exec_adapter {
    const whit_adapter_weights *weights;
    float strength;
    uint32_t offset; /* index of the adapter's first rank among the ranks of the sequence's adapters */
} whit_exec_adapter;

/* Holds the adapters mounted on a sequence, in the order of mounting. width: sum of the adapters' largest ranks, each
 * rounded up to a multiple of a tile's rows. */
typedef struct whit_exec_mounting {
    whit_exec_adapter mounts[WHIT_EXEC_MOUNTS];
    uint32_t n, width;
} whit_exec_mounting;

/* Describes a segment: rows [begin, end) of the pass, and one adapter that changes them. width: as in
 * whit_exec_mounting. */
typedef struct whit_exec_segment {
    uint32_t begin, end, width;
    const whit_exec_adapter *mount;
} whit_exec_segment;

typedef struct whit_exec_adapt {
    const whit_allocator *allocator;
    whit_exec_mounting *of_sequence;   /* (n_sequences) adapters of each sequence; NULL until the first adapter is
                                        * mounted */
    whit_exec_segment *segments;       /* (n_segments) segments of the current pass */
    float *low;                        /* (n_batch_rows, low_stride) values x A^T of one phase, by row */
    struct whit_exec_low_state *state; /* state of the current phase */
    size_t low_stride, mountings_bytes, segments_bytes, low_bytes, state_bytes;
    uint32_t n_segments, n_mounted; /* n_mounted: number of sequences with adapters */
} whit_exec_adapt;

/* ---- experts (exec_experts.c) ---- */

/* Holds the (token, expert) pairs of the current layer. Values of the row set EXPERT have one row per pair, ordered by
 * expert, then by token. */
typedef struct whit_exec_pairs {
    uint32_t n_experts, n_used;
    uint32_t *first;    /* (n_experts + 1) index of the first row of each expert, then the number of rows */
    uint32_t *active;   /* (n_active) experts that have rows, in ascending order */
    uint32_t *token_of; /* (rows) token of each row */
    int32_t *expert_of; /* (rows) expert of each row */
    uint32_t *row_of;   /* (tokens, n_used) row of each pair of a token, in the order in which the route lists the
                         * token's experts */
    uint32_t n_active;
    uint64_t n_read; /* number of experts read by all passes so far, summed over layers */
} whit_exec_pairs;

/* ---- the executor ----------------------------------------------------------------------------- */

struct whit_exec {
    const whit_plan *plan;
    const whit_exec_schedules *schedules;
    const struct whit_exec_bound *bound; /* (schedules->n) bound schedules */
    const whit_kernels *kernels;
    const whit_batch *batch; /* batch of the current pass */
    /* number of rows of the current pass by row set, and index of the first one in its slot */
    uint32_t n_rows[WHIT_ROW_SETS], first_row[WHIT_ROW_SETS];
    /* by row set (without the rows of experts) and row */
    const uint32_t *positions[WHIT_ROWS_COUNT], *sequences[WHIT_ROWS_COUNT];
    /* (n_selected_rows) positions and sequences of the selected rows; NULL if no step needs them */
    uint32_t *selected_positions, *selected_sequences;
    whit_kv *kv;
    struct whit_exec_cache *caches; /* (kv->n_classes) bound KV classes; only those of role LAYERS are set */
    whit_pool *pool;
    uint64_t *phase_ns; /* (phases of the plan) time spent in each phase so far; NULL: not measured */
    uint8_t *slots;
    whit_exec_rope ropes[WHIT_ROPES_MAX];
    uint32_t n_ropes;
    uint32_t *closing; /* packed types: (n_closing) rows of the pass whose position is the last one of a block */
    uint32_t n_closing;
    uint8_t *scratch; /* (n_threads, scratch_bytes) scratch of kernels and other steps */
    size_t scratch_bytes;
    /* (n_threads, prepared_bytes) a header (struct prepared_for in exec.c), then prepared activations; prepared_bytes
     * 0: no kernel prepares */
    uint8_t *prepared;
    size_t prepared_bytes;
    struct whit_exec_parts *parts; /* (steps of the plan) locations of corrections, for matrices that have them; NULL:
                                    * no matrix has any */
    /* (n_threads, correction_bytes) inputs of the current matrix's corrections; correction_bytes 0: no matrix has
     * any */
    uint8_t *corrections;
    size_t correction_bytes;
    struct whit_exec_converted *converted; /* (n_threads) caches of converted KV groups; NULL: no KV class is
                                            * converted */
    /* (n_threads, WHIT_EXEC_CONVERTED_GROUPS, converted_bytes) converted KV groups */
    uint8_t *converted_data;
    size_t converted_bytes; /* whit_kv_converted_bytes of the largest head */
    uint64_t n_runs;        /* number of phases run so far */
    uint32_t *n_rescored;   /* (n_selected_rows) number of rows of the head's matrix that rescoring has computed
                             * exactly; set only if the head is screened */
    uint32_t n_batch_rows;
    bool releases_tables;
    whit_exec_adapt adapt;
    whit_exec_pairs pairs;
    /* limit of the experts' memory (residency.h), set by the caller; NULL: no limit */
    struct whit_residency *residency;
    uint8_t *gathered; /* split over ranks: the shares of all ranks of the value that is being exchanged, one after the
                        * other */
    whit_exec_traffic traffic;
    bool is_lost;               /* another rank cannot be reached, so no further pass can be run */
    uint8_t *queries;           /* split-KV attention: the prepared queries of one query block */
    float *partials;            /* split-KV attention: (n_partial_elems) partial results of that query block */
    uint64_t n_partial_elems;   /* number of floats of `partials`, enough for one row over the whole context; 0 with one
                                 * thread */
    _Atomic uint32_t *n_merged; /* split-KV attention: (n_kv_heads) number of groups of each head that are merged into
                                 * the head's first partials */
};

/* Takes memory from the arena and, if the arena has memory, binds every step of the schedules. The caller calls it
 * twice: with an arena that only counts (base/arena.h), then with one that has memory. plan, schedules, kernels, kv and
 * the tensors must outlive the exec; the caller sets `pool` before the first pass. */
void whit_exec_place(whit_exec *exec, whit_plan *plan, const whit_exec_schedules *schedules, const whit_tensor *tensors,
                     const whit_kernels *kernels, whit_kv *kv, const whit_exec_options *options, whit_arena *arena);

/* Runs one pass, whose positions the caller has added to the KV cache (whit_kv_extend). Returns false if `cancel` was
 * set between phases, or if a rank is lost (is_lost); the caller must then cut the sequences back. For a plan split
 * over ranks, `cancel` must be NULL, because all ranks must run the same phases. */
bool whit_exec_run(whit_exec *exec, const whit_batch *batch, const volatile bool *cancel);

/* Returns row `i` of an f32 value that the plan keeps. For a value of batch rows, i is the row in the last pass; for a
 * value of selected rows, the index among the selected rows of the step. */
float *whit_exec_row(const whit_exec *exec, uint32_t plan_value, uint32_t i);

/* Mounts adapters on a sequence in place of its current ones; n = 0 unmounts all. `offset` and `width` of the mounting
 * are computed here. It may allocate memory, so it must not be called during a step. Returns WHIT_ERROR_UNSUPPORTED if
 * an adapter changes a matrix that is multiplied with selected rows. */
whit_status whit_exec_mount(whit_exec *exec, uint32_t sequence, whit_exec_mounting mounting,
                            const whit_allocator *allocator, whit_error *error);
/* Returns the number of bytes that the first mounting allocates. whit_exec_place may have been called only with a
 * counting arena. */
size_t whit_exec_mount_bytes(const whit_exec *exec, whit_exec_mounting mounting);
void whit_exec_adapt_free(whit_exec_adapt *adapt);

#endif
