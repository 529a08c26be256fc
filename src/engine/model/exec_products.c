/* SPDX-License-Identifier: MIT
 * Computes products: tiles of a matrix for some rows, alone or together with fused steps. */
#include "model/exec_step.h"

whit_acts whit_exec_acts(const whit_exec_step *step, const whit_exec *exec)
{
    uint32_t n_rows = exec->n_rows[step->rows];
    if (step->acts.kind != WHIT_ACTS_F32) return whit_acts_place(&step->acts, n_rows, step->n_cols, step->input[0]);
    const float *rows = whit_exec_row_of(step, exec, step->input[0], step->input_stride[0], 0);
    return whit_acts_of_f32(rows, step->input_stride[0], n_rows, step->n_cols);
}

/* Returns the address of the outputs of row `row` of a pass. */
static float *output_of(const whit_exec_step *step, const whit_exec *exec, uint32_t row)
{
    return whit_exec_row_of(step, exec, step->output, step->output_stride, row);
}

#define TILE_STEP(name)                                                                                                \
    static void name(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,          \
                     uint32_t begin, uint32_t end)

/* Rounds the outputs of tiles [begin, end) of some rows to the fixed scale of the matrix. */
static void fix_outputs(const whit_exec_step *step, const whit_exec *exec, whit_exec_rows rows, uint32_t begin,
                        uint32_t end)
{
    const uint32_t first = begin * WHIT_TILE_ROWS, n_outputs = step->tensor->type.n_rows;
    const uint32_t last = end * WHIT_TILE_ROWS < n_outputs ? end * WHIT_TILE_ROWS : n_outputs;
    for (uint32_t r = rows.begin; r < rows.begin + rows.n; r++)
        exec->kernels->fix_scale(output_of(step, exec, r) + first, step->output_scale, last - first);
}

TILE_STEP(run_linear)
{
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    step->kernel->run(step->tensor, &acts, begin, end, output_of(step, exec, rows.begin), step->output_stride,
                      whit_exec_scratch(exec, step->kernel, &acts, worker));
    if (step->output_scale != 0) fix_outputs(step, exec, rows, begin, end);
}

/* Computes tiles and adds the matrix's corrections while the tiles are in cache. */
TILE_STEP(run_linear_corrected)
{
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    whit_exec_prefetch_corrections(step, exec, worker, rows, begin, end);
    run_linear(step, exec, worker, rows, begin, end);
    whit_exec_correct(step, exec, worker, rows, &acts, begin, end, output_of(step, exec, rows.begin));
}

TILE_STEP(run_linear_adapted)
{
    whit_exec_prefetch_low(step, exec, begin, end);
    if (whit_is_corrected(step->tensor))
        run_linear_corrected(step, exec, worker, rows, begin, end);
    else
        run_linear(step, exec, worker, rows, begin, end);
    whit_exec_add_low(step, exec, begin, end);
}

TILE_STEP(run_linear_added)
{
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    step->kernel->run_added(step->tensor, &acts, begin, end, output_of(step, exec, rows.begin), step->output_stride,
                            whit_exec_scratch(exec, step->kernel, &acts, worker));
}

TILE_STEP(run_linear_gated)
{
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    step->kernel->run_gated(step->tensor, step->gated, step->gate, &acts, begin, end, output_of(step, exec, rows.begin),
                            step->output_stride, whit_exec_scratch(exec, step->kernel, &acts, worker));
}

/* Estimates the logits of tiles of the head from the high nibbles of its codes; used if only the largest logits are
 * wanted. */
TILE_STEP(run_screen)
{
    (void)worker;
    whit_acts all = whit_exec_acts(step, exec), acts = whit_acts_rows(&all, rows.begin, rows.n);
    exec->kernels->screen(step->tensor, &acts, begin, end, output_of(step, exec, rows.begin), step->output_stride);
}

void whit_exec_bind_tiles(whit_exec_step *step, bool is_adapted)
{
    switch (step->plan->op) {
    case WHIT_PLAN_LINEAR_ADDED: step->run_tiles = run_linear_added; break;
    case WHIT_PLAN_LINEAR_GATED: step->run_tiles = run_linear_gated; break;
    case WHIT_PLAN_EXPERT_LINEAR: step->run_tiles = whit_exec_multiply_expert; break;
    case WHIT_PLAN_SCREEN: step->run_tiles = run_screen; break;
    default:
        if (is_adapted)
            step->run_tiles = run_linear_adapted;
        else if (whit_is_corrected(step->tensor))
            step->run_tiles = run_linear_corrected;
        else
            step->run_tiles = run_linear;
        break;
    }
}
