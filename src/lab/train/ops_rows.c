/* SPDX-License-Identifier: MIT
 * Implements operations on rows: embedding, norms, RoPE, gates, clamps, sigmoid factors and sums. */
#include "train/ops.h"

#include "kernels/delta.h"

#include <string.h>

struct row_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    void (*run)(const whit_tape *tape, const whit_tape_step *step, uint32_t chunk, uint32_t begin, uint32_t end);
};

static void run_chunks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct row_job *job = context;
    const uint32_t n_rows = whit_tape_rows(job->tape, job->step->node->output);
    for (uint32_t chunk = begin; chunk < end; chunk++) {
        const uint32_t first = chunk * WHIT_TAPE_ROW_CHUNK, rest = n_rows - first;
        job->run(job->tape, job->step, chunk, first, first + (rest < WHIT_TAPE_ROW_CHUNK ? rest : WHIT_TAPE_ROW_CHUNK));
    }
}

#define ROWS(name)                                                                                                     \
    static void name##_rows(const whit_tape *tape, const whit_tape_step *step, uint32_t chunk, uint32_t begin,         \
                            uint32_t end)
#define RUN(name)                                                                                                      \
    do {                                                                                                               \
        struct row_job job = {tape, step, name##_rows};                                                                \
        whit_pool_run(tape->pool, run_chunks, &job, whit_tape_chunks_of(whit_tape_rows(tape, step->node->output)), 1); \
    } while (0)

/* Defines, for rows [begin, end) of the output: their width, the offset `at` of their first float, and their number n
 * of floats. */
#define SPAN                                                                                                           \
    size_t width = whit_step_width(tape, step->node->output), at = begin * width;                                      \
    size_t n = (end - begin) * width;                                                                                  \
    (void)chunk

/* ---- embedding ------------------------------------------------------------------------------ */

ROWS(embed)
{
    SPAN;
    (void)n;
    const float *table = tape->params->items[step->node->weight].value;
    for (uint32_t r = begin; r < end; r++, at += width)
        memcpy(whit_step_output(tape, step) + at, table + (size_t)tape->ids[r] * width, width * sizeof *table);
}

void whit_op_embed(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(embed);
}

/* Runs on one thread, because several rows may have the same id and thus add to the same row of the table. */
void whit_op_embed_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    float *table = whit_param_gradient(tape->params, &tape->params->items[step->node->weight]);
    if (!table) return; /* the table is frozen */
    size_t width = whit_step_width(tape, step->node->output);
    const float *dy = whit_step_doutput(tape, step);
    for (uint32_t r = 0; r < tape->n_rows; r++)
        tape->loops->add(table + (size_t)tape->ids[r] * width, dy + r * width, width);
}

/* ---- norm ----------------------------------------------------------------------------------- */

ROWS(norm)
{
    SPAN;
    size_t group = step->node->head_dim;
    const float *weight = tape->params->items[step->node->weight].value, *x = whit_step_input(tape, step, 0);
    for (size_t i = at; i < at + n; i += group)
        tape->loops->norm(x + i, weight, step->node->constant, whit_step_output(tape, step) + i, group);
}

ROWS(norm_gradient)
{
    SPAN;
    size_t group = step->node->head_dim;
    const float *weight = tape->params->items[step->node->weight].value, *x = whit_step_input(tape, step, 0);
    const float *dy = whit_step_doutput(tape, step);
    float *partial = tape->partials + chunk * tape->partial_elems;
    memset(partial, 0, group * sizeof *partial);
    for (size_t i = at; i < at + n; i += group)
        tape->loops->norm_gradient(x + i, weight, step->node->constant, dy + i, step->overwrites[0],
                                   whit_step_dinput(tape, step, 0) + i, partial, group);
}

void whit_op_norm(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(norm);
}

void whit_op_norm_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(norm_gradient);
    float *dweight = whit_param_gradient(tape->params, &tape->params->items[step->node->weight]);
    if (!dweight) return;
    for (uint32_t chunk = 0; chunk < whit_tape_chunks(tape); chunk++)
        tape->loops->add(dweight, tape->partials + chunk * tape->partial_elems, step->node->head_dim);
}

/* ---- RoPE ----------------------------------------------------------------------------------- */

static void turn_rows(const whit_tape *tape, const whit_node *node, const float *x, float turn, bool overwrites,
                      float *y, uint32_t begin, uint32_t end)
{
    size_t width = whit_step_width(tape, node->output), pairs = node->rotary / 2;
    for (uint32_t r = begin; r < end; r++) {
        const float *table = tape->rope[node->rope] + (r % tape->options.n_tokens) * 2 * pairs;
        for (size_t i = r * width; i < (r + 1) * width; i += node->head_dim)
            tape->loops->rope(x + i, table, turn, overwrites, y + i, pairs, node->head_dim);
    }
}

ROWS(rope)
{
    (void)chunk;
    turn_rows(tape, step->node, whit_step_input(tape, step, 0), 1, true, whit_step_output(tape, step), begin, end);
}

ROWS(rope_gradient)
{
    (void)chunk;
    turn_rows(tape, step->node, whit_step_doutput(tape, step), -1, step->overwrites[0], whit_step_dinput(tape, step, 0),
              begin, end);
}

void whit_op_rope(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(rope);
}

void whit_op_rope_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(rope_gradient);
}

/* ---- gates ---------------------------------------------------------------------------------- */

/* Returns f(x), and its derivative in *slope, for the gates that have no loop of their own. A gate computes y = f(gate)
 * (up + shift). */
static float gate_value(whit_gate gate, float x, float *slope)
{
    if (gate == WHIT_GATE_PRODUCT) {
        *slope = 1;
        return x;
    }
    if (gate == WHIT_GATE_GELU) { /* 0.5 x (1 + tanh(c (x + 0.044715 x^3))), c = sqrt(2 / pi) */
        const float c = 0.7978845608f, t = whit_tanh_f32(c * (x + 0.044715f * x * x * x));
        *slope = 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * c * (1 + 3 * 0.044715f * x * x);
        return 0.5f * x * (1 + t);
    }
    const float steepness = gate == WHIT_GATE_SWISH1 ? 1.702f : 1, s = 1.0f / (1.0f + whit_exp_f32(-steepness * x));
    if (gate == WHIT_GATE_SIGMOID) {
        *slope = s * (1 - s);
        return s;
    }
    *slope = s * (1 + steepness * x * (1 - s));
    return x * s;
}

ROWS(gate)
{
    SPAN;
    const whit_gate kind = (whit_gate)step->node->gate;
    const float *gate = whit_step_input(tape, step, 0) + at, *up = whit_step_input(tape, step, 1) + at;
    float *y = whit_step_output(tape, step) + at, slope;
    if (kind == WHIT_GATE_RELU2)
        tape->loops->relu2(gate, up, y, n);
    else if (kind == WHIT_GATE_SILU)
        tape->loops->silu(gate, up, y, n);
    else
        for (size_t i = 0; i < n; i++)
            y[i] = gate_value(kind, gate[i], &slope) * (up[i] + (kind == WHIT_GATE_SWISH1 ? 1 : 0));
}

ROWS(gate_gradient)
{
    SPAN;
    const whit_gate kind = (whit_gate)step->node->gate;
    const float *gate = whit_step_input(tape, step, 0) + at, *up = whit_step_input(tape, step, 1) + at;
    const float *dy = whit_step_doutput(tape, step) + at;
    float *dgate = whit_step_dinput(tape, step, 0) + at, *dup = whit_step_dinput(tape, step, 1) + at, slope;
    if (kind == WHIT_GATE_RELU2)
        tape->loops->relu2_gradient(gate, up, dy, dgate, step->overwrites[0], dup, step->overwrites[1], n);
    else if (kind == WHIT_GATE_SILU)
        tape->loops->silu_gradient(gate, up, dy, dgate, step->overwrites[0], dup, step->overwrites[1], n);
    else
        for (size_t i = 0; i < n; i++) {
            const float value = gate_value(kind, gate[i], &slope);
            const float d = dy[i] * slope * (up[i] + (kind == WHIT_GATE_SWISH1 ? 1 : 0));
            dgate[i] = step->overwrites[0] ? d : dgate[i] + d;
            dup[i] = step->overwrites[1] ? dy[i] * value : dup[i] + dy[i] * value;
        }
}

void whit_op_gate(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(gate);
}

void whit_op_gate_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(gate_gradient);
}

/* ---- clamps --------------------------------------------------------------------------------- */

static bool is_within(const whit_node *node, float x)
{
    return x <= node->constant && (node->only_above || x >= -node->constant);
}

ROWS(clamp)
{
    SPAN;
    const float *x = whit_step_input(tape, step, 0) + at, limit = step->node->constant;
    float *y = whit_step_output(tape, step) + at;
    for (size_t i = 0; i < n; i++) y[i] = is_within(step->node, x[i]) ? x[i] : x[i] > limit ? limit : -limit;
}

ROWS(clamp_gradient)
{
    SPAN;
    const float *x = whit_step_input(tape, step, 0) + at, *dy = whit_step_doutput(tape, step) + at;
    float *dx = whit_step_dinput(tape, step, 0) + at;
    for (size_t i = 0; i < n; i++) {
        const float d = is_within(step->node, x[i]) ? dy[i] : 0;
        dx[i] = step->overwrites[0] ? d : dx[i] + d;
    }
}

void whit_op_clamp(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(clamp);
}

void whit_op_clamp_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(clamp_gradient);
}

/* ---- rows times the sigmoid of an element ---------------------------------------------------- */

ROWS(scale_rows)
{
    SPAN;
    (void)n;
    const float *x = whit_step_input(tape, step, 0), *gate = whit_step_input(tape, step, 1);
    for (uint32_t r = begin; r < end; r++, at += width)
        tape->loops->scale(whit_step_output(tape, step) + at, x + at, whit_delta_sigmoid(gate[r]), width);
}

ROWS(scale_rows_gradient)
{
    SPAN;
    (void)n;
    const float *x = whit_step_input(tape, step, 0), *gate = whit_step_input(tape, step, 1),
                *dy = whit_step_doutput(tape, step);
    float *dx = whit_step_dinput(tape, step, 0), *dgate = whit_step_dinput(tape, step, 1);
    for (uint32_t r = begin; r < end; r++, at += width) {
        const float s = whit_delta_sigmoid(gate[r]), d = s * (1 - s) * tape->loops->dot(x + at, dy + at, width);
        dgate[r] = step->overwrites[1] ? d : dgate[r] + d;
        if (step->overwrites[0])
            tape->loops->scale(dx + at, dy + at, s, width);
        else
            tape->loops->add_scaled(dx + at, dy + at, s, width);
    }
}

void whit_op_scale_rows(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(scale_rows);
}

void whit_op_scale_rows_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(scale_rows_gradient);
}

/* ---- sums ----------------------------------------------------------------------------------- */

ROWS(add)
{
    SPAN;
    tape->loops->sum(whit_step_input(tape, step, 0) + at, whit_step_input(tape, step, 1) + at,
                     whit_step_output(tape, step) + at, n);
}

ROWS(add_gradient)
{
    SPAN;
    const float *dy = whit_step_doutput(tape, step) + at;
    for (int i = 0; i < 2; i++) {
        float *dx = whit_step_dinput(tape, step, i) + at;
        if (step->overwrites[i])
            memcpy(dx, dy, n * sizeof *dx);
        else
            tape->loops->add(dx, dy, n);
    }
}

void whit_op_add(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(add);
}

void whit_op_add_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(add_gradient);
}

ROWS(scale)
{
    SPAN;
    tape->loops->scale(whit_step_output(tape, step) + at, whit_step_input(tape, step, 0) + at, step->node->constant, n);
}

ROWS(scale_gradient)
{
    SPAN;
    const float *dy = whit_step_doutput(tape, step) + at;
    float *dx = whit_step_dinput(tape, step, 0) + at;
    if (step->overwrites[0])
        tape->loops->scale(dx, dy, step->node->constant, n);
    else
        tape->loops->add_scaled(dx, dy, step->node->constant, n);
}

void whit_op_scale(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(scale);
}

void whit_op_scale_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    RUN(scale_gradient);
}
