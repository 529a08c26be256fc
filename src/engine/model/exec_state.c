/* SPDX-License-Identifier: MIT
 * Computes recurrent layers of a pass. Items are independent of each other: runs of channels, or value heads. Each item
 * processes all tokens of all sequences in their order, so that threads, batch splits and other rows change no bit.
 *
 * The stored state of a head is the committed one, before the newest tokens (kv/state.h). The updates of the newest
 * tokens are stored, and each step applies them to a copy of the state in the worker's scratch. This costs arithmetic
 * but saves memory traffic: most steps of decoding only read the state.
 *
 * On several ranks (plan_split.h) a process has only the states of its own heads and channels: head h of the model is
 * head h - columns.begin of the state, and the channels of all ranges are adjacent. */
#include "model/exec_step.h"

#include "kernels/delta.h"

#include <string.h>

#define CHANNELS_TOGETHER 256

#define INPUT(i, r) whit_exec_row_of(step, exec, step->input[i], step->input_stride[i], r)
#define OUTPUT(r)   whit_exec_row_of(step, exec, step->output, step->output_stride, r)

/* Consecutive rows [begin, end) of a pass that belong to one sequence; row `begin` has position `first`. */
typedef struct run_of_rows {
    uint32_t begin, end, sequence, first;
} run_of_rows;

static run_of_rows next_rows(const whit_batch *batch, uint32_t begin)
{
    run_of_rows rows = {begin, begin + 1, batch->sequences[begin], batch->positions[begin]};
    while (rows.end < batch->n_rows && batch->sequences[rows.end] == rows.sequence) rows.end++;
    return rows;
}

static uint32_t end_position(const run_of_rows *rows)
{
    return rows->first + (rows->end - rows->begin);
}

/* ---- convolution ---------------------------------------------------------------------------- */

/* Number of rows from the convolved row to the prefetched row. Rows are pages apart, so the processor does not prefetch
 * them by itself. */
#define ROWS_AHEAD 2

/* Prefetches n channels of the input and the output of row r, from `channel` on. */
static void prefetch_channels(const whit_exec_step *step, const whit_exec *exec, uint32_t r, uint32_t channel,
                              uint32_t n)
{
    const float *from = INPUT(0, r) + channel, *to = OUTPUT(r) + channel;
    for (uint32_t i = 0; i < n; i += WHIT_LINE_BYTES / sizeof *from) {
        __builtin_prefetch(from + i, 0, 3);
        __builtin_prefetch(to + i, 1, 3);
    }
}

/* Convolves n channels: from channel number `channel` of the model on, which is channel number `kept` of this process's
 * state. */
static void convolve_channels(const whit_exec_step *step, const whit_exec *exec, const run_of_rows *rows,
                              uint32_t channel, uint32_t kept, uint32_t n)
{
    static const float zeros[CHANNELS_TOGETHER];
    const uint32_t layer = step->plan->layer, n_taps = step->plan->n_taps;
    const float *inputs[WHIT_CONV_TAPS_MAX];
    for (uint32_t r = rows->begin; r < rows->end; r++) {
        const uint32_t position = rows->first + (r - rows->begin);
        if (rows->end - r > ROWS_AHEAD) prefetch_channels(step, exec, r + ROWS_AHEAD, channel, n);
        for (uint32_t j = 0; j < n_taps; j++) {
            const uint32_t back = n_taps - 1 - j;
            if (back > position)
                inputs[j] = zeros;
            else if (back <= r - rows->begin)
                inputs[j] = INPUT(0, r - back) + channel;
            else
                inputs[j] = whit_state_inputs(&exec->kv->state, rows->sequence, layer, position - back) + kept;
        }
        exec->kernels->causal_conv(inputs, step->vector + channel, step->width, n_taps, step->plan->is_silu, n,
                                   OUTPUT(r) + channel);
    }
    const uint32_t n_rows = rows->end - rows->begin, n_kept = n_taps - 1 + WHIT_STATE_RING;
    for (uint32_t r = n_rows > n_kept ? rows->end - n_kept : rows->begin; r < rows->end; r++)
        memcpy(whit_state_inputs(&exec->kv->state, rows->sequence, layer, rows->first + (r - rows->begin)) + kept,
               INPUT(0, r) + channel, n * sizeof(float));
}

/* Returns the number of items (runs of channels) of a range of channels. */
static uint32_t count_runs(whit_columns range)
{
    return (range.end - range.begin + CHANNELS_TOGETHER - 1) / CHANNELS_TOGETHER;
}

static void convolve_item(const whit_exec_step *step, const whit_exec *exec, uint32_t item)
{
    const whit_columns *range = step->channels;
    uint32_t kept = 0;
    for (; item >= count_runs(*range); range++) {
        item -= count_runs(*range);
        kept += range->end - range->begin;
    }
    const uint32_t first = item * CHANNELS_TOGETHER, rest = range->end - range->begin - first;
    for (uint32_t r = 0; r < exec->batch->n_rows;) {
        const run_of_rows rows = next_rows(exec->batch, r);
        convolve_channels(step, exec, &rows, range->begin + first, kept + first,
                          rest < CHANNELS_TOGETHER ? rest : CHANNELS_TOGETHER);
        r = rows.end;
    }
}

void whit_exec_convolve(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                        uint32_t end)
{
    (void)worker;
    for (uint32_t item = begin; item < end; item++) convolve_item(step, exec, item);
}

/* ---- delta rule ----------------------------------------------------------------------------- */

/* Holds the context for running one value head of one sequence. */
typedef struct delta_run {
    const whit_exec_step *step;
    const whit_exec *exec;
    uint32_t head;
    whit_state_head kept;
    float *queries, *state; /* scratch: normalised queries (WHIT_STATE_RING, key_dim), and a copy of the state (key_dim,
                             * value_dim) */
} delta_run;

/* Number of columns of a state that are processed for many tokens together: with 128 rows they are 32 KB and stay in
 * L1. */
enum { DELTA_COLUMNS = 64 };

size_t whit_exec_state_scratch_bytes(const whit_plan_step *step)
{
    return ((size_t)step->head_dim * step->value_dim + (size_t)WHIT_STATE_RING * step->head_dim) * sizeof(float);
}

static whit_delta_update update_at(const delta_run *d, uint32_t position)
{
    const uint32_t at = position % WHIT_STATE_RING;
    const whit_plan_step *plan = d->step->plan;
    return (whit_delta_update){.key = d->kept.keys + (size_t)at * plan->head_dim,
                               .change = d->kept.changes + (size_t)at * plan->value_dim,
                               .decay = d->kept.decays[at]};
}

/* Applies the recorded updates of positions [begin, end) to the state `from` (NULL: zeros) and writes the result to
 * `to`. */
static void apply_updates(const delta_run *d, uint32_t begin, uint32_t end, const float *from, float *to)
{
    whit_delta_update updates[WHIT_STATE_RING];
    for (uint32_t p = begin; p < end; p++) updates[p - begin] = update_at(d, p);
    d->exec->kernels->delta_apply(updates, end - begin, from, to, d->step->plan->head_dim, d->step->plan->value_dim);
}

/* Normalises the query of row r into scratch, and records the normalised key and the decay for its position. */
static void prepare_token(const delta_run *d, uint32_t r, uint32_t position)
{
    const whit_exec_step *step = d->step;
    const whit_exec *exec = d->exec;
    const whit_plan_step *plan = step->plan;
    const uint32_t key_dim = plan->head_dim, at = position % WHIT_STATE_RING;
    const uint32_t key_head = whit_delta_key_head(d->head, plan->n_heads, plan->n_key_heads, plan->is_grouped);
    const float *queries = INPUT(0, r), *keys = queries + (size_t)plan->n_key_heads * key_dim;
    whit_delta_normalise(exec->kernels, queries + (size_t)key_head * key_dim, key_dim, 1.0f / sqrtf((float)key_dim),
                         d->queries + (size_t)at * key_dim);
    whit_delta_normalise(exec->kernels, keys + (size_t)key_head * key_dim, key_dim, 1.0f,
                         d->kept.keys + (size_t)at * key_dim);
    d->kept.decays[at] =
        whit_exp_f32(step->vector[d->head] * whit_delta_softplus(INPUT(2, r)[d->head] + step->second[d->head]));
}

/* Advances columns [begin, begin + n) of a state, stored as (key_dim, n), by the prepared token of row r, and writes
 * the same columns of the output. */
static void run_columns(const delta_run *d, uint32_t r, uint32_t position, float *state, uint32_t begin, uint32_t n)
{
    const whit_exec_step *step = d->step;
    const whit_exec *exec = d->exec;
    const whit_plan_step *plan = step->plan;
    const size_t first = (size_t)d->head * plan->value_dim + begin;
    const float *values = INPUT(0, r) + 2 * (size_t)plan->n_key_heads * plan->head_dim;
    whit_delta_update update = update_at(d, position);
    update.change += begin;
    exec->kernels->delta_step(state, d->queries + (size_t)(position % WHIT_STATE_RING) * plan->head_dim, values + first,
                              whit_delta_sigmoid(INPUT(1, r)[d->head]), &update, plan->head_dim, n, OUTPUT(r) + first);
}

/* Advances a row-major state by the token of row r at `position`, and writes the token's output. */
static void run_token(const delta_run *d, uint32_t r, uint32_t position, float *state)
{
    prepare_token(d, r, position);
    run_columns(d, r, position, state, 0, d->step->plan->value_dim);
}

/* Returns the number of columns in each block of a state that is split into blocks of columns. */
static uint32_t block_columns(const whit_plan_step *plan)
{
    return plan->value_dim % DELTA_COLUMNS ? plan->value_dim : DELTA_COLUMNS;
}

/* Copy a row-major state to blocks of columns, each block row-major, and back. */
static void split_columns(const whit_plan_step *plan, const float *rows, float *blocks)
{
    const uint32_t n = block_columns(plan);
    for (uint32_t c = 0; c < plan->value_dim; c += n)
        for (uint32_t i = 0; i < plan->head_dim; i++, blocks += n)
            memcpy(blocks, rows + (size_t)i * plan->value_dim + c, n * sizeof *rows);
}
static void join_columns(const whit_plan_step *plan, const float *blocks, float *rows)
{
    const uint32_t n = block_columns(plan);
    for (uint32_t c = 0; c < plan->value_dim; c += n)
        for (uint32_t i = 0; i < plan->head_dim; i++, blocks += n)
            memcpy(rows + (size_t)i * plan->value_dim + c, blocks, n * sizeof *rows);
}

/* Advances the committed state by n tokens from row r on. Tokens are processed in groups of WHIT_STATE_RING, whose keys
 * and changes fit the ring; each block of columns runs a whole group while it is in L1. */
static void run_tokens(const delta_run *d, uint32_t r, uint32_t position, uint32_t n)
{
    const whit_plan_step *plan = d->step->plan;
    const uint32_t n_columns = block_columns(plan);
    split_columns(plan, d->kept.state, d->state);
    for (uint32_t done = 0, now; done < n; done += now) {
        now = n - done < WHIT_STATE_RING ? n - done : WHIT_STATE_RING;
        for (uint32_t i = done; i < done + now; i++) prepare_token(d, r + i, position + i);
        for (uint32_t c = 0; c < plan->value_dim; c += n_columns)
            for (uint32_t i = done; i < done + now; i++)
                run_columns(d, r + i, position + i, d->state + (size_t)c * plan->head_dim, c, n_columns);
    }
    join_columns(plan, d->state, d->kept.state);
}

static void run_rows(const delta_run *d, const run_of_rows *rows)
{
    const whit_plan_step *plan = d->step->plan;
    const size_t n_elems = (size_t)plan->head_dim * plan->value_dim;
    const uint32_t committed =
        *whit_state_committed(&d->exec->kv->state, rows->sequence, plan->layer, WHIT_STATE_DELTA);
    const uint32_t end = end_position(rows),
                   target = whit_state_commit(end) > committed ? whit_state_commit(end) : committed;
    const float *from = committed ? d->kept.state : NULL;
    uint32_t r = rows->begin, position = rows->first;
    if (target > position) {
        /* In a long run of rows, the tokens before the target position update the committed state directly. */
        apply_updates(d, committed, position, from, d->kept.state);
        if (target - position >= WHIT_STATE_RING) {
            run_tokens(d, r, position, target - position);
            r += target - position, position = target;
        }
        for (; position < target; r++, position++) run_token(d, r, position, d->kept.state);
        memcpy(d->state, d->kept.state, n_elems * sizeof *d->state);
    } else {
        if (target > committed) {
            apply_updates(d, committed, target, from, d->kept.state);
            from = d->kept.state;
        }
        apply_updates(d, target, position, from, d->state);
    }
    for (; r < rows->end; r++, position++) run_token(d, r, position, d->state);
}

void whit_exec_run_delta(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                         uint32_t end)
{
    float *scratch = (float *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    const uint32_t first = step->columns.begin;
    for (uint32_t kept = begin; kept < end; kept++)
        for (uint32_t r = 0; r < exec->batch->n_rows;) {
            const run_of_rows rows = next_rows(exec->batch, r);
            const delta_run d = {.step = step,
                                 .exec = exec,
                                 .head = first + kept,
                                 .kept = whit_state_head_of(&exec->kv->state, rows.sequence, step->plan->layer, kept),
                                 .queries = scratch,
                                 .state = scratch + (size_t)WHIT_STATE_RING * step->plan->head_dim};
            run_rows(&d, &rows);
            r = rows.end;
        }
}

/* ---- phases --------------------------------------------------------------------------------- */

/* Records the new committed positions, after all items of a phase are finished. */
static void commit_positions(const whit_exec *exec, const whit_exec_step *step)
{
    whit_state *state = &exec->kv->state;
    const uint32_t layer = step->plan->layer;
    const bool has_delta = state->places[layer].shape.n_heads != 0;
    for (uint32_t r = 0; r < exec->batch->n_rows;) {
        const run_of_rows rows = next_rows(exec->batch, r);
        const uint32_t target = whit_state_commit(end_position(&rows));
        for (uint32_t part = 0; part < WHIT_STATE_PARTS; part++) {
            if (has_delta && (part == WHIT_STATE_DELTA) != (step->plan->op == WHIT_PLAN_DELTA)) continue;
            uint32_t *committed = whit_state_committed(state, rows.sequence, layer, part);
            if (*committed < target) *committed = target;
        }
        r = rows.end;
    }
}

void whit_exec_bind_state(const whit_plan *plan, whit_exec_step *step)
{
    const uint32_t n_heads = step->plan->n_heads;
    if (step->plan->op == WHIT_PLAN_CONV)
        whit_split_channels(plan->ranks, plan, step->plan, step->channels);
    else
        step->columns = step->plan->is_split ? whit_split_units(plan->ranks, n_heads) : (whit_columns){0, n_heads};
}

void whit_exec_run_state_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    const whit_exec_step *step = phase->steps;
    whit_exec_phase_run run = {.exec = exec, .phase = phase, .n_rows = n_rows};
    uint32_t n_items = step->columns.end - step->columns.begin; /* number of heads */
    for (int i = 0; step->plan->op == WHIT_PLAN_CONV && i < WHIT_SPLIT_RANGES; i++)
        n_items += count_runs(step->channels[i]);
    whit_pool_run(exec->pool, whit_exec_run_rows, &run, n_items, 1);
    commit_positions(exec, step);
}
