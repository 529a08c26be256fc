/* SPDX-License-Identifier: MIT
 * Computes mixtures of experts in a pass: chooses experts, groups rows by expert, and multiplies by the matrices of the
 * chosen experts.
 *
 * A token's choice depends only on its own row, a product's row only on its own activations, and a sum over a token's
 * experts runs in the order in which the route lists them. Therefore other rows, batch splits and threads change no
 * bit. Experts that no token chooses are not read. */
#include "model/exec_step.h"

#include "kernels/math.h"
#include "model/residency.h"

#include <string.h>

#define INPUT(i, r) whit_exec_row_of(step, exec, step->input[i], step->input_stride[i], r)
#define OUTPUT(r)   whit_exec_row_of(step, exec, step->output, step->output_stride, r)

void whit_exec_place_pairs(whit_exec *exec, uint32_t n_batch_rows, whit_arena *arena)
{
    const whit_plan *plan = exec->plan;
    if (!plan->n_experts) return;
    const uint64_t n_rows = (uint64_t)n_batch_rows * plan->n_used;
    exec->pairs = (whit_exec_pairs){.n_experts = plan->n_experts,
                                    .n_used = plan->n_used,
                                    .first = whit_arena_take(arena, (uint64_t)plan->n_experts + 1, sizeof(uint32_t)),
                                    .active = whit_arena_take(arena, plan->n_experts, sizeof(uint32_t)),
                                    .token_of = whit_arena_take(arena, n_rows, sizeof(uint32_t)),
                                    .expert_of = whit_arena_take(arena, n_rows, sizeof(int32_t)),
                                    .row_of = whit_arena_take(arena, n_rows, sizeof(uint32_t))};
}

/* ---- choice of experts ----------------------------------------------------------------------- */

/* Chooses experts. An output row has the indices of the chosen experts, as floats, which represent them exactly, and
 * then their weights. */
void whit_exec_route(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_plan_step *plan = step->plan;
    float *scores = (float *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    uint32_t *experts = (uint32_t *)(void *)(scores + plan->n_experts);
    const whit_router router = {.n_experts = plan->n_experts,
                                .n_used = plan->n_used,
                                .is_sigmoid = plan->route & WHIT_ROUTE_SIGMOID,
                                .is_normalised = plan->route & WHIT_ROUTE_NORM,
                                .added = plan->added,
                                .factor = plan->constant,
                                .choice = step->vector,
                                .scales = step->second};
    for (uint32_t r = begin; r < end; r++) {
        float *out = OUTPUT(r);
        whit_route_token(&router, INPUT(0, r), scores, experts, out + plan->n_used);
        for (uint32_t i = 0; i < plan->n_used; i++) out[i] = (float)experts[i];
    }
}

/* ---- (token, expert) pairs ------------------------------------------------------------------- */

/* Groups the (token, expert) pairs of the pass by expert: a counting sort, stable over tokens. */
static void group_pairs(whit_exec *exec, const whit_exec_step *step)
{
    whit_exec_pairs *p = &exec->pairs;
    const uint32_t n_tokens = exec->n_rows[WHIT_ROWS_BATCH];
    memset(p->first, 0, (p->n_experts + 1) * sizeof *p->first);
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t i = 0; i < p->n_used; i++) p->first[(uint32_t)INPUT(1, t)[i] + 1]++;
    p->n_active = 0;
    for (uint32_t e = 0; e < p->n_experts; e++) {
        if (p->first[e + 1]) p->active[p->n_active++] = e;
        p->first[e + 1] += p->first[e];
    }
    p->n_read += p->n_active;
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t i = 0; i < p->n_used; i++) {
            const uint32_t e = (uint32_t)INPUT(1, t)[i], row = p->first[e]++;
            p->row_of[(size_t)t * p->n_used + i] = row;
            p->token_of[row] = t;
            p->expert_of[row] = (int32_t)e;
        }
    /* Each entry has been advanced to the beginning of the next expert's rows: shift all entries by one. */
    memmove(p->first + 1, p->first, p->n_experts * sizeof *p->first);
    p->first[0] = 0;
}

void whit_exec_copy_pairs(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                          uint32_t end)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        memcpy(OUTPUT(r), INPUT(0, exec->pairs.token_of[r]), step->width * sizeof(float));
}

void whit_exec_run_pairs_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    group_pairs(exec, phase->steps);
    if (exec->residency)
        whit_residency_want(exec->residency, phase->steps->plan->layer, exec->pairs.active, exec->pairs.n_active);
    whit_exec_run_rows_phase(exec, phase, n_rows);
}

/* ---- matrices of experts --------------------------------------------------------------------- */

/* Returns the matrix of one expert in a stacked matrix: n_rows consecutive rows, which are whole tiles. */
static whit_tensor matrix_of(const whit_tensor *stacked, uint32_t expert, uint32_t n_rows)
{
    whit_tensor matrix = *stacked;
    matrix.type.n_rows = n_rows;
    for (int part = 0; part < WHIT_PART_COUNT; part++) {
        if (!stacked->part[part] || !whit_codec_part_bytes(&matrix.type, (whit_part)part, &matrix.part_bytes[part]))
            continue;
        matrix.part[part] += expert * matrix.part_bytes[part];
    }
    return matrix;
}

void whit_exec_multiply_expert(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                               uint32_t begin, uint32_t end)
{
    const uint32_t expert = (uint32_t)exec->pairs.expert_of[rows.begin];
    const whit_tensor matrix = matrix_of(step->tensor, expert, step->width);
    const whit_matmul_kernel *kernel = whit_exec_bucket(step->choice->kernels, rows.n);
    const whit_acts all = whit_exec_acts(step, exec);
    uint32_t n_together = kernel->slice_tokens ? kernel->slice_tokens(&matrix.type, rows.n) : rows.n;
    if (!n_together) n_together = rows.n;
    for (uint32_t r = 0, n; r < rows.n; r += n) {
        n = rows.n - r < n_together ? rows.n - r : n_together;
        const whit_acts acts = whit_acts_rows(&all, rows.begin + r, n);
        kernel->run(&matrix, &acts, begin, end, OUTPUT(rows.begin + r), step->output_stride,
                    whit_exec_scratch(exec, kernel, &acts, worker));
    }
    for (uint32_t r = rows.begin; step->output_scale != 0 && r < rows.begin + rows.n; r++)
        exec->kernels->fix_scale(OUTPUT(r) + begin * WHIT_TILE_ROWS, step->output_scale,
                                 (end - begin) * WHIT_TILE_ROWS);
}

/* Runs items [begin, end) of products; items are (expert, tile) pairs, numbered expert by expert, with tiles of all
 * matrices of the phase. */
static void run_experts(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_exec_phase_run *run = context;
    const uint32_t n_tiles = run->phase->n_tiles;
    for (uint32_t stop; begin < end; begin = stop) {
        const uint32_t place = begin / n_tiles, from = place * n_tiles, expert = run->exec->pairs.active[place];
        const uint32_t *first = run->exec->pairs.first + expert;
        const whit_exec_rows rows = {first[0], first[1] - first[0]};
        stop = from + n_tiles < end ? from + n_tiles : end;
        uint32_t a = begin - from, b = stop - from;
        for (uint32_t i = 0; i < run->phase->n_steps && a < b; i++) {
            const whit_exec_step *step = &run->phase->steps[i];
            const uint32_t n = step->n_tiles;
            const uint32_t last = b < n ? b : n;
            if (a < last) step->run_tiles(step, run->exec, worker, rows, step->tile_begin + a, step->tile_begin + last);
            a = a > n ? a - n : 0;
            b = b > n ? b - n : 0;
        }
    }
}

void whit_exec_run_experts_phase(whit_exec *exec, const whit_exec_phase *phase, uint32_t n_rows)
{
    whit_exec_phase_run run = {.exec = exec, .phase = phase, .n_rows = n_rows, .n_slices = 1};
    const uint32_t n_active = exec->pairs.n_active, n_items = phase->n_tiles * n_active;
    whit_pool_run(exec->pool, run_experts, &run, n_items,
                  whit_exec_chunk_tiles(n_items, whit_pool_size(exec->pool), n_rows / n_active));
}

/* Adds the bias of its expert to each row: a row of the matrix (experts, width), or this rank's columns of that row. */
void whit_exec_add_expert_bias(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                               uint32_t end)
{
    float *bias = (float *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    for (uint32_t r = begin; r < end; r++) {
        float *out = OUTPUT(r);
        const float *x = INPUT(0, r);
        if (out != x) memcpy(out, x, step->width * sizeof *out);
        whit_codec_get_rows(step->tensor, &exec->pairs.expert_of[r], 1, bias, step->tensor->type.n_cols);
        exec->kernels->add(out, bias + step->columns.begin, step->width);
    }
}

/* ---- sums over experts ----------------------------------------------------------------------- */

void whit_exec_combine(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)
{
    const uint32_t n_used = exec->pairs.n_used;
    (void)worker;
    for (uint32_t t = begin; t < end; t++) {
        const float *weights = INPUT(1, t) + n_used;
        const uint32_t *rows = exec->pairs.row_of + (size_t)t * n_used;
        float *out = OUTPUT(t);
        memcpy(out, INPUT(0, rows[0]), step->width * sizeof *out);
        exec->kernels->scale(out, weights[0], step->width);
        for (uint32_t i = 1; i < n_used; i++)
            exec->kernels->weighted_add(out, INPUT(0, rows[i]), weights[i], step->width);
    }
}
