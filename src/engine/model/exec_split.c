/* SPDX-License-Identifier: MIT
 * Executes a plan that is split over ranks: narrows steps to a rank's columns, and exchanges values.
 *
 * Slots have the same shape as in one process, and matrices are those of the whole file. A rank reads and writes only
 * its own columns and tiles, until a gather fills in the others. */
#include "model/exec_step.h"

#include <string.h>

/* ---- narrowing ------------------------------------------------------------------------------- */

static void narrow_product(const whit_exec *exec, whit_exec_step *step)
{
    const whit_plan_step *plan = step->plan;
    step->columns =
        plan->own.end ? plan->own : whit_split_columns(exec->plan->ranks, &exec->plan->values[plan->output - 1]);
    step->tile_begin = step->columns.begin / WHIT_TILE_ROWS;
    step->n_tiles = (step->columns.end + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS - step->tile_begin;
}

/* Advances a pointer to f32 rows to column `column`; leaves NULL (memory is only counted) unchanged. */
static void move_rows(uint8_t **rows, size_t column)
{
    if (*rows) *rows += column * sizeof(float);
}

/* Advances the row pointers and the sinks of an attention step to this rank's heads, because this rank's KV classes
 * contain only these. */
static void narrow_attention(const whit_exec *exec, whit_exec_step *step)
{
    const uint32_t first = whit_split_units(exec->plan->ranks, step->plan->n_key_heads).begin;
    const size_t key = (size_t)first * step->head_dim, query = key * step->cache->heads_per_kv_head;
    move_rows(&step->input[0], step->plan->op == WHIT_PLAN_APPEND ? key : query);
    if (step->plan->op == WHIT_PLAN_APPEND) move_rows(&step->input[1], key);
    move_rows(&step->output, query);
    if (step->vector) step->vector += first * step->cache->heads_per_kv_head; /* logits of the attention sinks */
}

void whit_exec_narrow(const whit_exec *exec, whit_exec_step *step)
{
    switch (step->plan->op) {
    case WHIT_PLAN_LINEAR:
    case WHIT_PLAN_SCREEN:
    case WHIT_PLAN_LINEAR_GATED:
    case WHIT_PLAN_EXPERT_LINEAR: narrow_product(exec, step); return;
    case WHIT_PLAN_APPEND:
    case WHIT_PLAN_ATTEND:
    case WHIT_PLAN_ROPE_ATTEND:
        if (exec->caches) narrow_attention(exec, step);
        return;
    case WHIT_PLAN_CONV:
    case WHIT_PLAN_DELTA: return; /* already narrowed by whit_exec_bind_state */
    case WHIT_PLAN_RESCORE:
        step->columns = whit_split_columns(exec->plan->ranks, &exec->plan->values[step->plan->input[0] - 1]);
        return;
    default: break;
    }
    step->columns = whit_split_columns(exec->plan->ranks, &exec->plan->values[step->plan->output - 1]);
    if (step->plan->op == WHIT_PLAN_ACTS) {
        step->run = whit_exec_split_acts;
        return;
    }
    const int n_moved = whit_split_reads_row(step->plan) ? 1 : 3;
    for (int j = 0; j < n_moved; j++) move_rows(&step->input[j], step->columns.begin);
    move_rows(&step->output, step->columns.begin);
    step->width = step->columns.end - step->columns.begin;
    if (step->plan->op == WHIT_PLAN_BIAS) step->vector += step->columns.begin;
}

void whit_exec_split_acts(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                          uint32_t end)
{
    const whit_acts all = whit_acts_place(&step->acts, exec->n_rows[step->rows], step->width, step->output);
    const whit_columns own = step->columns;
    const uint32_t first = own.begin / step->acts.step;
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        const float *x = whit_exec_row_of(step, exec, step->input[0], step->input_stride[0], r);
        whit_acts part = whit_acts_rows(&all, r, 1);
        part.n_cols = own.end - own.begin;
        part.n_steps = whit_acts_steps(&step->acts, part.n_cols);
        part.i8 += own.begin;
        part.scales += first;
        part.sums += first;
        /* The quantiser writes padding up to the stride; only the last rank's part has padding. */
        part.stride = own.end == step->width ? all.stride - own.begin : part.n_cols;
        exec->kernels->quantise(x + own.begin, 0, &part, 0, 1);
        if (own.end != step->width) memset(all.i8 + r * all.stride + step->width, 0, all.stride - step->width);
    }
}

/* ---- exchange -------------------------------------------------------------------------------- */

void whit_exec_place_gathers(whit_exec *exec, uint32_t n_batch_rows, whit_arena *arena)
{
    const whit_plan *plan = exec->plan;
    size_t row_bytes = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].op != WHIT_PLAN_GATHER) continue;
        const whit_plan_value *value = &plan->values[plan->steps[i].input[0] - 1];
        size_t bytes = 0;
        for (uint32_t r = 0; r < plan->ranks->n_ranks; r++)
            bytes += whit_split_row_bytes(value, whit_split_share(plan->ranks, r, value));
        if (value->rows == WHIT_ROWS_EXPERT) bytes *= plan->n_used;
        if (bytes > row_bytes) row_bytes = bytes;
    }
    exec->gathered = whit_arena_take(arena, n_batch_rows, row_bytes);
}

/* Copies a rank's share of all rows of a value from its slot to the exchange's buffer (is_read), or back. */
static void copy_share(const whit_exec_step *step, const whit_exec *exec, const whit_plan_value *value,
                       whit_columns share, uint32_t n_rows, uint8_t *buffer, bool is_read)
{
    const size_t n = share.end - share.begin;
    whit_acts acts = {.stride = 0};
    if (value->acts.kind != WHIT_ACTS_F32) acts = whit_acts_place(&value->acts, n_rows, value->width, step->input[0]);
    for (uint32_t r = 0; r < n_rows && n; r++) {
        struct {
            void *memory;
            size_t size_bytes;
        } pieces[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
        if (value->acts.kind == WHIT_ACTS_F32) {
            pieces[0].memory = whit_exec_row_of(step, exec, step->input[0], step->input_stride[0], r) + share.begin;
            pieces[0].size_bytes = n * sizeof(float);
        } else {
            const size_t first = (size_t)r * acts.n_steps + share.begin / value->acts.step;
            const size_t n_steps = (n + value->acts.step - 1) / value->acts.step;
            pieces[0].memory = acts.i8 + r * acts.stride + share.begin;
            pieces[0].size_bytes = n;
            pieces[1].memory = acts.scales + first;
            pieces[2].memory = acts.sums + first;
            pieces[1].size_bytes = pieces[2].size_bytes = n_steps * 4;
        }
        for (int p = 0; p < 3 && pieces[p].size_bytes; buffer += pieces[p++].size_bytes) {
            if (is_read)
                memcpy(buffer, pieces[p].memory, pieces[p].size_bytes);
            else
                memcpy(pieces[p].memory, buffer, pieces[p].size_bytes);
        }
    }
}

/* Sends this rank's piece of exec->gathered to the other ranks and receives theirs. to_first: rank 0 only receives, and
 * the other ranks only send. Returns false if a rank cannot be reached. */
static bool exchange_pieces(whit_exec *exec, const size_t *offsets, bool to_first)
{
    const whit_ranks *ranks = exec->plan->ranks;
    const uint32_t n = ranks->n_ranks, own = ranks->rank;
    const size_t own_bytes = offsets[own + 1] - offsets[own];
    const bool sends = own_bytes && (!to_first || own), receives = !to_first || !own;
    exec->traffic.n_gathers++;
    if (sends) {
        const uint32_t n_receivers = to_first ? 1 : n - 1;
        exec->traffic.n_messages += n_receivers;
        exec->traffic.sent_bytes += own_bytes * n_receivers;
    }
    exec->traffic.received_bytes += receives ? offsets[n] - own_bytes : 0;
    return ranks->gather(ranks->user, exec->gathered, offsets, to_first);
}

void whit_exec_run_gather_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    const whit_exec_step *step = phase->steps;
    const whit_ranks *ranks = exec->plan->ranks;
    const whit_plan_value *value = &exec->plan->values[step->plan->input[0] - 1];
    const uint32_t own = ranks->rank;
    size_t offsets[WHIT_RANKS_MAX + 1] = {0};
    for (uint32_t r = 0; r < ranks->n_ranks; r++)
        offsets[r + 1] = offsets[r] + n_rows * whit_split_row_bytes(value, whit_split_share(ranks, r, value));
    copy_share(step, exec, value, whit_split_share(ranks, own, value), n_rows, exec->gathered + offsets[own], true);
    if (!exchange_pieces(exec, offsets, step->plan->to_first)) {
        exec->is_lost = true;
        return;
    }
    if (step->plan->to_first && own) return;
    for (uint32_t r = 0; r < ranks->n_ranks; r++)
        if (r != own)
            copy_share(step, exec, value, whit_split_share(ranks, r, value), n_rows, exec->gathered + offsets[r],
                       false);
}
