/* SPDX-License-Identifier: MIT
 * Products that go on at once where the kernels offer it. A gate and what it gates: of two matrices' outputs
 * only f(gate) * up is written, half as much, where the gate's own output would be. A matrix whose product is
 * added to something: it is added to what lies there. */
#include "model/exec.h"

void whit_exec_join_gate(const whit_plan *plan, uint32_t g, whit_exec_step *steps)
{
    const whit_plan_group *group = &plan->groups[g];
    if (group->domain != WHIT_DOMAIN_TILES || group->n_steps != 2 || group->selected || g + 1 == plan->n_groups) return;
    uint32_t first = group->first, next = plan->groups[g + 1].first;
    const whit_plan_step *gate = &plan->steps[first], *up = gate + 1, *gates = &plan->steps[next];
    if (gates->op != WHIT_PLAN_GATE || gates->input[0] != gate->output || gates->input[1] != up->output ||
        !whit_exec_is_read_once(plan, gate->output) || !whit_exec_is_read_once(plan, up->output))
        return;
    const whit_tensor_type *a = &steps[first].tensor->type, *b = &steps[first + 1].tensor->type;
    if (a->codec != b->codec || a->has_offset != b->has_offset || a->n_rows != b->n_rows || a->n_cols != b->n_cols)
        return;
    steps[first].gated = &steps[next];
    steps[next].gated = &steps[first];
}

bool whit_exec_gates(const whit_exec_step *step, const whit_exec *exec)
{
    if (!step->gated || exec->adapt.n_spans) return false;
    const whit_exec_step *gate = step->gate ? step->gated : step;
    const whit_matmul_kernel *kernel = whit_exec_kernel(gate, exec->batch->n_rows);
    return kernel->run_gated && kernel == whit_exec_kernel(gate + 1, exec->batch->n_rows);
}

void whit_exec_run_gated(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                         uint32_t begin, uint32_t end)
{
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    const whit_matmul_kernel *kernel = whit_exec_kernel(step, all.n_tokens);
    float *y = (float *)(void *)step->output + rows.begin * step->output_stride;
    kernel->run_gated(step->tensor, step[1].tensor, step->gated->gate, &acts, begin, end, y, step->output_stride,
                      whit_exec_scratch(exec, kernel, &acts, worker));
}

void whit_exec_join_sum(const whit_plan *plan, uint32_t g, whit_exec_step *steps)
{
    const whit_plan_group *group = &plan->groups[g];
    if (group->domain != WHIT_DOMAIN_TILES || group->n_steps != 1 || group->selected || g + 1 == plan->n_groups) return;
    whit_exec_step *matrix = &steps[group->first], *sum = &steps[plan->groups[g + 1].first];
    const whit_plan_step *add = &plan->steps[plan->groups[g + 1].first];
    uint32_t product = plan->steps[group->first].output;
    /* A sum that is made where its first term lies. */
    if (add->op != WHIT_PLAN_ADD || sum->selected || add->input[1] != product ||
        !whit_exec_is_read_once(plan, product) || sum->input[0] != sum->output ||
        sum->input_stride[0] != matrix->output_stride || sum->output_stride != matrix->output_stride)
        return;
    matrix->added = sum;
    sum->added = matrix;
}

bool whit_exec_adds(const whit_exec_step *step, const whit_exec *exec)
{
    if (!step->added || exec->adapt.n_spans) return false;
    return whit_exec_kernel(step->tensor ? step : step->added, exec->batch->n_rows)->run_added != NULL;
}
