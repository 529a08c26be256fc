/* SPDX-License-Identifier: MIT
 * The steps: each runs some items of one operation with the kernels it was bound to. */
#include "model/exec.h"

#include <string.h>

/* Row r of an f32 operand. Selected rows of a step's earlier passes lie in front of this pass's. */
static float *row_of(const whit_exec_step *step, const whit_exec *exec, uint8_t *slot, size_t stride, uint32_t r)
{
    size_t base = step->selected ? exec->batch->selected_begin : 0;
    return (float *)(void *)slot + (base + r) * stride;
}
#define INPUT(i, r) row_of(step, exec, step->input[i], step->input_stride[i], r)
#define OUTPUT(r)   row_of(step, exec, step->output, step->output_stride, r)

#define ROW_STEP(name)                                                                                                 \
    static void name(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)

ROW_STEP(run_embed)
{
    (void)worker;
    whit_codec_get_rows(step->tensor, exec->batch->ids + begin, end - begin, OUTPUT(begin), step->output_stride);
}

ROW_STEP(run_norm)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        for (uint32_t i = 0; i < step->width; i += step->group)
            exec->kernels->rms_norm(INPUT(0, r) + i, step->vector, step->group, step->constant, OUTPUT(r) + i);
}

ROW_STEP(run_acts)
{
    (void)worker;
    uint32_t n_rows = step->selected ? exec->batch->n_selected : exec->batch->n_rows;
    whit_acts acts = whit_acts_place(&step->acts, n_rows, step->width, step->output);
    exec->kernels->quantize(INPUT(0, 0), step->input_stride[0], &acts, begin, end);
}

static void copy_row(const whit_exec_step *step, const float *from, float *to)
{
    if (from != to) memcpy(to, from, step->width * sizeof *to);
}

ROW_STEP(run_bias)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        copy_row(step, INPUT(0, r), OUTPUT(r));
        exec->kernels->add(OUTPUT(r), step->vector, step->width);
    }
}

ROW_STEP(run_rope)
{
    (void)worker;
    if (whit_exec_turns(step, exec)) return;
    for (uint32_t r = begin; r < end; r++) {
        const float *table = exec->rope_tables + (size_t)r * 2 * exec->rope_pairs;
        exec->kernels->rope_half(INPUT(0, r), step->width / step->group, step->group, step->rotary / 2, table,
                                 OUTPUT(r));
    }
}

/* A key is scattered over many lines of its block, all of them out of cache: asked for together they
 * come in a tenth of the time that storing to one after the other takes. */
static void prefetch_keys(const whit_exec *exec, const void *block, uint32_t slot, uint32_t n, uint32_t head_dim)
{
    whit_kv_type type = exec->kv->shape.type;
    const uint8_t *keys = whit_kv_block_arrays(type, head_dim, block).keys;
    uint32_t dims_together = type == WHIT_KV_I8 ? 4 : 1;
    size_t elem_bytes = whit_kv_elem_bytes(type) * dims_together;
    for (uint32_t d = 0; d < head_dim; d += dims_together, keys += WHIT_KV_BLOCK_TOKENS * elem_bytes)
        for (size_t at = slot * elem_bytes / 64 * 64; at < (slot + n) * elem_bytes; at += 64)
            __builtin_prefetch(keys + at, 1);
}

/* Rows from r on, before `end`, whose positions follow each other in one block of their sequence. */
static uint32_t rows_together(const whit_batch *batch, uint32_t r, uint32_t end)
{
    uint32_t position = batch->positions[r], rest = WHIT_KV_BLOCK_TOKENS - position % WHIT_KV_BLOCK_TOKENS, n = 1;
    while (n < rest && r + n < end && batch->sequences[r + n] == batch->sequences[r] &&
           batch->positions[r + n] == position + n)
        n++;
    return n;
}

ROW_STEP(run_append)
{
    (void)worker;
    for (uint32_t r = begin, n; r < end; r += n) {
        uint32_t position = exec->batch->positions[r], sequence = exec->batch->sequences[r];
        uint32_t block = position / WHIT_KV_BLOCK_TOKENS, slot = position % WHIT_KV_BLOCK_TOKENS;
        const float *k = INPUT(0, r), *v = INPUT(1, r);
        n = rows_together(exec->batch, r, end);
        for (uint32_t head = 0; head < exec->n_kv_heads; head++)
            prefetch_keys(exec, whit_kv_head_block(exec->kv, step->layer, head, sequence, block), slot, n, step->group);
        for (uint32_t head = 0; head < exec->n_kv_heads; head++)
            exec->kv_append(whit_kv_head_block(exec->kv, step->layer, head, sequence, block), slot, n, step->group,
                            k + (size_t)head * step->group, v + (size_t)head * step->group, step->input_stride[0]);
    }
}

ROW_STEP(run_gate)
{
    (void)worker;
    bool is_done = whit_exec_gates(step, exec);
    for (uint32_t r = begin; r < end; r++)
        if (is_done)
            copy_row(step, INPUT(0, r), OUTPUT(r));
        else
            step->gate(INPUT(0, r), INPUT(1, r), step->width, OUTPUT(r));
}

ROW_STEP(run_add)
{
    (void)worker;
    if (whit_exec_adds(step, exec)) return;
    for (uint32_t r = begin; r < end; r++) {
        copy_row(step, INPUT(0, r), OUTPUT(r));
        exec->kernels->add(OUTPUT(r), INPUT(1, r), step->width);
    }
}

ROW_STEP(run_scale)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        copy_row(step, INPUT(0, r), OUTPUT(r));
        exec->kernels->scale(OUTPUT(r), step->constant, step->width);
    }
}

ROW_STEP(run_select)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        const float *from =
            (const float *)(const void *)step->input[0] + exec->batch->selected[r] * step->input_stride[0];
        memcpy(OUTPUT(r), from, step->width * sizeof *from);
    }
}

/* The head in a pass that wants the largest logits only: estimates from the high nibbles. */
static void run_screen(const whit_exec_step *step, const whit_exec *exec, uint32_t begin, uint32_t end)
{
    whit_acts acts = whit_acts_place(&step->acts, exec->batch->n_selected, step->n_cols, step->input[0]);
    exec->kernels->screen(step->tensor, &acts, begin, end, OUTPUT(0), step->output_stride);
}

ROW_STEP(run_rescore)
{
    if (!exec->screens) return;
    uint32_t *rows = (uint32_t *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    whit_acts acts = whit_acts_place(&step->acts, exec->batch->n_selected, step->n_cols, step->input[1]);
    for (uint32_t r = begin; r < end; r++)
        exec->n_rescored[exec->batch->selected_begin + r] =
            whit_screen_finish(exec->kernels, step->tensor, &acts, r, exec->batch->tops[r], INPUT(0, r), rows);
}

whit_acts whit_exec_acts(const whit_exec_step *step, const whit_exec *exec)
{
    uint32_t n_rows = step->selected ? exec->batch->n_selected : exec->batch->n_rows;
    if (step->acts.kind == WHIT_ACTS_F32)
        return whit_acts_of_f32(INPUT(0, 0), step->input_stride[0], n_rows, step->n_cols);
    return whit_acts_place(&step->acts, n_rows, step->n_cols, step->input[0]);
}

void whit_exec_run_linear(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                          uint32_t begin, uint32_t end)
{
    if (step->is_screened && exec->screens) {
        run_screen(step, exec, begin, end);
        return;
    }
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    bool is_adapted = exec->adapt.n_spans && !step->selected;
    if (is_adapted) whit_exec_fetch_low(step, exec, begin, end);
    const whit_matmul_kernel *kernel = whit_exec_kernel(step, all.n_tokens);
    bool adds = whit_exec_adds(step, exec);
    float *y = (adds ? (float *)(void *)step->added->output : OUTPUT(0)) + rows.begin * step->output_stride;
    (adds ? kernel->run_added : kernel->run)(step->tensor, &acts, begin, end, y, step->output_stride,
                                             whit_exec_scratch(exec, kernel, &acts, worker));
    if (is_adapted) whit_exec_add_low(step, exec, begin, end);
}

/* ---- steps together -------------------------------------------------------------------------- */

/* [Add or gate,] norm and activations. A row that nobody wants later lives in the scratch. */
ROW_STEP(run_norm_acts)
{
    const whit_exec_step *norm = step + step->n_together - 2, *quantize = norm + 1;
    float *scratch = (float *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    uint32_t n_rows = step->selected ? exec->batch->n_selected : exec->batch->n_rows;
    whit_acts acts = whit_acts_place(&quantize->acts, n_rows, quantize->width, quantize->output);
    whit_row_source source = whit_exec_gates(step, exec) || whit_exec_adds(step, exec) ? WHIT_ROW_GIVEN : step->source;
    whit_norm_rows rows = {.source = source,
                           .a = INPUT(0, 0),
                           .a_stride = step->input_stride[0],
                           .weight = norm->vector,
                           .eps = norm->constant,
                           .normed = scratch};
    rows.b = source == WHIT_ROW_GIVEN ? rows.a : INPUT(1, 0);
    rows.b_stride = source == WHIT_ROW_GIVEN ? rows.a_stride : step->input_stride[1];
    rows.x = source == WHIT_ROW_SUM ? OUTPUT(0) : scratch;
    rows.x_stride = source == WHIT_ROW_SUM ? step->output_stride : 0;
    exec->kernels->norm_acts(&rows, &acts, begin, end);
}

bool whit_exec_is_read_once(const whit_plan *plan, uint32_t value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        for (int j = 0; j < 3; j++) n += plan->steps[i].input[j] == value;
    return n == 1 && !plan->values[value - 1].kept;
}

void whit_exec_join_steps(const whit_plan *plan, const whit_plan_group *group, uint32_t i, whit_exec_step *steps)
{
    if (i < group->first + 1) return;
    const whit_plan_step *acts = &plan->steps[i], *norm = acts - 1;
    if (acts->op != WHIT_PLAN_ACTS || norm->op != WHIT_PLAN_NORM || norm->output != acts->input[0] ||
        !whit_exec_is_read_once(plan, norm->output) || steps[i].acts.kind != WHIT_ACTS_I8 ||
        norm->group != steps[i].width)
        return;
    whit_exec_step *first = &steps[i - 1];
    const whit_plan_step *source = i < group->first + 2 ? NULL : norm - 1;
    if (source && source->output == norm->input[0]) {
        if (source->op == WHIT_PLAN_ADD) {
            first--;
            first->source = WHIT_ROW_SUM;
        } else if (source->op == WHIT_PLAN_GATE && whit_exec_is_read_once(plan, source->output)) {
            first--;
            first->source = source->gate == WHIT_GATE_RELU2 ? WHIT_ROW_RELU2 : WHIT_ROW_SILU;
        }
    }
    first->n_together = (uint32_t)(&steps[i] - first) + 1;
    first->run = run_norm_acts;
}

/* ---- binding -------------------------------------------------------------------------------- */

void whit_exec_bind_step(whit_exec_step *step, const whit_plan_step *from, const whit_kernels *kernels)
{
    static void (*const runs[WHIT_PLAN_OP_COUNT])(const whit_exec_step *, const whit_exec *, uint32_t, uint32_t,
                                                  uint32_t) = {
        [WHIT_PLAN_EMBED] = run_embed,         [WHIT_PLAN_NORM] = run_norm,     [WHIT_PLAN_ACTS] = run_acts,
        [WHIT_PLAN_BIAS] = run_bias,           [WHIT_PLAN_ROPE] = run_rope,     [WHIT_PLAN_APPEND] = run_append,
        [WHIT_PLAN_ATTEND] = whit_exec_attend, [WHIT_PLAN_GATE] = run_gate,     [WHIT_PLAN_ADD] = run_add,
        [WHIT_PLAN_SCALE] = run_scale,         [WHIT_PLAN_SELECT] = run_select, [WHIT_PLAN_RESCORE] = run_rescore,
    };
    step->run = runs[from->op];
    if (from->op == WHIT_PLAN_GATE) step->gate = from->gate == WHIT_GATE_RELU2 ? kernels->relu2_mul : kernels->silu_mul;
}
