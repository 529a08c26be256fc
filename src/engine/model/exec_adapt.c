/* SPDX-License-Identifier: MIT
 * Computes the additions of adapters in a pass. Consecutive rows of a batch with the same adapters form one *segment*
 * per adapter. The low-rank values x Aᵀ of all segments are computed once per phase of matrices, and each matrix adds
 * (x Aᵀ) Bᵀ to the tiles of outputs that it has just computed, while they are in cache. With many rows, x Aᵀ is
 * computed first. With few rows, as in decoding, reading A dominates: the tiles of A are partitioned together with
 * those of the matrices, so that no thread waits for another. Tiles that are finished before x Aᵀ is complete get their
 * adapters at the end. The operations and their order are the same in both cases.
 *
 * A row is changed only by the adapters of its own sequence, in the order of mounting, so its bits do not depend on
 * other rows. */
#include "model/exec_step.h"

#include <stdatomic.h>

enum {
    ITEM_ROWS = 64, /* number of rows of a segment that one thread processes at a time */
    FEW_ROWS = 8,
};

struct whit_exec_low_state {
    atomic_uint n_left; /* number of items of x Aᵀ that are not finished */
    bool deferred[];    /* (tiles of the largest phase) whether the adapters of a tile are added at the end of the
                         * phase */
};

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- mounting ------------------------------------------------------------------------------- */

static bool grow_memory(const whit_allocator *allocator, void **memory, size_t *have_bytes, size_t want_bytes)
{
    if (want_bytes <= *have_bytes) return true;
    void *larger = whit_zalloc(allocator, want_bytes);
    if (!larger) return false;
    whit_free(allocator, *memory, *have_bytes);
    *memory = larger;
    *have_bytes = want_bytes;
    return true;
}

static uint32_t most_steps_of_a_phase(const whit_plan *plan)
{
    uint32_t most = 1;
    for (uint32_t g = 0; g < plan->n_phases; g++)
        if (plan->phases[g].domain == WHIT_DOMAIN_TILES && plan->phases[g].n_steps > most)
            most = plan->phases[g].n_steps;
    return most;
}

static uint32_t most_tiles_of_a_phase(const whit_plan *plan)
{
    uint32_t most = 0;
    for (uint32_t g = 0; g < plan->n_phases; g++) {
        const whit_plan_phase *phase = &plan->phases[g];
        uint32_t n_tiles = 0;
        for (uint32_t i = phase->first; i < phase->first + phase->n_steps; i++)
            if (plan->steps[i].op == WHIT_PLAN_LINEAR)
                n_tiles += (plan->values[plan->steps[i].output - 1].width + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
        if (n_tiles > most) most = n_tiles;
    }
    return most;
}

/* Assigns to each adapter of a mounting a range of columns in `low`, one after the other, and sets `width`. */
static void place_ranks(whit_exec_mounting *mounting)
{
    mounting->width = 0;
    for (uint32_t i = 0; i < mounting->n; i++) {
        mounting->mounts[i].offset = mounting->width;
        mounting->width += (uint32_t)whit_round_up(mounting->mounts[i].weights->max_rank, WHIT_TILE_ROWS);
    }
}

/* Computes the array sizes that a mounting needs: returns them in the *_bytes members and low_stride. */
static whit_exec_adapt sizes_for(const whit_exec *exec, const whit_exec_mounting *mounting)
{
    uint32_t n_sequences = exec->kv->shape.n_sequences, n_rows = exec->n_batch_rows;
    whit_exec_adapt sizes = {.low_stride = (size_t)most_steps_of_a_phase(exec->plan) * mounting->width};
    sizes.state_bytes = sizeof *sizes.state + most_tiles_of_a_phase(exec->plan);
    sizes.mountings_bytes = n_sequences * sizeof *sizes.of_sequence;
    sizes.segments_bytes = (size_t)min_u32(n_rows, n_sequences) * WHIT_EXEC_MOUNTS * sizeof *sizes.segments;
    sizes.low_bytes = (size_t)n_rows * sizes.low_stride * sizeof *sizes.low;
    return sizes;
}

size_t whit_exec_mount_bytes(const whit_exec *exec, whit_exec_mounting mounting)
{
    if (!mounting.n) return 0;
    place_ranks(&mounting);
    whit_exec_adapt sizes = sizes_for(exec, &mounting);
    return sizes.state_bytes + sizes.mountings_bytes + sizes.segments_bytes + sizes.low_bytes;
}

/* Refuses adapters for matrices after selected() in the graph, because segments exist only for batch rows. */
static whit_status check_rows(const whit_exec *exec, const whit_exec_mounting *mounting, whit_error *error)
{
    for (uint32_t i = 0; i < exec->plan->n_steps; i++) {
        const whit_plan_step *step = &exec->plan->steps[i];
        if (step->op != WHIT_PLAN_LINEAR || step->rows == WHIT_ROWS_BATCH) continue;
        for (uint32_t k = 0; k < mounting->n; k++)
            if (mounting->mounts[k].weights->of_tensor[step->weight])
                return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                                 "an adapter that changes matrices of layer %u, which runs only for the last tokens of "
                                 "a step, is not supported",
                                 step->layer);
    }
    return WHIT_OK;
}

whit_status whit_exec_mount(whit_exec *exec, uint32_t sequence, whit_exec_mounting mounting,
                            const whit_allocator *allocator, whit_error *error)
{
    whit_exec_adapt *adapt = &exec->adapt;
    WHIT_TRY(check_rows(exec, &mounting, error));
    place_ranks(&mounting);
    whit_exec_adapt sizes = sizes_for(exec, &mounting);
    adapt->allocator = allocator;
    if (mounting.n &&
        (!grow_memory(allocator, (void **)&adapt->state, &adapt->state_bytes, sizes.state_bytes) ||
         !grow_memory(allocator, (void **)&adapt->of_sequence, &adapt->mountings_bytes, sizes.mountings_bytes) ||
         !grow_memory(allocator, (void **)&adapt->segments, &adapt->segments_bytes, sizes.segments_bytes) ||
         !grow_memory(allocator, (void **)&adapt->low, &adapt->low_bytes, sizes.low_bytes)))
        return whit_fail_memory(error, "adapters", sizes.low_bytes);
    if (!adapt->of_sequence) return WHIT_OK; /* no adapter was ever mounted */
    if (sizes.low_stride > adapt->low_stride) adapt->low_stride = sizes.low_stride;
    adapt->n_mounted += (mounting.n > 0) - (adapt->of_sequence[sequence].n > 0);
    adapt->of_sequence[sequence] = mounting;
    return WHIT_OK;
}

void whit_exec_adapt_free(whit_exec_adapt *adapt)
{
    whit_free(adapt->allocator, adapt->of_sequence, adapt->mountings_bytes);
    whit_free(adapt->allocator, adapt->segments, adapt->segments_bytes);
    whit_free(adapt->allocator, adapt->low, adapt->low_bytes);
    whit_free(adapt->allocator, adapt->state, adapt->state_bytes);
    *adapt = (whit_exec_adapt){0};
}

/* ---- segments ------------------------------------------------------------------------------- */

static bool same_mounts(const whit_exec_mounting *a, const whit_exec_mounting *b)
{
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->mounts[i].weights != b->mounts[i].weights || a->mounts[i].strength != b->mounts[i].strength)
            return false;
    return true;
}

void whit_exec_make_segments(whit_exec *exec)
{
    whit_exec_adapt *adapt = &exec->adapt;
    const whit_batch *batch = exec->batch;
    adapt->n_segments = 0;
    for (uint32_t r = 0; adapt->n_mounted && r < batch->n_rows;) {
        const whit_exec_mounting *mounting = &adapt->of_sequence[batch->sequences[r]];
        uint32_t begin = r++;
        while (r < batch->n_rows && same_mounts(mounting, &adapt->of_sequence[batch->sequences[r]])) r++;
        for (uint32_t i = 0; i < mounting->n; i++)
            adapt->segments[adapt->n_segments++] =
                (whit_exec_segment){.begin = begin, .end = r, .width = mounting->width, .mount = &mounting->mounts[i]};
    }
}

/* ---- low-rank values x Aᵀ ------------------------------------------------------------------- */

static const whit_adapter_pair *pair_of(const whit_exec_segment *segment, const whit_exec_step *step)
{
    return segment->mount->weights->of_tensor[step->weight];
}

/* Returns the index of a matrix's first low-rank value in a row of `low`. */
static size_t low_offset(const whit_exec_segment *segment, const whit_exec_step *step)
{
    return (size_t)step->place * segment->width + segment->mount->offset;
}

static uint32_t count_tiles(const whit_adapter_pair *pair)
{
    return (pair->a.type.n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
}

static uint32_t count_items(const whit_exec_segment *segment, const whit_exec_step *step)
{
    const whit_adapter_pair *pair = pair_of(segment, step);
    return pair ? count_tiles(pair) * ((segment->end - segment->begin + ITEM_ROWS - 1) / ITEM_ROWS) : 0;
}

/* Computes one item of x A^T: sixteen ranks of one matrix for up to ITEM_ROWS rows of a segment. */
static void run_item(const whit_exec *exec, const whit_exec_step *step, const whit_exec_segment *segment,
                     uint32_t worker, uint32_t item)
{
    const whit_adapter_pair *pair = pair_of(segment, step);
    uint32_t n_tiles = count_tiles(pair), tile = item % n_tiles;
    uint32_t begin = segment->begin + item / n_tiles * ITEM_ROWS, n = min_u32(segment->end - begin, ITEM_ROWS);
    uint32_t n_ranks = min_u32(pair->a.type.n_rows - tile * WHIT_TILE_ROWS, WHIT_TILE_ROWS);
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, begin, n);
    float *low = exec->adapt.low + begin * exec->adapt.low_stride + low_offset(segment, step);
    const whit_matmul_kernel *kernel = whit_exec_bucket(step->choice->low_kernels, n);
    kernel->run(&pair->a, &acts, tile, tile + 1, low, exec->adapt.low_stride,
                whit_exec_scratch(exec, kernel, &acts, worker));
    for (uint32_t r = 0; r < n; r++)
        exec->kernels->scale(low + r * exec->adapt.low_stride + (size_t)tile * WHIT_TILE_ROWS, segment->mount->strength,
                             n_ranks);
}

struct adapted_run {
    whit_exec_phase_run tiles;
    uint32_t n_items; /* number of x A^T items; the tiles are numbered after them */
};

static uint32_t count_all_items(const whit_exec *exec, const whit_exec_phase *phase)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < exec->adapt.n_segments; s++)
        for (uint32_t i = 0; i < phase->n_steps; i++) n += count_items(&exec->adapt.segments[s], &phase->steps[i]);
    return n;
}

/* Runs x A^T items [begin, end), numbered over all segments and matrices of the phase. */
static void run_items(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct adapted_run *run = context;
    const whit_exec *exec = run->tiles.exec;
    const whit_exec_phase *phase = run->tiles.phase;
    uint32_t first = 0;
    for (uint32_t s = 0; s < exec->adapt.n_segments; s++)
        for (uint32_t i = 0; i < phase->n_steps; i++) {
            const whit_exec_step *step = &phase->steps[i];
            uint32_t n = count_items(&exec->adapt.segments[s], step);
            for (uint32_t item = begin > first ? begin - first : 0; item < n && first + item < end; item++) {
                run_item(exec, step, &exec->adapt.segments[s], worker, item);
                atomic_fetch_sub_explicit(&exec->adapt.state->n_left, 1, memory_order_release);
            }
            first += n;
        }
}

/* Runs items [begin, end), numbered consecutively: first the x A^T items, then the tiles. */
static void run_together(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct adapted_run *run = context;
    uint32_t n = run->n_items;
    if (begin < n) run_items(context, worker, begin, min_u32(end, n));
    if (end > n) whit_exec_run_tiles(&run->tiles, worker, begin > n ? begin - n : 0, end - n);
}

/* ---- adding (x Aᵀ) Bᵀ ----------------------------------------------------------------------- */

/* Prefetches the lines of B for tiles [tile_begin, tile_end) while these tiles are computed, if there are few rows. */
void whit_exec_prefetch_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end)
{
    const whit_exec_adapt *adapt = &exec->adapt;
    if (exec->batch->n_rows > FEW_ROWS) return;
    for (uint32_t s = 0; s < adapt->n_segments; s++) {
        const whit_adapter_pair *pair = pair_of(&adapt->segments[s], step);
        if (!pair) continue;
        const whit_tensor *b = &pair->b;
        uint64_t tile_bytes = b->part_bytes[WHIT_PART_CODES] / step->n_tiles;
        const uint8_t *codes = b->part[WHIT_PART_CODES] + tile_begin * tile_bytes;
        for (uint64_t at = 0; at < (tile_end - tile_begin) * tile_bytes; at += WHIT_LINE_BYTES)
            __builtin_prefetch(codes + at, 0, 2);
        for (uint32_t tile = tile_begin; tile < tile_end; tile++)
            __builtin_prefetch(b->part[WHIT_PART_ROW_SCALES] + (size_t)tile * WHIT_LINE_BYTES, 0, 2);
    }
}

static void add_to_tiles(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end)
{
    const whit_exec_adapt *adapt = &exec->adapt;
    float *y = (float *)(void *)step->output;
    for (uint32_t s = 0; s < adapt->n_segments; s++) {
        const whit_exec_segment *segment = &adapt->segments[s];
        const whit_adapter_pair *pair = pair_of(segment, step);
        if (!pair) continue;
        exec->kernels->low_rank(&pair->b, adapt->low + segment->begin * adapt->low_stride + low_offset(segment, step),
                                adapt->low_stride, segment->end - segment->begin, tile_begin, tile_end,
                                y + segment->begin * step->output_stride, step->output_stride);
    }
}

void whit_exec_add_low(const whit_exec_step *step, const whit_exec *exec, uint32_t tile_begin, uint32_t tile_end)
{
    struct whit_exec_low_state *state = exec->adapt.state;
    if (atomic_load_explicit(&state->n_left, memory_order_acquire))
        memset(state->deferred + step->first_tile + tile_begin, true, tile_end - tile_begin);
    else
        add_to_tiles(step, exec, tile_begin, tile_end);
}

/* Adds the adapters to the deferred tiles, on this thread: they are too few to wake other threads. */
static void add_the_rest(const whit_exec *exec, const whit_exec_phase *phase)
{
    for (uint32_t i = 0; i < phase->n_steps; i++) {
        const whit_exec_step *step = &phase->steps[i];
        bool *deferred = exec->adapt.state->deferred + step->first_tile;
        for (uint32_t tile = 0, end; tile < step->n_tiles; tile = end) {
            for (end = tile + 1; end < step->n_tiles && deferred[end] == deferred[tile];) end++;
            if (deferred[tile]) add_to_tiles(step, exec, tile, end);
        }
        memset(deferred, false, step->n_tiles);
    }
}

void whit_exec_run_adapted_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    struct adapted_run run = {.tiles = {.exec = exec, .phase = phase, .n_rows = n_rows, .n_slices = 1}};
    uint32_t n_tiles = phase->n_tiles, chunk = whit_exec_chunk_tiles(n_tiles, whit_pool_size(exec->pool), n_rows);
    run.n_items = count_all_items(exec, phase);
    atomic_store_explicit(&exec->adapt.state->n_left, run.n_items, memory_order_relaxed);
    if (n_rows > FEW_ROWS) {
        whit_pool_run(exec->pool, run_items, &run, run.n_items, 1);
        whit_pool_run(exec->pool, whit_exec_run_tiles, &run.tiles, n_tiles, chunk);
    } else {
        whit_pool_run(exec->pool, run_together, &run, run.n_items + n_tiles, chunk);
        if (run.n_items) add_the_rest(exec, phase);
    }
}
