/* SPDX-License-Identifier: MIT
 * Runs the schedules of a pass phase by phase, and partitions the items of each phase among the threads. */
#include "model/exec_step.h"

#include "base/clock.h"
#include "base/flag.h"

/* The number of rows in a slice of products is a multiple of this. */
#define ROWS_TOGETHER 32

/* Identifies the prepared data that follows this header: the function that prepared it, the run of a phase, and the
 * activations. All zero means that nothing is prepared, because runs are counted from 1. */
typedef struct prepared_for {
    void (*prepare)(const whit_acts *x, void *scratch);
    uint64_t run;
    const void *acts;
    uint32_t n_tokens;
} prepared_for;
_Static_assert(sizeof(prepared_for) <= WHIT_ALIGN_BYTES, "one line in front of the tables");

void *whit_exec_scratch(const whit_exec *exec, const whit_matmul_kernel *kernel, const whit_acts *x, uint32_t worker)
{
    if (!kernel->prepare) return exec->scratch + worker * exec->scratch_bytes;
    uint8_t *memory = exec->prepared + worker * exec->prepared_bytes, *scratch = memory + WHIT_ALIGN_BYTES;
    prepared_for *made = (prepared_for *)(void *)memory;
    if (made->prepare != kernel->prepare || made->run != exec->n_runs || made->acts != x->i8 ||
        made->n_tokens != x->n_tokens) {
        kernel->prepare(x, scratch);
        *made = (prepared_for){kernel->prepare, exec->n_runs, x->i8, x->n_tokens};
    }
    return scratch;
}

/* ---- items of a phase -------------------------------------------------------------------------- */

void whit_exec_run_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_exec_phase_run *run = context;
    const whit_exec_step *step = run->phase->steps;
    for (uint32_t i = 0; i < run->phase->n_steps; i++, step++) step->run(step, run->exec, worker, begin, end);
}

/* Computes tiles [begin, end) for some rows; tiles are numbered over all matrices of the phase. */
static void run_slice(const whit_exec_phase_run *run, uint32_t worker, whit_exec_rows rows, uint32_t begin,
                      uint32_t end)
{
    const whit_exec_step *step = run->phase->steps;
    for (uint32_t i = 0; i < run->phase->n_steps && begin < end; i++, step++) {
        uint32_t n = step->n_tiles;
        if (begin < n)
            step->run_tiles(step, run->exec, worker, rows, step->tile_begin + begin,
                            step->tile_begin + (end < n ? end : n));
        begin = begin > n ? begin - n : 0;
        end = end > n ? end - n : 0;
    }
}

/* Runs items [begin, end) of products; items are (slice of the rows, tile) pairs, numbered slice by slice. */
void whit_exec_run_tiles(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_exec_phase_run *run = context;
    const uint32_t n_tiles = run->phase->n_tiles;
    uint32_t slice_rows = ((run->n_rows - 1) / run->n_slices / ROWS_TOGETHER + 1) * ROWS_TOGETHER;
    for (uint32_t slice_end; begin < end; begin = slice_end) {
        uint32_t slice = begin / n_tiles, from = slice * n_tiles, row = slice * slice_rows;
        slice_end = from + n_tiles < end ? from + n_tiles : end;
        if (row >= run->n_rows) continue; /* earlier slices have covered all rows */
        whit_exec_rows rows = {row, run->n_rows - row < slice_rows ? run->n_rows - row : slice_rows};
        run_slice(run, worker, rows, begin - from, slice_end - from);
    }
}

/* Passes of up to FEW_ROWS rows have small chunks. From FOURS_ROWS rows on, chunks are multiples of four tiles, because
 * kernels may process four tiles at once. */
enum { FEW_ROWS = 8, FOURS_ROWS = 5 };

/* Returns the number of tiles in a chunk. Products of many rows read all activations once per chunk and unpack four
 * tiles at a time, so their chunks are large multiples of four: the size for which the busiest worker has the fewest
 * tiles. */
uint32_t whit_exec_chunk_tiles(uint32_t n_tiles, uint32_t n_workers, uint32_t n_rows)
{
    const uint32_t small = (n_tiles - 1) / (16 * n_workers) + 1;
    if (n_rows <= FEW_ROWS) return n_rows < FOURS_ROWS ? small : (small + 3) / 4 * 4;
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t n = 4; n <= 8; n++) { /* n: number of chunks per worker */
        uint32_t even = (n_tiles + n * n_workers - 1) / (n * n_workers), chunk = (even + 3) / 4 * 4;
        uint32_t n_chunks = (n_tiles + chunk - 1) / chunk, most = (n_chunks + n_workers - 1) / n_workers * chunk;
        if (most < least) {
            least = most;
            best = chunk;
        }
    }
    return best;
}

/* ---- phases ---------------------------------------------------------------------------------- */

void whit_exec_run_rows_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    whit_exec_phase_run run = {.exec = exec, .phase = phase, .n_rows = n_rows};
    uint32_t chunk = n_rows / (8 * whit_pool_size(exec->pool)) + 1;
    if (chunk >= 16) chunk = (chunk + 8) / 16 * 16; /* keys are transposed in groups of 16 rows */
    if (n_rows == 1)
        whit_exec_run_rows(&run, 0, 0, 1); /* a single row is not worth waking other threads */
    else
        whit_pool_run(exec->pool, whit_exec_run_rows, &run, n_rows, chunk);
}

void whit_exec_run_tiles_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    whit_exec_phase_run run = {.exec = exec, .phase = phase, .n_rows = n_rows, .n_slices = 1};
    const whit_exec_step *first = phase->steps;
    uint32_t slice_rows =
        first->kernel->slice_tokens ? first->kernel->slice_tokens(&first->tensor->type, n_rows) : n_rows;
    if (n_rows > slice_rows) run.n_slices = n_rows / slice_rows;
    uint32_t n_items = phase->n_tiles * run.n_slices;
    whit_pool_run(exec->pool, whit_exec_run_tiles, &run, n_items,
                  whit_exec_chunk_tiles(n_items, whit_pool_size(exec->pool), n_rows));
}

/* ---- passes ---------------------------------------------------------------------------------- */

static bool may_screen(const whit_exec *exec, const whit_batch *batch)
{
    if (!batch->tops || batch->n_selected > exec->kernels->screen_rows) return false;
    for (uint32_t i = 0; i < batch->n_selected; i++)
        if (batch->tops[i] == 0 || batch->tops[i] > WHIT_SCREEN_MAX_BEST) return false;
    return true;
}

static bool run_schedule(whit_exec *exec, const whit_exec_bound *schedule, const volatile bool *cancel)
{
    for (uint32_t g = 0; g < schedule->n_phases; g++) {
        const whit_exec_phase *phase = &schedule->phases[g];
        if (whit_flag_is_set(cancel) || exec->is_lost) return false;
        uint64_t from_ns = exec->phase_ns ? whit_now_ns() : 0;
        exec->n_runs++;
        phase->run(exec, phase, exec->n_rows[phase->rows]);
        if (exec->phase_ns) exec->phase_ns[phase->place] += whit_now_ns() - from_ns;
    }
    return !exec->is_lost;
}

bool whit_exec_run(whit_exec *exec, const whit_batch *batch, const volatile bool *cancel)
{
    exec->batch = batch;
    exec->n_rows[WHIT_ROWS_BATCH] = batch->n_rows;
    exec->n_rows[WHIT_ROWS_SELECTED] = batch->n_selected;
    exec->n_rows[WHIT_ROWS_EXPERT] = batch->n_rows * exec->pairs.n_used;
    exec->first_row[WHIT_ROWS_SELECTED] = batch->selected_begin;
    for (uint32_t i = 0; exec->selected_positions && i < batch->n_selected; i++) {
        exec->selected_positions[i] = batch->positions[batch->selected[i]];
        exec->selected_sequences[i] = batch->sequences[batch->selected[i]];
    }
    exec->positions[WHIT_ROWS_BATCH] = batch->positions;
    exec->sequences[WHIT_ROWS_BATCH] = batch->sequences;
    exec->positions[WHIT_ROWS_SELECTED] = exec->selected_positions;
    exec->sequences[WHIT_ROWS_SELECTED] = exec->selected_sequences;
    whit_exec_make_segments(exec);
    whit_exec_make_rope_tables(exec);
    whit_exec_make_query_blocks(exec);
    int mode[WHIT_ROWS_COUNT] = {exec->adapt.n_segments ? WHIT_EXEC_ADAPTED : WHIT_EXEC_PLAIN,
                                 may_screen(exec, batch) ? WHIT_EXEC_SCREENED : WHIT_EXEC_PLAIN};
    for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++) {
        uint32_t n = exec->n_rows[rows];
        if (n && !run_schedule(exec, whit_exec_bound_of(exec, (whit_row_set)rows, mode[rows], n), cancel)) return false;
    }
    return true;
}

float *whit_exec_row(const whit_exec *exec, uint32_t plan_value, uint32_t i)
{
    const whit_plan_value *value = &exec->plan->values[plan_value - 1];
    float *rows = (float *)(void *)(exec->slots + exec->plan->slots[value->slot].offset_bytes);
    return rows + i * whit_plan_stride(value);
}
