/* SPDX-License-Identifier: MIT */
#include "model/plan_split.h"

#include "kernels/codec.h"

/* ---- shares ---------------------------------------------------------------------------------- */

whit_columns whit_split_units(const whit_ranks *ranks, uint32_t n)
{
    const uint32_t begin = whit_rank_begin(ranks, ranks->rank, n), end = whit_rank_begin(ranks, ranks->rank + 1, n);
    return begin < end ? (whit_columns){begin, end} : (whit_columns){begin, begin + 1};
}

static uint32_t column_of(const whit_plan_value *value, uint32_t unit)
{
    const uint64_t column = (uint64_t)unit * value->unit_cols;
    return column < value->width ? (uint32_t)column : value->width;
}

whit_columns whit_split_columns(const whit_ranks *ranks, const whit_plan_value *value)
{
    if (!value->n_units) return (whit_columns){0, value->width};
    const whit_columns units = whit_split_units(ranks, value->n_units);
    return (whit_columns){column_of(value, units.begin), column_of(value, units.end)};
}

whit_columns whit_split_share(const whit_ranks *ranks, uint32_t rank, const whit_plan_value *value)
{
    return (whit_columns){column_of(value, whit_rank_begin(ranks, rank, value->n_units)),
                          column_of(value, whit_rank_begin(ranks, rank + 1, value->n_units))};
}

size_t whit_split_row_bytes(const whit_plan_value *value, whit_columns share)
{
    const size_t n = share.end - share.begin;
    if (value->acts.kind == WHIT_ACTS_F32) return n * sizeof(float);
    const size_t n_steps = (n + value->acts.step - 1) / value->acts.step;
    return n + n_steps * (sizeof(float) + sizeof(int32_t));
}

void whit_split_kv_layers(const whit_ranks *ranks, whit_kv_layer *layers, uint32_t n_layers)
{
    for (uint32_t i = 0; i < n_layers; i++) {
        if (!layers[i].n_kv_heads) continue;
        const whit_columns heads = whit_split_units(ranks, layers[i].n_kv_heads);
        layers[i].n_heads = layers[i].n_heads / layers[i].n_kv_heads * (heads.end - heads.begin);
        layers[i].n_kv_heads = heads.end - heads.begin;
    }
}

/* The bytes of tiles that cover a rank's columns of a matrix's outputs. */
static uint64_t tile_bytes(const whit_plan *plan, const whit_plan_step *step, const whit_tensor *tensor)
{
    const whit_plan_value *output = &plan->values[step->output - 1]; /* experts: the outputs of one of them */
    const uint64_t n_tiles = (output->width + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    const whit_columns own = whit_split_columns(plan->ranks, output);
    const uint64_t n_own = (own.end + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS - own.begin / WHIT_TILE_ROWS;
    return whit_codec_tensor_bytes(tensor) * n_own / n_tiles;
}

uint64_t whit_split_weight_bytes(const whit_plan *plan, const whit_tensor *tensors, uint64_t *whole_bytes)
{
    uint64_t bytes = 0;
    *whole_bytes = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const whit_plan_step *step = &plan->steps[i];
        if (step->weight < 0 || step->op == WHIT_PLAN_EMBED) continue;
        const whit_tensor *tensor = &tensors[step->weight];
        const uint64_t whole = whit_codec_tensor_bytes(tensor);
        *whole_bytes += whole;
        const bool is_matrix = step->op == WHIT_PLAN_LINEAR || step->op == WHIT_PLAN_EXPERT_LINEAR;
        bytes += is_matrix && step->is_split ? tile_bytes(plan, step, tensor) : whole;
    }
    return bytes;
}

/* ---- splitting ------------------------------------------------------------------------------- */

struct splitter {
    whit_plan *plan;
    const whit_plan_step *from; /* (n_from) the steps of one process */
    uint32_t n_from;
    bool *is_partial; /* per value: this rank has its own columns only */
};

static whit_plan_value *value_of(const struct splitter *s, uint32_t value)
{
    return &s->plan->values[value - 1];
}

static bool is_partial(const struct splitter *s, uint32_t value)
{
    return value && s->is_partial[value];
}

static bool reads_value(const whit_plan_step *step, uint32_t value)
{
    return step->input[0] == value || step->input[1] == value || step->input[2] == value;
}

/* Whether a step computes each element of its output from the elements of the same column. */
static bool is_elementwise(const whit_plan_step *step)
{
    switch (step->op) {
    case WHIT_PLAN_BIAS:
    case WHIT_PLAN_EXPERT_BIAS:
    case WHIT_PLAN_COMBINE:
    case WHIT_PLAN_SCALE_ROWS:
    case WHIT_PLAN_GATE:
    case WHIT_PLAN_ADD:
    case WHIT_PLAN_SCALE:
    case WHIT_PLAN_TEMPERATURE:
    case WHIT_PLAN_SOFTCAP:
    case WHIT_PLAN_SCALE_BY:
    case WHIT_PLAN_CLAMP:
    case WHIT_PLAN_ACTIVATE: return true;
    default: return false;
    }
}

/* Whether a step computes each head of its output from the same head. */
static bool is_headwise(const struct splitter *s, const whit_plan_step *step)
{
    return step->op == WHIT_PLAN_ROPE ||
        (step->op == WHIT_PLAN_NORM && step->head_dim < value_of(s, step->output)->width);
}

/* The number of KV heads whose attention reads a value, from step i on, through steps on columns or heads; 0: other
 * steps read it. */
static uint32_t heads_of(const struct splitter *s, uint32_t i, uint32_t value)
{
    uint32_t n_heads = 0;
    for (; i < s->n_from; i++) {
        const whit_plan_step *step = &s->from[i];
        if (!reads_value(step, value)) continue;
        uint32_t n = 0;
        if (step->op == WHIT_PLAN_APPEND)
            n = value_of(s, step->input[0])->width / step->head_dim;
        else if (step->op == WHIT_PLAN_ATTEND && step->n_key_heads)
            n = step->n_key_heads;
        else if ((is_elementwise(step) || is_headwise(s, step)) && !step->input[1])
            n = heads_of(s, i + 1, step->output);
        if (!n || (n_heads && n != n_heads)) return 0;
        n_heads = n;
    }
    return n_heads;
}

/* The columns of a unit of a matrix's outputs: whole tiles, and groups of the activations that are made of them. */
static uint32_t unit_of(const struct splitter *s, uint32_t i, uint32_t value)
{
    for (; i < s->n_from; i++) {
        const whit_plan_step *step = &s->from[i];
        if (!reads_value(step, value)) continue;
        if (is_elementwise(step)) {
            value = step->output;
            continue;
        }
        if (step->op != WHIT_PLAN_ACTS) break;
        const whit_acts_spec *acts = &value_of(s, step->output)->acts;
        const uint32_t group = acts->kind == WHIT_ACTS_I8 && acts->scale == 0 ? acts->group : 0;
        if (group % WHIT_TILE_ROWS || group * s->plan->ranks->n_ranks > value_of(s, value)->width) break;
        return group ? group : WHIT_TILE_ROWS;
    }
    return WHIT_TILE_ROWS;
}

static void cut_value(struct splitter *s, uint32_t value, uint32_t n_units, uint32_t unit_cols)
{
    value_of(s, value)->n_units = n_units;
    value_of(s, value)->unit_cols = unit_cols;
    s->is_partial[value] = true;
}

static void put_step(struct splitter *s, whit_plan_step step)
{
    step.number = s->plan->n_steps;
    s->plan->steps[s->plan->n_steps++] = step; /* capacity was counted beforehand */
}

static void gather_value(struct splitter *s, uint32_t value, bool to_first)
{
    if (!is_partial(s, value)) return;
    s->is_partial[value] = false;
    value_of(s, value)->n_reads++;
    put_step(s,
             (whit_plan_step){.op = WHIT_PLAN_GATHER,
                              .rows = value_of(s, value)->rows,
                              .input = {value},
                              .weight = -1,
                              .gated = -1,
                              .second = -1,
                              .to_first = to_first});
}

static void split_linear(struct splitter *s, uint32_t i, whit_plan_step *step)
{
    const uint32_t width = value_of(s, step->output)->width, n_heads = heads_of(s, i + 1, step->output);
    gather_value(s, step->input[0], false);
    if (n_heads && width % n_heads == 0) {
        cut_value(s, step->output, n_heads, width / n_heads);
    } else {
        const uint32_t unit = unit_of(s, i + 1, step->output);
        if (width < unit * s->plan->ranks->n_ranks) return; /* small: every rank computes all of it */
        cut_value(s, step->output, (width + unit - 1) / unit, unit);
    }
    step->is_split = true;
}

/* Activations of split rows are split if a rank's columns are whole groups. */
static void split_acts(struct splitter *s, whit_plan_step *step)
{
    const whit_plan_value *input = value_of(s, step->input[0]);
    const whit_acts_spec *acts = &value_of(s, step->output)->acts;
    const bool fits = acts->kind == WHIT_ACTS_I8 && acts->scale == 0 && acts->group && acts->step &&
        input->unit_cols % acts->group == 0 && acts->group % acts->step == 0;
    if (!is_partial(s, step->input[0])) return;
    if (!fits) {
        gather_value(s, step->input[0], false);
        return;
    }
    cut_value(s, step->output, input->n_units, input->unit_cols);
    step->is_split = true;
}

static void split_attention(struct splitter *s, whit_plan_step *step)
{
    for (int j = 0; j < 3; j++)
        if (is_partial(s, step->input[j]) && value_of(s, step->input[j])->n_units != step->n_key_heads)
            gather_value(s, step->input[j], false);
    if (step->output)
        cut_value(s, step->output, step->n_key_heads, value_of(s, step->output)->width / step->n_key_heads);
    step->is_split = true;
}

/* Steps on columns, or on heads, of split values run on the rank's own columns. */
static void split_columns(struct splitter *s, whit_plan_step *step)
{
    const whit_plan_value *input = value_of(s, step->input[0]);
    bool fits = is_partial(s, step->input[0]) &&
        (is_elementwise(step) || (is_headwise(s, step) && input->unit_cols % step->head_dim == 0));
    if (whit_split_reads_row(step)) gather_value(s, step->input[1], false);
    for (int j = whit_split_reads_row(step) ? 2 : 1; j < 3; j++)
        if (step->input[j])
            fits = fits && is_partial(s, step->input[j]) && value_of(s, step->input[j])->n_units == input->n_units &&
                value_of(s, step->input[j])->unit_cols == input->unit_cols;
    if (!fits) {
        for (int j = 0; j < 3; j++) gather_value(s, step->input[j], false);
        return;
    }
    cut_value(s, step->output, input->n_units, input->unit_cols);
    step->is_split = true;
}

/* Notes in attention steps how many KV heads their layer has. */
static void note_heads(const struct splitter *s, whit_plan_step *steps)
{
    for (uint32_t i = 0; i < s->n_from; i++) {
        whit_plan_step *step = &steps[i];
        if (step->op == WHIT_PLAN_APPEND) step->n_key_heads = value_of(s, step->input[0])->width / step->head_dim;
        if (step->op != WHIT_PLAN_ATTEND) continue;
        for (uint32_t k = i; k-- > 0 && !step->n_key_heads;) /* the attention that has appended the layer's keys */
            if (steps[k].op == WHIT_PLAN_APPEND && steps[k].layer == step->layer)
                step->n_key_heads = steps[k].n_key_heads;
    }
}

static void split_steps(struct splitter *s)
{
    for (uint32_t i = 0; i < s->n_from; i++) {
        whit_plan_step step = s->from[i];
        switch (step.op) {
        case WHIT_PLAN_LINEAR:
        case WHIT_PLAN_EXPERT_LINEAR: split_linear(s, i, &step); break;
        case WHIT_PLAN_ACTS: split_acts(s, &step); break;
        case WHIT_PLAN_APPEND:
        case WHIT_PLAN_ATTEND: split_attention(s, &step); break;
        case WHIT_PLAN_EMBED: break;
        default: split_columns(s, &step);
        }
        put_step(s, step);
    }
    for (uint32_t v = 1; v <= s->plan->n_values; v++)
        if (value_of(s, v)->kept) gather_value(s, v, true);
}

whit_status whit_plan_split(whit_plan *plan, whit_error *error)
{
    const size_t steps_bytes = plan->n_steps * sizeof *plan->steps, marks_bytes = plan->n_values + 1;
    struct splitter s = {.plan = plan, .n_from = plan->n_steps};
    whit_plan_step *from = whit_alloc(plan->allocator, steps_bytes);
    s.is_partial = whit_zalloc(plan->allocator, marks_bytes);
    s.from = from;
    whit_status status = from && s.is_partial ? WHIT_OK : whit_fail_memory(error, "the plan", steps_bytes);
    if (status == WHIT_OK) {
        memcpy(from, plan->steps, steps_bytes);
        note_heads(&s, from);
        plan->n_steps = 0;
        split_steps(&s);
    }
    whit_free(plan->allocator, from, steps_bytes);
    whit_free(plan->allocator, s.is_partial, marks_bytes);
    return status;
}
