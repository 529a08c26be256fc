/* SPDX-License-Identifier: MIT
 * What a step reads and multiplies, counted from the session's own plan and kernels. */
#include <stdlib.h>

#include "cli/bench.h"

static const char *tensor_name(const whit_session *session, uint32_t step)
{
    int32_t weight = session->plan.steps[step].weight;
    return weight >= 0 ? whit_ndf_tensor_name(session->model->file, (uint32_t)weight) : "";
}

static bool is_body(const char *name)
{
    return !strncmp(name, "layers.", 7);
}

static void add_range(bench_count *count, const uint8_t *data, uint64_t size_bytes)
{
    if (!size_bytes) return;
    count->ranges[count->n_ranges++] = (bench_range){data, size_bytes};
    count->pass_bytes += (double)size_bytes;
}

static void count_linear(const whit_session *session, uint32_t i, uint32_t n_rows, uint32_t n_selected, bool screened,
                         bench_count *count)
{
    const whit_exec_step *step = &session->exec.steps[i];
    const whit_tensor *tensor = step->tensor;
    uint32_t rows = step->selected ? n_selected : n_rows;
    if (rows == 0) return;
    bool by_half = screened && step->is_screened && rows <= WHIT_EXEC_SCREENED_ROWS;
    if (by_half) count->survivor_bytes = (double)tensor->part_bytes[WHIT_PART_LOW] / tensor->type.n_rows;
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (!by_half || part != WHIT_PART_LOW) add_range(count, tensor->part[part], tensor->part_bytes[part]);
    const whit_matmul_kernel *kernel = whit_exec_kernel(step, rows);
    double macs = (double)tensor->type.n_rows * tensor->type.n_cols;
    if (!is_body(tensor_name(session, i))) {
        count->head_macs += macs;
        return;
    }
    count->body_macs += macs;
    if (kernel->isa > count->isa) count->isa = kernel->isa;
}

whit_status bench_count_open(const whit_session *session, uint32_t n_rows, uint32_t n_selected, bool screened,
                             bench_count *count, whit_error *error)
{
    const whit_plan *plan = &session->plan;
    const whit_kv_shape *kv = &session->kv.shape;
    *count = (bench_count){.ranges = malloc((size_t)plan->n_steps * WHIT_PART_COUNT * sizeof *count->ranges)};
    if (!count->ranges) return whit_fail_memory(error, "the count", plan->n_steps);
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const whit_exec_step *step = &session->exec.steps[i];
        if (plan->steps[i].op == WHIT_PLAN_LINEAR) {
            count_linear(session, i, n_rows, n_selected, screened, count);
        } else if (plan->steps[i].op == WHIT_PLAN_EMBED) {
            uint64_t bytes = 0;
            whit_codec_total_bytes(&step->tensor->type, &bytes);
            count->row_bytes += (double)bytes / step->tensor->type.n_rows;
        } else if (step->vector && (!step->selected || n_selected)) {
            count->pass_bytes += (double)step->vector_elems * sizeof(float);
        }
    }
    count->kv_bytes_per_position =
        (double)whit_kv_block_bytes(kv->type, kv->head_dim) / WHIT_KV_BLOCK_TOKENS * kv->n_kv_heads * kv->n_layers;
    return WHIT_OK;
}

void bench_count_close(bench_count *count)
{
    free(count->ranges);
    count->ranges = NULL;
}

static void add_word(char label[BENCH_LABEL_BYTES], const char *word)
{
    size_t n = strlen(label);
    snprintf(label + n, BENCH_LABEL_BYTES - n, "%s%s", n ? "+" : "", word);
}

void bench_group_label(const whit_session *session, const whit_plan_group *group, char label[BENCH_LABEL_BYTES])
{
    label[0] = 0;
    for (uint32_t i = group->first; i < group->first + group->n_steps; i++) {
        const char *name = tensor_name(session, i), *last = strrchr(name, '.');
        uint8_t op = session->plan.steps[i].op;
        add_word(label, op == WHIT_PLAN_LINEAR ? (last ? last + 1 : name) : whit_plan_op_name((whit_plan_op)op));
    }
}
