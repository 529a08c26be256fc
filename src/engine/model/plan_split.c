/* SPDX-License-Identifier: MIT */
#include "model/plan_split.h"

#include "kernels/codec.h"
#include "kernels/delta.h"

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

/* Returns the range of key heads that the value heads `heads` of a delta rule read; all key heads if the heads read are
 * not consecutive. */
static whit_columns key_heads_of(const whit_plan_step *step, whit_columns heads)
{
    const uint32_t first = whit_delta_key_head(heads.begin, step->n_heads, step->n_key_heads, step->is_grouped);
    const uint32_t last = whit_delta_key_head(heads.end - 1, step->n_heads, step->n_key_heads, step->is_grouped);
    const bool is_tiled_round = !step->is_grouped && heads.end - heads.begin > last - first + 1;
    if (last < first || is_tiled_round) return (whit_columns){0, step->n_key_heads};
    return (whit_columns){first, last + 1};
}

void whit_split_channels(const whit_ranks *ranks, const whit_plan *plan, const whit_plan_step *convolution,
                         whit_columns ranges[WHIT_SPLIT_RANGES])
{
    const whit_plan_step *c = convolution;
    const whit_plan_value *value = &plan->values[c->output - 1];
    memset(ranges, 0, WHIT_SPLIT_RANGES * sizeof *ranges);
    if (!ranks || !c->is_split || !c->n_heads) {
        ranges[0] = ranks ? whit_split_columns(ranks, value) : (whit_columns){0, value->width};
        return;
    }
    const whit_columns heads = whit_split_units(ranks, c->n_heads), keys = key_heads_of(c, heads);
    const uint32_t n_keys = c->n_key_heads * c->head_dim;
    ranges[0] = (whit_columns){keys.begin * c->head_dim, keys.end * c->head_dim};
    ranges[1] = (whit_columns){n_keys + ranges[0].begin, n_keys + ranges[0].end};
    ranges[2] = (whit_columns){2 * n_keys + heads.begin * c->value_dim, 2 * n_keys + heads.end * c->value_dim};
}

static void split_state(const whit_ranks *ranks, const whit_plan *plan, const whit_plan_step *step,
                        whit_state_layer *state)
{
    if (step->op == WHIT_PLAN_DELTA) {
        const whit_columns heads = whit_split_units(ranks, step->n_heads);
        state->n_heads = heads.end - heads.begin;
        return;
    }
    whit_columns ranges[WHIT_SPLIT_RANGES];
    whit_split_channels(ranks, plan, step, ranges);
    state->n_channels = 0;
    for (int i = 0; i < WHIT_SPLIT_RANGES; i++) state->n_channels += ranges[i].end - ranges[i].begin;
}

void whit_split_kv_layers(const whit_ranks *ranks, const whit_plan *plan, whit_kv_layer *layers, uint32_t n_layers)
{
    for (uint32_t i = 0; i < n_layers; i++) {
        if (!layers[i].n_kv_heads) continue;
        const whit_columns heads = whit_split_units(ranks, layers[i].n_kv_heads);
        layers[i].n_heads = layers[i].n_heads / layers[i].n_kv_heads * (heads.end - heads.begin);
        layers[i].n_kv_heads = heads.end - heads.begin;
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const whit_plan_step *step = &plan->steps[i];
        if (step->op == WHIT_PLAN_CONV || step->op == WHIT_PLAN_DELTA)
            split_state(ranks, plan, step, &layers[step->layer].state);
    }
}

/* ---- splitting ------------------------------------------------------------------------------- */

struct splitter {
    whit_plan *plan;
    const whit_plan_step *from; /* (n_from) the steps of the unsplit plan */
    uint32_t n_from;
    uint8_t *parts; /* (n_values + 1) HAS_...: which columns of each value this rank has computed so far */
};

/* HAS_CHANNELS: the channels of whit_split_channels; no gather completes them */
enum { HAS_ALL, HAS_UNITS, HAS_CHANNELS };

static whit_plan_value *value_of(const struct splitter *s, uint32_t value)
{
    return &s->plan->values[value - 1];
}

static bool is_partial(const struct splitter *s, uint32_t value)
{
    return value && s->parts[value] == HAS_UNITS;
}

static bool reads_value(const whit_plan_step *step, uint32_t value)
{
    return step->input[0] == value || step->input[1] == value || step->input[2] == value;
}

/* Returns whether a step computes each element of its output from the elements of the same column of its inputs, apart
 * from a second input that it reads in whole rows (whit_split_reads_row). */
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
    case WHIT_PLAN_CONV:
    case WHIT_PLAN_ACTIVATE: return true;
    default: return false;
    }
}

/* Returns whether a step computes each head of its output from the same head of its input. A norm of whole rows is a
 * norm of one head. */
static bool is_headwise(const struct splitter *s, const whit_plan_step *step)
{
    return step->op == WHIT_PLAN_ROPE ||
        (step->op == WHIT_PLAN_NORM && step->head_dim && step->head_dim <= value_of(s, step->output)->width);
}

/* Returns the number of heads of the attention or delta rule that computed a value, looking back from step i through
 * steps on columns or heads; 0 if the value was not computed from such heads. */
static uint32_t made_by_heads(const struct splitter *s, uint32_t i, uint32_t value)
{
    while (i-- > 0) {
        const whit_plan_step *step = &s->from[i];
        if (step->output != value) continue;
        if (step->op == WHIT_PLAN_DELTA) return step->n_heads;
        if (step->op == WHIT_PLAN_ATTEND) return step->n_key_heads;
        if (!is_elementwise(step) && !is_headwise(s, step)) return 0;
        value = step->input[0];
    }
    return 0;
}

/* Returns the number of heads by which step i, a reader of the value, needs the value to be split; 0 if it does not
 * need that. */
static uint32_t heads_read(const struct splitter *s, uint32_t i, uint32_t value);

/* Returns the number of heads (KV heads of attention, value heads of a delta rule) by which all readers of a value,
 * from step i on, need it to be split, also through steps on columns or heads; 0 if they disagree, or one does not need
 * that. */
static uint32_t heads_of(const struct splitter *s, uint32_t i, uint32_t value)
{
    uint32_t n_heads = 0;
    for (; i < s->n_from; i++) {
        if (!reads_value(&s->from[i], value)) continue;
        const uint32_t n = heads_read(s, i, value);
        if (!n || (n_heads && n != n_heads)) return 0;
        n_heads = n;
    }
    return n_heads;
}

static uint32_t heads_read(const struct splitter *s, uint32_t i, uint32_t value)
{
    const whit_plan_step *step = &s->from[i];
    if (step->op == WHIT_PLAN_APPEND) return value_of(s, step->input[0])->width / step->head_dim;
    if (step->op == WHIT_PLAN_ATTEND) return step->n_key_heads;
    if (step->op == WHIT_PLAN_DELTA) return step->input[0] == value ? 0 : step->n_heads;
    if (step->op == WHIT_PLAN_GATE && step->input[0] != step->input[1]) {
        const uint32_t other = step->input[step->input[0] == value];
        return value_of(s, other)->width == value_of(s, value)->width ? made_by_heads(s, i, other) : 0;
    }
    if (step->input[1] || !(is_elementwise(step) || is_headwise(s, step))) return 0;
    return heads_of(s, i + 1, step->output);
}

/* Returns the only step from step i on that reads a value; NULL if several steps read it, no step reads it, or it is
 * kept. */
static const whit_plan_step *only_reader(const struct splitter *s, uint32_t i, uint32_t value)
{
    const whit_plan_step *reader = NULL;
    if (value_of(s, value)->kept) return NULL;
    for (; i < s->n_from; i++) {
        if (!reads_value(&s->from[i], value)) continue;
        if (reader) return NULL;
        reader = &s->from[i];
    }
    return reader;
}

/* Returns the convolution of a delta rule if it is the only reader of a value; otherwise NULL. */
static const whit_plan_step *delta_convolution(const struct splitter *s, uint32_t i, uint32_t value)
{
    const whit_plan_step *reader = only_reader(s, i, value);
    return reader && reader->op == WHIT_PLAN_CONV && reader->n_heads ? reader : NULL;
}

/* Returns the number of columns in a unit of a matrix's outputs: a group of the activations that are computed from the
 * outputs, if it consists of whole tiles and there is one for every rank; otherwise a tile. */
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
    s->parts[value] = HAS_UNITS;
}

static void put_step(struct splitter *s, whit_plan_step step)
{
    step.number = s->plan->n_steps;
    s->plan->steps[s->plan->n_steps++] = step; /* capacity_steps is large enough (see whit_plan_compile) */
}

static void gather_value(struct splitter *s, uint32_t value, bool to_first)
{
    if (!is_partial(s, value)) return;
    s->parts[value] = HAS_ALL;
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

/* Splits the product of a delta rule's input: one step for each run of tiles that contain channels of this rank's
 * heads. The last of these steps is left in *step. */
static void split_delta_input(struct splitter *s, whit_plan_step *step, const whit_plan_step *convolution)
{
    const uint32_t width = value_of(s, step->output)->width;
    whit_plan_step narrowed = *convolution;
    whit_columns ranges[WHIT_SPLIT_RANGES], run = {0, 0};
    narrowed.is_split = true;
    whit_split_channels(s->plan->ranks, s->plan, &narrowed, ranges);
    s->parts[step->output] = HAS_CHANNELS;
    step->is_split = true;
    for (int i = 0; i < WHIT_SPLIT_RANGES; i++) {
        const uint32_t begin = ranges[i].begin / WHIT_TILE_ROWS * WHIT_TILE_ROWS;
        const uint32_t end = (ranges[i].end + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS * WHIT_TILE_ROWS;
        if (run.end && begin > run.end) {
            step->own = run;
            put_step(s, *step);
            run = (whit_columns){begin, end};
        } else {
            run = (whit_columns){run.end ? run.begin : begin, end};
        }
    }
    step->own = (whit_columns){run.begin, run.end < width ? run.end : width};
}

static void split_linear(struct splitter *s, uint32_t i, whit_plan_step *step)
{
    const uint32_t width = value_of(s, step->output)->width, n_heads = heads_of(s, i + 1, step->output);
    const whit_plan_step *convolution = delta_convolution(s, i + 1, step->output);
    gather_value(s, step->input[0], false);
    if (convolution && step->op == WHIT_PLAN_LINEAR) {
        split_delta_input(s, step, convolution);
        return;
    }
    if (n_heads && width % n_heads == 0) {
        cut_value(s, step->output, n_heads, width / n_heads);
    } else {
        const uint32_t unit = unit_of(s, i + 1, step->output);
        if (width < unit * s->plan->ranks->n_ranks) return; /* the value is narrow, so every rank computes all of it */
        cut_value(s, step->output, (width + unit - 1) / unit, unit);
    }
    step->is_split = true;
}

/* Splits the conversion of split rows to activations if these are int8 with a scale per group and a rank's columns are
 * whole groups; otherwise gathers the rows first. */
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

/* Makes each rank rescore its own rows of the head's matrix: a largest logit of the whole head is also a largest logit
 * of its rank. */
static void split_rescore(const struct splitter *s, whit_plan_step *step)
{
    step->is_split = is_partial(s, step->input[0]);
}

/* Makes a delta rule compute only this rank's value heads, even if its inputs are complete. */
static void split_delta(struct splitter *s, whit_plan_step *step)
{
    for (int j = 0; j < 3; j++)
        if (is_partial(s, step->input[j]) && (!j || value_of(s, step->input[j])->n_units != step->n_heads))
            gather_value(s, step->input[j], false);
    cut_value(s, step->output, step->n_heads, step->value_dim);
    step->is_split = true;
}

/* Makes a step on columns, or on heads, compute only this rank's columns if all its inputs are split alike; otherwise
 * gathers the inputs. */
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

/* Splits a convolution: by a delta rule's channels if its input has only these, else like any step on columns. */
static void split_convolution(struct splitter *s, whit_plan_step *step)
{
    if (s->parts[step->input[0]] != HAS_CHANNELS) {
        step->n_heads = 0;
        split_columns(s, step);
        return;
    }
    s->parts[step->output] = HAS_CHANNELS;
    step->is_split = true;
}

/* Records in a convolution the heads of the delta rule that is the only reader of its output. */
static void note_delta(const struct splitter *s, uint32_t i, whit_plan_step *convolution)
{
    const whit_plan_step *delta = only_reader(s, i + 1, convolution->output);
    if (!delta || delta->op != WHIT_PLAN_DELTA || delta->input[0] != convolution->output) return;
    convolution->n_heads = delta->n_heads;
    convolution->n_key_heads = delta->n_key_heads;
    convolution->head_dim = delta->head_dim;
    convolution->value_dim = delta->value_dim;
    convolution->is_grouped = delta->is_grouped;
}

/* Records in attention steps the number of KV heads of their layer, in n_key_heads, and in convolutions the heads of
 * their delta rule. */
static void note_heads(const struct splitter *s, whit_plan_step *steps)
{
    for (uint32_t i = 0; i < s->n_from; i++) {
        whit_plan_step *step = &steps[i];
        if (step->op == WHIT_PLAN_CONV) note_delta(s, i, step);
        if (step->op == WHIT_PLAN_APPEND) step->n_key_heads = value_of(s, step->input[0])->width / step->head_dim;
        if (step->op != WHIT_PLAN_ATTEND) continue;
        for (uint32_t k = i; k-- > 0 && !step->n_key_heads;) /* search backwards for the step that appends the layer's
                                                              * keys */
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
        case WHIT_PLAN_DELTA: split_delta(s, &step); break;
        case WHIT_PLAN_CONV: split_convolution(s, &step); break;
        case WHIT_PLAN_RESCORE: split_rescore(s, &step); break;
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
    s.parts = whit_zalloc(plan->allocator, marks_bytes);
    s.from = from;
    whit_status status = from && s.parts ? WHIT_OK : whit_fail_memory(error, "the plan", steps_bytes);
    if (status == WHIT_OK) {
        memcpy(from, plan->steps, steps_bytes);
        note_heads(&s, from);
        plan->n_steps = 0;
        split_steps(&s);
    }
    whit_free(plan->allocator, from, steps_bytes);
    whit_free(plan->allocator, s.parts, marks_bytes);
    return status;
}
