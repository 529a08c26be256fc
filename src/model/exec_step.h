/* SPDX-License-Identifier: MIT
 * Inside the executor: steps as they are bound, and what those that run them share. */
#ifndef WHIT_MODEL_EXEC_STEP_H
#define WHIT_MODEL_EXEC_STEP_H

#include "model/exec.h"

typedef struct whit_exec_step whit_exec_step;
typedef struct whit_exec_group whit_exec_group;

/* Some of a pass's rows. */
typedef struct whit_exec_rows {
    uint32_t begin, n;
} whit_exec_rows;

/* Items [begin, end) of a group: rows; (KV head, row tile) pairs. */
typedef void whit_exec_items_fn(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                                uint32_t end);
/* Tiles [begin, end) of a product for some rows; for all of them where adapters change it. */
typedef void whit_exec_tiles_fn(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                                uint32_t begin, uint32_t end);
/* Makes the queries of a row and one KV head, x, ready for attention, and where for_sinks is not NULL, again for
 * the sinks. */
typedef void whit_exec_ready_fn(const whit_exec_step *step, const whit_exec *exec, uint32_t row, const float *x,
                                uint8_t *ready, uint8_t *for_sinks);

struct whit_exec_step {
    whit_exec_items_fn *run;       /* NULL for products */
    whit_exec_tiles_fn *run_tiles; /* NULL for all others */
    whit_exec_ready_fn *ready;     /* attention */
    const whit_plan_step *plan;
    uint8_t *input[2], *output, *made;     /* made: the activations that a fused norm makes */
    size_t input_stride[2], output_stride; /* floats */
    uint8_t rows;                          /* whit_row_set */
    uint32_t width;
    uint32_t n_cols; /* of the activations that a matrix reads */
    uint32_t group, rotary;
    const struct whit_exec_cache *cache; /* appending and attention: the class of their layer, */
    uint32_t layer;                      /* and which of its layers that is */
    float constant;
    const whit_tensor *tensor, *gated; /* gated: the second matrix of a gated product */
    const float *vector;               /* norm weight, bias */
    uint32_t vector_elems;
    whit_gate_fn *gate;
    whit_row_source source; /* of a fused norm */
    whit_acts_spec acts;
    const whit_matmul_kernel *kernel;
    const whit_exec_choice *choice;
    int32_t weight;                      /* number of `tensor` in the model */
    uint32_t n_tiles, place, first_tile; /* in its group: which matrix, and its first tile among all */
};

/* A class of the KV cache as it runs. */
typedef struct whit_exec_cache {
    const whit_kv_class *class;
    whit_kv_append_fn *append;
    whit_kv_query_fn *query;
    whit_kv_attend_fn *attend;
    uint32_t heads_per_kv_head;
    uint32_t *row_tiles; /* first row of each tile of rows of the pass, and the end */
    uint32_t n_row_tiles;
} whit_exec_cache;

/* Steps with one barrier at their end. */
struct whit_exec_group {
    void (*run)(whit_exec *exec, const whit_exec_group *group, uint32_t n_rows);
    whit_exec_step *steps;
    uint32_t n_steps, n_tiles; /* n_tiles: of all its products */
    uint32_t place;            /* its number in the plan */
    uint8_t rows;              /* whit_row_set */
};

/* A schedule as it runs. */
typedef struct whit_exec_bound {
    whit_exec_group *groups;
    uint32_t n_groups;
} whit_exec_bound;

/* ---- binding ---- */

/* The schedule that runs for n_rows rows (1 or more) of a set, in a mode. */
const whit_exec_bound *whit_exec_bound_of(const whit_exec *exec, whit_row_set rows, int mode, uint32_t n_rows);
/* The one of some kernels that is meant for so many rows. */
const whit_matmul_kernel *whit_exec_bucket(const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS], uint32_t n_rows);
uint32_t whit_exec_bucket_of(uint32_t n_rows);
/* The least number of rows of a bucket. */
uint32_t whit_exec_bucket_rows(uint32_t bucket);
/* Set the functions of a step that is no product, and of one that is (exec_steps.c, exec_products.c). */
void whit_exec_bind_items(whit_exec_step *step);
void whit_exec_bind_tiles(whit_exec_step *step, bool is_adapted);
/* That of a gate; NULL for one that is not known, which no graph has. */
whit_gate_fn *whit_exec_gate(const whit_kernels *kernels, uint8_t gate);

/* ---- running ---- */

/* Where row r of a pass lies in a slot: selected rows of a step's earlier passes lie in front. */
static inline float *whit_exec_row_of(const whit_exec_step *step, const whit_exec *exec, uint8_t *slot, size_t stride,
                                      uint32_t r)
{
    return (float *)(void *)slot + ((size_t)exec->first_row[step->rows] + r) * stride;
}
/* A worker's scratch for a kernel's runs on x, prepared where it wants that. */
void *whit_exec_scratch(const whit_exec *exec, const whit_matmul_kernel *kernel, const whit_acts *x, uint32_t worker);
/* The activations that a matrix reads, of all its rows. */
whit_acts whit_exec_acts(const whit_exec_step *step, const whit_exec *exec);
/* Items [begin, end) of all steps of a group, as the pool runs them. */
typedef struct whit_exec_group_run {
    const whit_exec *exec;
    const whit_exec_group *group;
    uint32_t n_rows, n_parts; /* of products: each part of the rows meets all tiles */
} whit_exec_group_run;
void whit_exec_run_rows(void *group_run, uint32_t worker, uint32_t begin, uint32_t end);
void whit_exec_run_tiles(void *group_run, uint32_t worker, uint32_t begin, uint32_t end);
/* Tiles of a chunk. */
uint32_t whit_exec_chunk_tiles(uint32_t n_tiles, uint32_t n_workers, uint32_t n_rows);

/* ---- groups ---- */

void whit_exec_run_rows_group(whit_exec *exec, const whit_exec_group *group, uint32_t n_rows);
void whit_exec_run_tiles_group(whit_exec *exec, const whit_exec_group *group, uint32_t n_rows);
void whit_exec_run_adapted_group(whit_exec *exec, const whit_exec_group *group, uint32_t n_rows);
void whit_exec_run_heads_group(whit_exec *exec, const whit_exec_group *group, uint32_t n_rows);

/* ---- adapters (exec_adapt.c) ---- */

/* In front of a pass. */
void whit_exec_make_spans(whit_exec *exec);
/* Before and after tiles of one matrix are made. */
void whit_exec_fetch_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end);
void whit_exec_add_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end);

/* ---- attention (exec_attend.c) ---- */

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

/* Items are (KV head, tile of rows) pairs. Where they are too few for the threads, as in decoding, a group of
 * attention gives blocks of positions to the threads, which join them in ascending order: the same
 * operations in the same order. */
void whit_exec_attend(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end);
whit_exec_ready_fn whit_exec_ready, whit_exec_ready_rotated;

/* Rows whose queries share a reading of a block, of so many in a batch; and the tiles of those of the pass. */
uint32_t whit_exec_rows_of_tile(const whit_exec *exec, const whit_exec_cache *cache, uint32_t n_threads,
                                uint32_t n_rows);
void whit_exec_make_row_tiles(whit_exec *exec);

/* Bytes of a worker's scratch for attention over `n_queries` queries at once. */
size_t whit_exec_attend_scratch_bytes(const whit_kv_class *class, uint32_t n_queries);

#endif
