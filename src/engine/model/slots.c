/* SPDX-License-Identifier: MIT */
#include "model/slots.h"

#define NEVER UINT32_MAX

/* Returns the number of bytes that n rows of a value occupy in its slot, including padding between rows. */
static uint64_t value_bytes(const whit_plan_value *value, uint32_t n_rows)
{
    if (value->acts.kind == WHIT_ACTS_F32) return (uint64_t)whit_plan_stride(value) * sizeof(float) * n_rows;
    return whit_acts_bytes(&value->acts, n_rows, value->width);
}

bool whit_plan_layout(whit_plan *plan, uint32_t n_batch_rows, uint32_t n_selected_rows, uint64_t *total_bytes)
{
    for (uint32_t s = 0; s < plan->n_slots; s++) plan->slots[s].size_bytes = 0;
    for (uint32_t v = 0; v < plan->n_values; v++) {
        const whit_plan_value *value = &plan->values[v];
        whit_plan_slot *slot = &plan->slots[value->slot];
        uint64_t n_rows = n_batch_rows;
        if (value->rows == WHIT_ROWS_SELECTED)
            n_rows = n_selected_rows;
        else if (value->rows == WHIT_ROWS_EXPERT)
            n_rows = (uint64_t)n_batch_rows * plan->n_used;
        if (n_rows > UINT32_MAX) return false;
        uint64_t bytes = value_bytes(value, (uint32_t)n_rows);
        if (slot->size_bytes < bytes) slot->size_bytes = bytes;
    }
    uint64_t total = 0;
    for (uint32_t s = 0; s < plan->n_slots; s++) {
        whit_plan_slot *slot = &plan->slots[s];
        slot->offset_bytes = total;
        slot->size_bytes = (slot->size_bytes + 63) & ~(uint64_t)63;
        if (__builtin_add_overflow(total, slot->size_bytes, &total)) return false;
    }
    *total_bytes = total;
    return true;
}

struct lives {
    uint32_t *last_step; /* by value: index of the last step that reads it; NEVER if it is kept */
    uint32_t *last_phase;
    uint32_t *owner; /* by slot: number of the value in it; 0: the slot is free */
};

/* Returns whether a step's output may overwrite its first input. These operations read each element before they
 * overwrite it; attention reads each row of a KV head before it overwrites that row. */
static bool may_overwrite(uint8_t op)
{
    return op == WHIT_PLAN_ADD || op == WHIT_PLAN_SCALE || op == WHIT_PLAN_ROPE || op == WHIT_PLAN_BIAS ||
        op == WHIT_PLAN_GATE || op == WHIT_PLAN_NORM || op == WHIT_PLAN_ATTEND || op == WHIT_PLAN_CLAMP ||
        op == WHIT_PLAN_SCALE_ROWS || op == WHIT_PLAN_EXPERT_BIAS || op == WHIT_PLAN_LAYER_NORM ||
        op == WHIT_PLAN_ACTIVATE || op == WHIT_PLAN_HADAMARD;
}

static void find_lives(const whit_plan *plan, struct lives *lives)
{
    for (uint32_t g = 0; g < plan->n_phases; g++)
        for (uint32_t i = plan->phases[g].first; i < plan->phases[g].first + plan->phases[g].n_steps; i++)
            for (int j = 0; j < 3; j++) {
                uint32_t v = plan->steps[i].input[j];
                if (!v) continue;
                lives->last_step[v] = i;
                lives->last_phase[v] = g;
            }
    for (uint32_t v = 1; v <= plan->n_values; v++)
        if (plan->values[v - 1].kept) lives->last_step[v] = lives->last_phase[v] = NEVER;
}

/* Returns a free slot for a value: the smallest one whose rows are large enough; else the largest one, which is
 * enlarged; else a new one. A kept value always gets a new slot: a step of several passes runs the whole plan once per
 * pass, and rows that an earlier pass kept must not be overwritten by a later one. */
static uint32_t take_slot(whit_plan *plan, struct lives *lives, uint32_t v)
{
    const whit_plan_value *value = &plan->values[v - 1];
    uint64_t bytes = value_bytes(value, 1);
    uint32_t best = NEVER;
    for (uint32_t s = 0; !value->kept && s < plan->n_slots; s++) {
        if (lives->owner[s] || plan->slots[s].rows != value->rows) continue;
        if (best == NEVER) {
            best = s;
            continue;
        }
        uint64_t have = plan->slots[best].row_bytes, offered = plan->slots[s].row_bytes;
        if (have < bytes ? offered > have : offered >= bytes && offered < have) best = s;
    }
    if (best == NEVER) {
        best = plan->n_slots++;
        plan->slots[best] = (whit_plan_slot){.rows = value->rows};
    }
    if (plan->slots[best].row_bytes < bytes) plan->slots[best].row_bytes = bytes;
    lives->owner[best] = v;
    return best;
}

static void place_output(whit_plan *plan, struct lives *lives, uint32_t i)
{
    const whit_plan_step *step = &plan->steps[i];
    whit_plan_value *output = &plan->values[step->output - 1];
    uint32_t first = step->input[0];
    if (first && !output->kept && may_overwrite(step->op) && lives->last_step[first] == i) {
        const whit_plan_value *input = &plan->values[first - 1];
        if (!input->external && input->acts.kind == output->acts.kind && input->width == output->width &&
            input->rows == output->rows && lives->owner[input->slot] == first) {
            output->slot = input->slot;
            lives->owner[output->slot] = step->output;
            return;
        }
    }
    output->slot = take_slot(plan, lives, step->output);
}

whit_status whit_slots_assign(whit_plan *plan, whit_error *error)
{
    size_t n = (size_t)plan->n_values + 1;
    uint32_t *memory = whit_zalloc_array(plan->allocator, 3 * n, sizeof *memory);
    if (!memory) return whit_fail_memory(error, "the plan", 3 * n * sizeof *memory);
    struct lives lives = {memory, memory + n, memory + 2 * n};
    find_lives(plan, &lives);
    for (uint32_t v = 1; v <= plan->n_values; v++) {
        whit_plan_value *value = &plan->values[v - 1];
        if (value->external) value->slot = take_slot(plan, &lives, v);
    }
    for (uint32_t g = 0; g < plan->n_phases; g++) {
        const whit_plan_phase *phase = &plan->phases[g];
        for (uint32_t i = phase->first; i < phase->first + phase->n_steps; i++) {
            const uint32_t output = plan->steps[i].output; /* consecutive steps of a split product have the same output,
                                                            * which is placed once */
            if (output && !(i && plan->steps[i - 1].output == output)) place_output(plan, &lives, i);
        }
        for (uint32_t s = 0; s < plan->n_slots; s++) {
            uint32_t v = lives.owner[s];
            if (v && lives.last_phase[v] <= g) lives.owner[s] = 0;
        }
    }
    whit_free(plan->allocator, memory, 3 * n * sizeof *memory);
    return WHIT_OK;
}
