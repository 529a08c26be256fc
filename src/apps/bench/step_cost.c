/* SPDX-License-Identifier: MIT
 * Counts the bytes that a pass reads and its multiply-adds, by the session's plan and kernels. */
#include <math.h>
#include <stdlib.h>

#include "bench/bench.h"

static const char *tensor_name(const whit_session *session, int32_t weight)
{
    return weight >= 0 ? whit_ndf_tensor_name(session->model->file, (uint32_t)weight) : "";
}

static bool is_layer_matrix(const char *name)
{
    return !strncmp(name, "layers.", 7);
}

static void add_range(bench_count *count, const uint8_t *data, uint64_t size_bytes)
{
    if (!size_bytes) return;
    count->ranges[count->n_ranges++] = (bench_range){data, size_bytes};
    count->pass_bytes += (double)size_bytes;
}

/* Returns the expected share of the experts that n_rows tokens use, if each token uses n_used of n_experts at
 * random. */
static double share_of_experts(const whit_plan_step *step, uint32_t n_rows)
{
    return 1 - pow(1 - (double)step->n_used / step->n_experts, n_rows);
}

/* Counts the expert matrices of a step: the bytes that n_rows tokens read, and the multiply-adds of one token. */
static void count_experts(const whit_exec_step *step, uint32_t n_rows, bench_count *count)
{
    const double share = share_of_experts(step->plan, n_rows);
    const whit_tensor *w = step->tensor;
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        add_range(count, w->part[part], (uint64_t)((double)w->part_bytes[part] * share));
    count->layer_macs += (double)w->type.n_rows / step->plan->n_experts * step->plan->n_used * w->type.n_cols;
    if (step->kernel->isa > count->isa) count->isa = step->kernel->isa;
}

static void count_tensor(const whit_session *session, const whit_exec_step *step, int32_t weight,
                         const whit_tensor *tensor, bench_count *count)
{
    bool by_half = step->plan->op == WHIT_PLAN_SCREEN;
    if (by_half) count->survivor_bytes = (double)tensor->part_bytes[WHIT_PART_LOW] / tensor->type.n_rows;
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (!by_half || part != WHIT_PART_LOW) add_range(count, tensor->part[part], tensor->part_bytes[part]);
    double macs = (double)tensor->type.n_rows * tensor->type.n_cols;
    if (!is_layer_matrix(tensor_name(session, weight))) {
        count->head_macs += macs;
        return;
    }
    count->layer_macs += macs;
    if (step->kernel->isa > count->isa) count->isa = step->kernel->isa;
}

/* Returns the bytes of a recurrent layer's state for one sequence. Every pass reads the state; decoding writes it back
 * only every WHIT_STATE_BACK_TOKENS tokens. */
static double state_bytes(const whit_plan_step *step)
{
    return (double)step->n_heads * step->head_dim * step->value_dim * sizeof(float);
}

static void count_step(const whit_session *session, const whit_exec_step *step, uint32_t n_rows, bench_count *count)
{
    if (step->plan->op == WHIT_PLAN_EXPERT_LINEAR) {
        count_experts(step, n_rows, count);
    } else if (step->run_tiles) {
        count_tensor(session, step, step->plan->weight, step->tensor, count);
        if (step->gated) count_tensor(session, step, step->plan->gated, step->gated, count);
    } else if (step->plan->op == WHIT_PLAN_DELTA) {
        count->pass_bytes +=
            (1 + 1.0 / WHIT_STATE_BACK_TOKENS) * session->kv.state.n_sequences * state_bytes(step->plan);
    } else if (step->plan->op == WHIT_PLAN_EMBED) {
        count->row_bytes += (double)whit_codec_tensor_bytes(step->tensor) / step->tensor->type.n_rows;
    } else if (step->vector && step->plan->op != WHIT_PLAN_RESCORE) {
        count->pass_bytes += (double)step->vector_elems * sizeof(float);
    }
}

whit_status bench_count_open(const whit_session *session, uint32_t n_rows, uint32_t n_selected, bool screened,
                             bench_count *count, whit_error *error)
{
    const whit_exec *exec = &session->exec;
    const uint32_t n[WHIT_ROWS_COUNT] = {n_rows, n_selected};
    const int mode[WHIT_ROWS_COUNT] = {WHIT_EXEC_PLAIN, screened ? WHIT_EXEC_SCREENED : WHIT_EXEC_PLAIN};
    *count = (bench_count){.ranges = malloc((size_t)session->plan.n_steps * WHIT_PART_COUNT * sizeof *count->ranges)};
    if (!count->ranges) return whit_fail_memory(error, "the count", session->plan.n_steps);
    for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++) {
        if (!n[rows]) continue;
        const double before = count->pass_bytes;
        const whit_exec_bound *schedule = whit_exec_bound_of(exec, (whit_row_set)rows, mode[rows], n[rows]);
        for (uint32_t g = 0; g < schedule->n_phases; g++)
            for (uint32_t i = 0; i < schedule->phases[g].n_steps; i++)
                count_step(session, &schedule->phases[g].steps[i], n[rows], count);
        if (rows == WHIT_ROWS_SELECTED) count->selected_bytes = count->pass_bytes - before;
    }
    count->kv = &session->kv;
    return WHIT_OK;
}

void bench_count_close(bench_count *count)
{
    free(count->ranges);
    count->ranges = NULL;
}

double bench_cache_bytes(const whit_kv *kv, double position)
{
    double bytes = 0;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (class->role == WHIT_KV_ROLE_SINKS) continue;
        const double seen = class->window && position > class->window ? class->window : position;
        bytes += seen * (double)class->pool.block_bytes / WHIT_KV_BLOCK_TOKENS;
    }
    return bytes;
}

static void add_word(char label[BENCH_LABEL_BYTES], const char *word)
{
    size_t n = strlen(label);
    snprintf(label + n, BENCH_LABEL_BYTES - n, "%s%s", n ? "+" : "", word);
}

void bench_phase_label(const whit_session *session, const whit_exec_phase *phase, char label[BENCH_LABEL_BYTES])
{
    label[0] = 0;
    for (uint32_t i = 0; i < phase->n_steps; i++) {
        const whit_plan_step *step = phase->steps[i].plan;
        const int32_t weights[] = {step->weight, step->gated};
        if (!phase->steps[i].run_tiles) add_word(label, whit_plan_op_name((whit_plan_op)step->op));
        for (int k = 0; phase->steps[i].run_tiles && k < 2; k++) {
            const char *name = tensor_name(session, weights[k]), *last = strrchr(name, '.');
            if (*name) add_word(label, last ? last + 1 : name);
        }
    }
}
