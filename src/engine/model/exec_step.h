/* SPDX-License-Identifier: MIT
 * Declares internals of the executor: bound steps, and functions shared by their implementations. */
#ifndef WHIT_MODEL_EXEC_STEP_H
#define WHIT_MODEL_EXEC_STEP_H

#include "kernels/corrections.h"
#include "model/exec.h"
#include "model/plan_split.h"

typedef struct whit_exec_step whit_exec_step;

/* Holds the locations of a matrix's corrections. They are looked up once, because each access to the file may wait for
 * a page. */
typedef struct whit_exec_parts {
    whit_plane plane;
    whit_low_rank_pair pair;
    uint64_t plane_tile_bytes, pair_tile_bytes; /* bytes per tile of the plane's signs and of factor B */
} whit_exec_parts;
typedef struct whit_exec_phase whit_exec_phase;

/* Describes a range of a pass's rows. */
typedef struct whit_exec_rows {
    uint32_t begin, n;
} whit_exec_rows;

/* Runs items [begin, end) of a phase: rows, (KV head, query block) pairs, value heads, or runs of channels. */
typedef void whit_exec_items_fn(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                                uint32_t end);
/* Computes tiles [begin, end) of a product for some rows, or for all rows if adapters change the product. For a stacked
 * matrix of experts, the rows all belong to one expert, and the tiles are those of that expert's matrix. */
typedef void whit_exec_tiles_fn(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                                uint32_t begin, uint32_t end);
/* Prepares the queries x of one row and one KV head for attention; if for_sinks is not NULL, also prepares a copy for
 * attention to the sinks. */
typedef void whit_exec_ready_fn(const whit_exec_step *step, const whit_exec *exec, uint32_t row, const float *x,
                                uint8_t *ready, uint8_t *for_sinks);

struct whit_exec_step {
    whit_exec_items_fn *run;       /* function of a step that is not a product; else NULL */
    whit_exec_tiles_fn *run_tiles; /* function of a product; else NULL */
    whit_exec_ready_fn *ready;     /* prepares queries; NULL except for attention */
    const whit_plan_step *plan;
    uint8_t *input[3], *output, *made;     /* made: activations that a fused norm writes in addition to its output */
    size_t input_stride[3], output_stride; /* strides in floats */
    uint8_t rows;                          /* whit_row_set */
    uint32_t width;
    uint32_t n_cols; /* columns of the activations that a matrix reads */
    uint32_t head_dim, rotary;
    const whit_exec_rope *rope;          /* RoPE table of a rotation, or of an attention's layer */
    const struct whit_exec_cache *cache; /* appending and attention: the KV class of the step's layer */
    uint32_t layer;                      /* appending and attention: the layer's index in its KV class */
    float constant;
    const whit_tensor *tensor, *gated; /* gated: the second matrix of a gated product */
    float output_scale;                /* fixed scale of a matrix's outputs; 0: they are not rounded */
    const float *vector;               /* values of `tensor` if it is a vector: norm weight, bias, taps of a
                                        * convolution, A of a delta rule, logits of attention sinks, a factor, signs of
                                        * a rotation, or a route's `choice` */
    bool releases_pages;               /* look-up in a large table: after many look-ups, pages outside the tiles
                                        * [kept_begin, kept_end) are released */
    uint32_t kept_begin, kept_end;     /* tiles of that table that a matrix reads */
    const float *second;               /* dt of a delta rule, factors of experts, or bias of a layer norm */
    uint32_t vector_elems;
    whit_gate_fn *gate;
    whit_row_source source; /* how a fused norm computes its input rows */
    whit_acts_spec acts;
    const whit_matmul_kernel *kernel;
    const whit_exec_choice *choice;
    const whit_exec_parts *parts; /* read only if the tensor has corrections; NULL if no matrix of the plan has any */
    /* The columns that this rank computes of a split step, except attention and convolutions. Without a split, set only
     * for a delta rule (value heads) and for rescoring (rows of the head's matrix). */
    whit_columns columns;
    whit_columns channels[WHIT_SPLIT_RANGES]; /* convolution: the channels that this process computes */
    uint32_t tile_begin;                      /* number of the first tile of `tensor` that this rank computes */
    int32_t weight;                           /* index of `tensor` among the model's tensors */
    /* place: index of the matrix in its phase; first_tile: number of its first tile among the tiles of the phase */
    uint32_t n_tiles, place, first_tile;
};

/* Holds a class of the KV cache and its kernels, bound for execution. */
typedef struct whit_exec_cache {
    const whit_kv_class *class, *open; /* open: the KV class in which tokens are written */
    whit_kv_append_fn *append;
    whit_kv_query_fn *query;
    whit_kv_attend_fn *attend;
    whit_kv_finish_fn *finish;
    whit_kv_pack_fn *pack; /* packs full blocks into their closed form; NULL: the type is not packed */
    uint32_t heads_per_kv_head;
    struct whit_exec_query_blocks {
        uint32_t *first; /* (n + 1) first row of each query block of the pass, then the number of rows */
        uint32_t n;
    } query_blocks[WHIT_ROWS_COUNT];
} whit_exec_cache;

/* A bound phase: a sequence of steps with one barrier at its end. */
struct whit_exec_phase {
    void (*run)(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);
    whit_exec_step *steps;
    uint32_t n_steps, n_tiles; /* n_tiles: sum over the products of the phase */
    uint32_t place;            /* index of the phase in the plan */
    uint8_t rows;              /* whit_row_set */
};

/* A schedule bound for execution. */
typedef struct whit_exec_bound {
    whit_exec_phase *phases;
    uint32_t n_phases;
} whit_exec_bound;

/* ---- binding ---- */

/* Returns the bound schedule that runs n_rows rows (1 or more) of a row set in a mode. */
const whit_exec_bound *whit_exec_bound_of(const whit_exec *exec, whit_row_set rows, int mode, uint32_t n_rows);
/* Returns the kernel for the bucket that n_rows belongs to. */
const whit_matmul_kernel *whit_exec_bucket(const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS], uint32_t n_rows);
/* Returns the smallest number of rows of a bucket. */
uint32_t whit_exec_bucket_rows(uint32_t bucket);
/* Returns the largest number of rows of a bucket, but at most n_rows. */
uint32_t whit_exec_bucket_most(uint32_t bucket, uint32_t n_rows);
/* Set the function of a step that is not a product (exec_steps.c), and the function of a product (exec_products.c). */
void whit_exec_bind_items(whit_exec_step *step);
void whit_exec_bind_tiles(whit_exec_step *step, bool is_adapted);

/* ---- running ---- */

/* Returns the address of row r of a pass in a slot. Selected rows of earlier passes of the same step precede it in the
 * slot. */
static inline float *whit_exec_row_of(const whit_exec_step *step, const whit_exec *exec, uint8_t *slot, size_t stride,
                                      uint32_t r)
{
    return (float *)(void *)slot + ((size_t)exec->first_row[step->rows] + r) * stride;
}
/* Returns the batch row of row r of a step on batch rows or selected rows. */
static inline uint32_t whit_exec_batch_row(const whit_exec_step *step, const whit_exec *exec, uint32_t r)
{
    return step->rows == WHIT_ROWS_SELECTED ? exec->batch->selected[r] : r;
}
/* Returns a worker's scratch for running a kernel on x; if the kernel prepares activations, x is prepared in it. */
void *whit_exec_scratch(const whit_exec *exec, const whit_matmul_kernel *kernel, const whit_acts *x, uint32_t worker);
/* Returns the activations that a matrix reads, for all rows of the pass. */
whit_acts whit_exec_acts(const whit_exec_step *step, const whit_exec *exec);
/* The argument of the thread pool's functions that run a phase's items. */
typedef struct whit_exec_phase_run {
    const whit_exec *exec;
    const whit_exec_phase *phase;
    uint32_t n_rows, n_slices; /* n_slices: for products, the number of slices of the rows; each slice is multiplied by
                                * all tiles */
} whit_exec_phase_run;
void whit_exec_run_rows(void *phase_run, uint32_t worker, uint32_t begin, uint32_t end);
void whit_exec_run_tiles(void *phase_run, uint32_t worker, uint32_t begin, uint32_t end);
/* Returns the number of tiles that a worker takes at a time. */
uint32_t whit_exec_chunk_tiles(uint32_t n_tiles, uint32_t n_workers, uint32_t n_rows);

/* ---- phases ---- */

void whit_exec_run_rows_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);
void whit_exec_run_tiles_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);
void whit_exec_run_adapted_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);
void whit_exec_run_heads_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);
void whit_exec_run_state_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);

/* ---- recurrent layers (exec_state.c) ---- */

/* Run items of a convolution, which are runs of channels, and of a delta rule, which are value heads. */
whit_exec_items_fn whit_exec_convolve, whit_exec_run_delta;
/* Returns the number of bytes of scratch that a worker needs for a step. */
size_t whit_exec_state_scratch_bytes(const whit_plan_step *step);
/* Sets the heads or channels of a step that this process computes, all of them if the plan is not split. */
void whit_exec_bind_state(const whit_plan *plan, whit_exec_step *step);

/* ---- experts (exec_experts.c) ---- */

/* Takes the memory of the (token, expert) pairs from the arena. */
void whit_exec_place_pairs(whit_exec *exec, uint32_t n_batch_rows, whit_arena *arena);
whit_exec_tiles_fn whit_exec_multiply_expert;
whit_exec_items_fn whit_exec_route, whit_exec_copy_pairs, whit_exec_combine, whit_exec_add_expert_bias;
void whit_exec_run_pairs_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);
void whit_exec_run_experts_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);

/* ---- RoPE (exec_rope.c) ---- */

/* Takes the memory of the RoPE tables from the arena and, if the arena has memory, computes their frequencies.
 * turns_packed: for each table, whether a KV class undoes its rotation of keys before packing. */
void whit_exec_place_ropes(whit_exec *exec, const whit_exec_options *options, bool has_sinks, const bool *turns_packed,
                           whit_arena *arena);
/* Computes the cosines and sines of the RoPE tables for a pass's tokens. */
void whit_exec_make_rope_tables(whit_exec *exec);

/* ---- ranks (exec_split.c) ---- */

/* Restricts a bound step to this rank's columns, heads or tiles. */
void whit_exec_narrow(const whit_exec *exec, whit_exec_step *step);
/* Takes the memory for exchanging values, in passes of up to n_batch_rows rows, from the arena. */
void whit_exec_place_gathers(whit_exec *exec, uint32_t n_batch_rows, whit_arena *arena);
/* Quantises this rank's columns of some rows to int8 activations. */
whit_exec_items_fn whit_exec_split_acts;
void whit_exec_run_gather_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows);

/* ---- corrections (exec_correct.c) ---- */

/* Adds a matrix's corrections to tiles [begin, end) of its outputs y (rows.n, output_stride). x: the activations of the
 * same rows. */
void whit_exec_correct(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                       const whit_acts *x, uint32_t begin, uint32_t end, float *y);
/* Prefetches the data of a matrix's corrections while its product is computed; does nothing for more than 8 rows. */
void whit_exec_prefetch_corrections(const whit_exec_step *step, const whit_exec *exec, uint32_t worker,
                                    whit_exec_rows rows, uint32_t begin, uint32_t end);
void whit_exec_find_parts(const whit_tensor *w, whit_exec_parts *parts);
/* Returns the number of bytes of a worker's memory for corrections. */
size_t whit_exec_correction_bytes(const whit_exec_choice *choice, uint32_t n_rows);

/* ---- adapters (exec_adapt.c) ---- */

/* Groups the rows of a pass into segments. It is called at the beginning of the pass. */
void whit_exec_make_segments(whit_exec *exec);
/* Prefetch factor B of the adapters before tiles of a matrix are computed (for at most 8 rows), and add the adapters'
 * products afterwards; tiles that are computed before x A^T is complete are left to the end of the phase. */
void whit_exec_prefetch_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end);
void whit_exec_add_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end);

/* ---- attention (exec_attend.c) ---- */

/* Describes a worker's cache of KV groups of one head, converted to integers (kernels/kv_block.h); it is valid within
 * one run of a phase. If no entry is free, a group uses the last entry and overwrites it. */
enum { WHIT_EXEC_CONVERTED_GROUPS = 4 };
typedef struct whit_exec_converted {
    _Alignas(64) uint64_t run; /* aligned to avoid false sharing: each worker often writes its own cache */
    uint32_t head, sequence, n_kept;
    struct {
        uint32_t group, valid; /* valid: which blocks are converted, as in whit_kv_group */
    } of[WHIT_EXEC_CONVERTED_GROUPS];
} whit_exec_converted;

/* Computes attention for items [begin, end), which are (KV head, query block) pairs. If there is only one query block,
 * as in decoding, whit_exec_run_heads_phase may partition groups of positions instead (split-KV, as in flash decoding)
 * and merge the partial results in ascending order, so that the operations and their order are the same. */
void whit_exec_attend(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end);
whit_exec_ready_fn whit_exec_ready, whit_exec_ready_rotated;

/* Returns the largest number of rows of a query block for a batch of n_rows. The queries of a query block read each KV
 * block together. */
uint32_t whit_exec_query_block_rows(const whit_exec *exec, const whit_exec_cache *cache, uint32_t n_threads,
                                    uint32_t n_rows);
/* Cuts the rows of the pass into query blocks. */
void whit_exec_make_query_blocks(whit_exec *exec);

/* Returns the number of bytes of a worker's scratch for attention over `n_queries` queries at once. */
size_t whit_exec_attend_scratch_bytes(const whit_kv_class *class, uint32_t n_queries);

#endif
