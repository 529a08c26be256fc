/* SPDX-License-Identifier: MIT */
#include "model/plan_fuse.h"

struct fuser {
    const whit_plan *plan;
    const whit_fuse_options *options;
    whit_schedule *schedule;
    bool *is_gone; /* by step of the plan: the step was fused into another step, or this schedule does not run it */
};

static const whit_plan_value *value_of(const struct fuser *f, uint32_t value)
{
    return &f->plan->values[value - 1];
}

/* Returns whether a value is not kept and exactly one step reads it. */
static bool is_read_once(const struct fuser *f, uint32_t value)
{
    return value_of(f, value)->n_reads == 1 && !value_of(f, value)->kept;
}

/* Returns whether the output of a step has the same slot as its input j. */
static bool is_in_place(const struct fuser *f, const whit_plan_step *step, int j)
{
    return step->input[j] && step->output && value_of(f, step->input[j])->slot == value_of(f, step->output)->slot;
}

/* Returns the first step of the next phase in the plan if that phase has the same row set; otherwise NULL. */
static const whit_plan_step *behind(const struct fuser *f, const whit_plan_phase *phase)
{
    const whit_plan_phase *next = phase + 1;
    if (next == f->plan->phases + f->plan->n_phases || next->rows != phase->rows) return NULL;
    return &f->plan->steps[next->first];
}

/* Returns whether the schedule of row set `rows` runs a phase: phases of experts belong to BATCH. */
static bool is_scheduled(const whit_plan_phase *phase, whit_row_set rows)
{
    return phase->rows == rows || (phase->rows == WHIT_ROWS_EXPERT && rows == WHIT_ROWS_BATCH);
}

static void drop_step(struct fuser *f, const whit_plan_step *step)
{
    f->is_gone[step - f->plan->steps] = true;
}

/* ---- fusing products ------------------------------------------------------------------------- */

/* Fuses two matrices that form a phase of their own with the gate step that follows: gate(x first) * (x second).
 * Returns false if that is not possible. */
static bool fuse_gated(struct fuser *f, const whit_plan_phase *phase, whit_plan_step *step)
{
    const whit_plan_step *gate = &f->plan->steps[phase->first], *up = gate + 1, *gates = behind(f, phase);
    if (f->options->is_adapted || phase->n_steps != 2 || !gates || gates->op != WHIT_PLAN_GATE ||
        gates->input[0] != gate->output || gates->input[1] != up->output || !is_read_once(f, gate->output) ||
        !is_read_once(f, up->output) || !is_in_place(f, gates, 0) ||
        !f->options->offers_gated(f->options->context, gate, up))
        return false;
    step->op = WHIT_PLAN_LINEAR_GATED;
    step->gate = gates->gate;
    step->gated = up->weight;
    step->output = gates->output;
    drop_step(f, up);
    drop_step(f, gates);
    return true;
}

/* Fuses a matrix that forms a phase of its own with the addition that follows, which must overwrite its other input.
 * Returns false if that is not possible. */
static bool fuse_added(struct fuser *f, const whit_plan_phase *phase, whit_plan_step *step)
{
    const whit_plan_step *linear = &f->plan->steps[phase->first], *add = behind(f, phase);
    if (f->options->is_adapted || phase->n_steps != 1 || !add || add->op != WHIT_PLAN_ADD ||
        add->input[1] != linear->output || !is_read_once(f, linear->output) || !is_in_place(f, add, 0) ||
        !f->options->offers_added(f->options->context, linear))
        return false;
    step->op = WHIT_PLAN_LINEAR_ADDED;
    step->input[1] = add->input[0];
    step->output = add->output;
    drop_step(f, add);
    return true;
}

static void fuse_linear(struct fuser *f, const whit_plan_phase *phase, whit_plan_step *step)
{
    const whit_plan_step *next = behind(f, phase);
    if (f->options->is_screened && next && next->op == WHIT_PLAN_RESCORE && next->input[0] == step->output)
        step->op = WHIT_PLAN_SCREEN;
    else if (!f->plan->no_fuse && !fuse_gated(f, phase, step))
        fuse_added(f, phase, step);
}

/* ---- fusing steps on rows -------------------------------------------------------------------- */

/* Returns whether steps i and i + 1 are a norm of whole rows with a weight, and the conversion of its output, which no
 * other step reads, to int8 activations; `end` is the end of their phase. */
static bool is_norm_acts(const struct fuser *f, uint32_t i, uint32_t end)
{
    if (i + 1 >= end) return false;
    const whit_plan_step *norm = &f->plan->steps[i], *acts = norm + 1;
    return norm->op == WHIT_PLAN_NORM && acts->op == WHIT_PLAN_ACTS && acts->input[0] == norm->output &&
        is_read_once(f, norm->output) && norm->head_dim == value_of(f, norm->output)->width && norm->weight >= 0 &&
        value_of(f, acts->output)->acts.kind == WHIT_ACTS_I8;
}

/* Returns whether whit_norm_acts_fn can compute this gate. */
static bool is_row_source(uint8_t gate)
{
    return gate == WHIT_GATE_SILU || gate == WHIT_GATE_RELU2;
}

/* Fuses step i with the norm and the activations that follow, into `step`, which is the schedule's copy of step i; does
 * nothing if that is not possible. Step i is the norm itself, or an addition or gate directly before it. */
static void fuse_norm(struct fuser *f, uint32_t i, uint32_t end, whit_plan_step *step)
{
    const whit_plan_step *norm = &f->plan->steps[i];
    if (step->op == WHIT_PLAN_NORM) {
        if (!is_norm_acts(f, i, end)) return;
        step->op = WHIT_PLAN_NORM_ACTS;
    } else {
        norm++;
        if (!is_norm_acts(f, i + 1, end) || norm->input[0] != step->output) return;
        if (step->op == WHIT_PLAN_GATE && (!is_row_source(step->gate) || !is_read_once(f, step->output))) return;
        step->op = step->op == WHIT_PLAN_ADD ? WHIT_PLAN_ADD_NORM_ACTS : WHIT_PLAN_GATE_NORM_ACTS;
        drop_step(f, norm);
    }
    /* Only a sum is stored, because later steps read it; they do not read the other values. */
    if (step->op != WHIT_PLAN_ADD_NORM_ACTS) step->output = 0;
    step->weight = norm->weight;
    step->head_dim = norm->head_dim;
    step->constant = norm->constant;
    step->acts = norm[1].output;
    drop_step(f, norm + 1);
}

/* Returns the step that rotates the queries of an attention in place if only the attention reads its output; otherwise
 * NULL. */
static const whit_plan_step *rope_of(const struct fuser *f, const whit_plan_step *attend)
{
    const whit_plan_step *rope = attend;
    while (rope > f->plan->steps && rope->output != attend->input[0]) rope--;
    if (rope->op != WHIT_PLAN_ROPE || rope->output != attend->input[0] || !is_read_once(f, rope->output) ||
        !is_in_place(f, rope, 0))
        return NULL;
    return rope;
}

/* ---- building a schedule --------------------------------------------------------------------- */

static void fuse_step(struct fuser *f, const whit_plan_phase *phase, uint32_t i, whit_plan_step *step)
{
    uint32_t end = phase->first + phase->n_steps;
    const whit_plan_step *rope = NULL;
    switch (step->op) {
    case WHIT_PLAN_LINEAR: fuse_linear(f, phase, step); break;
    case WHIT_PLAN_NORM:
    case WHIT_PLAN_ADD:
    case WHIT_PLAN_GATE:
        if (!f->plan->no_fuse) fuse_norm(f, i, end, step);
        break;
    case WHIT_PLAN_ATTEND:
        if (f->options->rotates_in_attend && !f->plan->no_fuse) rope = rope_of(f, &f->plan->steps[i]);
        if (!rope) break;
        step->op = WHIT_PLAN_ROPE_ATTEND;
        step->input[0] = rope->input[0];
        step->rotary = rope->rotary;
        step->rope = rope->rope;
        break;
    default: break;
    }
}

/* Marks steps that run as part of a later step (RoPE in attention), and rescoring if the head is not screened. */
static void drop_first(struct fuser *f)
{
    for (uint32_t i = 0; i < f->plan->n_steps; i++) {
        const whit_plan_step *step = &f->plan->steps[i], *rope = NULL;
        if (step->op == WHIT_PLAN_RESCORE && !f->options->is_screened) drop_step(f, step);
        if (step->op == WHIT_PLAN_ATTEND && f->options->rotates_in_attend && !f->plan->no_fuse) rope = rope_of(f, step);
        if (rope) drop_step(f, rope);
    }
}

whit_status whit_plan_fuse(const whit_plan *plan, const whit_fuse_options *options, whit_schedule *schedule,
                           whit_error *error)
{
    struct fuser f = {.plan = plan, .options = options, .schedule = schedule};
    *schedule = (whit_schedule){0};
    for (uint32_t g = 0; g < plan->n_phases; g++) {
        if (!is_scheduled(&plan->phases[g], options->rows)) continue;
        schedule->capacity_phases++;
        schedule->capacity_steps += plan->phases[g].n_steps;
    }
    if (!schedule->capacity_phases) return WHIT_OK;
    f.is_gone = whit_zalloc_array(plan->allocator, plan->n_steps, sizeof *f.is_gone);
    schedule->steps = whit_zalloc_array(plan->allocator, schedule->capacity_steps, sizeof *schedule->steps);
    schedule->phases = whit_zalloc_array(plan->allocator, schedule->capacity_phases, sizeof *schedule->phases);
    if (!f.is_gone || !schedule->steps || !schedule->phases) {
        whit_free(plan->allocator, f.is_gone, plan->n_steps * sizeof *f.is_gone);
        whit_schedule_free(plan, schedule);
        return whit_fail_memory(error, "the plan", plan->n_steps * sizeof *schedule->steps);
    }
    drop_first(&f);
    for (uint32_t g = 0; g < plan->n_phases; g++) {
        const whit_plan_phase *phase = &plan->phases[g];
        if (!is_scheduled(phase, options->rows)) continue;
        uint32_t first = schedule->n_steps;
        for (uint32_t i = phase->first; i < phase->first + phase->n_steps; i++) {
            if (f.is_gone[i]) continue;
            whit_plan_step *step = &schedule->steps[schedule->n_steps++];
            *step = plan->steps[i];
            fuse_step(&f, phase, i, step);
        }
        if (schedule->n_steps == first) continue;
        whit_plan_phase *made = &schedule->phases[schedule->n_phases++];
        *made = *phase;
        made->first = first;
        made->n_steps = schedule->n_steps - first;
        made->place = g;
    }
    whit_free(plan->allocator, f.is_gone, plan->n_steps * sizeof *f.is_gone);
    return WHIT_OK;
}

void whit_schedule_free(const whit_plan *plan, whit_schedule *schedule)
{
    whit_free(plan->allocator, schedule->steps, schedule->capacity_steps * sizeof *schedule->steps);
    whit_free(plan->allocator, schedule->phases, schedule->capacity_phases * sizeof *schedule->phases);
    *schedule = (whit_schedule){0};
}

void whit_schedule_print(const whit_plan *plan, const whit_schedule *schedule,
                         const char *(*name)(void *context, int32_t tensor), void *context, whit_buf *out)
{
    static const char *const sets[] = {
        [WHIT_ROWS_BATCH] = "", [WHIT_ROWS_SELECTED] = " (selected)", [WHIT_ROWS_EXPERT] = " (expert)"};
    static const char *const domains[WHIT_DOMAIN_COUNT] = {"rows",  "tiles",   "heads", "state",
                                                           "pairs", "experts", "gather"};
    for (uint32_t g = 0; g < schedule->n_phases; g++) {
        const whit_plan_phase *phase = &schedule->phases[g];
        whit_buf_printf(out, "%4u %s%s\n", phase->place, domains[phase->domain], sets[phase->rows]);
        for (uint32_t i = phase->first; i < phase->first + phase->n_steps; i++)
            whit_plan_print_step(plan, &schedule->steps[i], name, context, out);
    }
}
