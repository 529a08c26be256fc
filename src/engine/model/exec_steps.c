/* SPDX-License-Identifier: MIT
 * Implements steps on rows: each function runs some items of one operation, with the kernels of the bound step. */
#include "model/exec_step.h"

#include "base/file.h"
#include "kernels/codec.h"
#include "kernels/math.h"

#include <string.h>

#define INPUT(i, r) whit_exec_row_of(step, exec, step->input[i], step->input_stride[i], r)
#define OUTPUT(r)   whit_exec_row_of(step, exec, step->output, step->output_stride, r)

#define ROW_STEP(name)                                                                                                 \
    static void name(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin, uint32_t end)

#define RELEASE_ROWS 16 /* number of looked-up rows after which the pages of a large table are released */

/* Releases the pages of a table, except those of tiles [kept_begin, kept_end). */
static void release_table(const whit_exec_step *step)
{
    const uint64_t n_tiles = (step->tensor->type.n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    for (int part = 0; part < WHIT_PART_COUNT; part++) {
        const uint8_t *data = step->tensor->part[part];
        const uint64_t tile_bytes = step->tensor->part_bytes[part] / n_tiles;
        const uint64_t end = step->tensor->part_bytes[part], kept_end = step->kept_end * tile_bytes;
        whit_map_release(data, step->kept_begin * tile_bytes);
        whit_map_release(data + kept_end, end > kept_end ? end - kept_end : 0);
    }
}

ROW_STEP(run_embed)
{
    (void)worker;
    if (step->plan->gate == WHIT_INDEX_ID) {
        whit_codec_get_rows(step->tensor, exec->batch->ids + begin, end - begin, OUTPUT(begin), step->output_stride);
        /* A row touches few pages, but the system may map neighbouring pages, too, up to the size of a huge page. */
        bool many = end - begin >= RELEASE_ROWS || exec->batch->positions[begin] % RELEASE_ROWS == RELEASE_ROWS - 1;
        if (step->releases_pages && many) release_table(step);
        return;
    }
    for (uint32_t r = begin; r < end; r++) {
        uint32_t row = exec->batch->types ? exec->batch->types[r] : 0, last = step->tensor->type.n_rows - 1;
        if (step->plan->gate == WHIT_INDEX_POSITION) row = exec->batch->positions[r];
        const int32_t id = (int32_t)(row < last ? row : last);
        whit_codec_get_rows(step->tensor, &id, 1, OUTPUT(r), step->output_stride);
    }
}

ROW_STEP(run_layer_norm)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        exec->kernels->layer_norm(INPUT(0, r), step->vector, step->second, step->width, step->constant, OUTPUT(r));
}

ROW_STEP(run_activate)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        exec->kernels->activate(INPUT(0, r), step->width, (whit_activation)step->plan->gate, OUTPUT(r));
}

ROW_STEP(run_norm)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        for (uint32_t i = 0; i < step->width; i += step->head_dim)
            exec->kernels->rms_norm(INPUT(0, r) + i, step->vector, step->head_dim, step->constant, OUTPUT(r) + i);
}

ROW_STEP(run_acts)
{
    (void)worker;
    whit_acts acts = whit_acts_place(&step->acts, exec->n_rows[step->rows], step->width, step->output);
    exec->kernels->quantise(INPUT(0, 0), step->input_stride[0], &acts, begin, end);
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
    for (uint32_t r = begin; r < end; r++) {
        const float *table = step->rope->tables + (size_t)whit_exec_batch_row(step, exec, r) * 2 * step->rope->pairs;
        exec->kernels->rope_half(INPUT(0, r), step->width / step->head_dim, step->head_dim, step->rotary / 2, table,
                                 OUTPUT(r));
    }
}

/* Prefetches the lines to which a key is written. A key is scattered over many lines of its block, all of them out of
 * cache: prefetching all of them takes a tenth of the time of waiting for one store after another. */
static void prefetch_keys(whit_kv_type type, const void *block, uint32_t slot, uint32_t n, uint32_t head_dim)
{
    const uint8_t *keys = whit_kv_block_arrays(type, head_dim, block).keys;
    uint32_t dims_together = type == WHIT_KV_I8 ? 4 : 1;
    size_t elem_bytes = whit_kv_elem_bytes(type) * dims_together;
    for (uint32_t d = 0; d < head_dim; d += dims_together, keys += WHIT_KV_BLOCK_TOKENS * elem_bytes)
        for (size_t at = slot * elem_bytes / 64 * 64; at < (slot + n) * elem_bytes; at += 64)
            __builtin_prefetch(keys + at, 1);
}

/* Returns the number of rows from r on, before `end`, that belong to one sequence and have consecutive positions in one
 * block. */
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
    const whit_exec_cache *cache = step->cache;
    const whit_kv_class *class = cache->open;
    (void)worker;
    for (uint32_t r = begin, n; r < end; r += n) {
        uint32_t position = exec->batch->positions[r], sequence = exec->batch->sequences[r];
        uint32_t block = position / WHIT_KV_BLOCK_TOKENS, slot = position % WHIT_KV_BLOCK_TOKENS;
        const float *k = INPUT(0, r), *v = INPUT(1, r);
        n = rows_together(exec->batch, r, end);
        for (uint32_t head = 0; head < class->n_kv_heads; head++)
            prefetch_keys(class->type, whit_kv_class_block(class, step->layer, head, sequence, block), slot, n,
                          step->head_dim);
        for (uint32_t head = 0; head < class->n_kv_heads; head++)
            cache->append(whit_kv_class_block(class, step->layer, head, sequence, block), slot, n, step->head_dim,
                          k + (size_t)head * step->head_dim, v + (size_t)head * step->head_dim, step->input_stride[0]);
    }
}

ROW_STEP(run_gate)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) step->gate(INPUT(0, r), INPUT(1, r), step->width, OUTPUT(r));
}

ROW_STEP(run_add)
{
    (void)worker;
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

ROW_STEP(run_temperature)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        const uint32_t periods = exec->positions[step->rows][r] / step->plan->window;
        copy_row(step, INPUT(0, r), OUTPUT(r));
        if (periods)
            exec->kernels->scale(OUTPUT(r), (float)(1 + (double)step->constant * whit_log_f64(1.0 + periods)),
                                 step->width);
    }
}

ROW_STEP(run_hadamard)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        exec->kernels->hadamard_row(INPUT(0, r), step->vector, step->width, step->head_dim, step->plan->is_inverse,
                                    OUTPUT(r));
}

ROW_STEP(run_softcap)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        copy_row(step, INPUT(0, r), OUTPUT(r));
        exec->kernels->softcap(OUTPUT(r), step->constant, step->width);
    }
}

ROW_STEP(run_slice)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        memmove(OUTPUT(r), INPUT(0, r) + step->plan->first, step->width * sizeof(float));
}

ROW_STEP(run_join)
{
    const uint32_t first = exec->plan->values[step->plan->input[0] - 1].width;
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        memcpy(OUTPUT(r), INPUT(0, r), first * sizeof(float));
        memcpy(OUTPUT(r) + first, INPUT(1, r), (step->width - first) * sizeof(float));
    }
}

ROW_STEP(run_scale_by)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        copy_row(step, INPUT(0, r), OUTPUT(r));
        exec->kernels->scale(OUTPUT(r), step->vector[0], step->width);
    }
}

ROW_STEP(run_clamp)
{
    const float limit = step->constant;
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        const float *x = INPUT(0, r);
        float *out = OUTPUT(r);
        for (uint32_t i = 0; i < step->width; i++) {
            const float below = x[i] > limit ? limit : x[i]; /* NaN stays NaN */
            out[i] = !step->plan->only_above && below < -limit ? -limit : below;
        }
    }
}

ROW_STEP(run_scale_rows)
{
    (void)worker;
    for (uint32_t r = begin; r < end; r++) {
        copy_row(step, INPUT(0, r), OUTPUT(r));
        exec->kernels->scale(OUTPUT(r), 1.0f / (1.0f + whit_exp_f32(-INPUT(1, r)[0])), step->width);
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

ROW_STEP(run_rescore)
{
    uint32_t *rows = (uint32_t *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    whit_acts acts = whit_acts_place(&step->acts, exec->n_rows[step->rows], step->n_cols, step->input[1]);
    const whit_tensor own = whit_codec_tiles(step->tensor, step->columns.begin / WHIT_TILE_ROWS,
                                             (step->columns.end + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS);
    for (uint32_t r = begin; r < end; r++)
        exec->n_rescored[exec->batch->selected_begin + r] = whit_screen_finish(
            exec->kernels, &own, &acts, r, exec->batch->tops[r], INPUT(0, r) + step->columns.begin, rows);
}

/* ---- fused norms ------------------------------------------------------------------------------ */

/* Computes the norm, and the activations made of it, for rows that step->source describes. An input row that no later
 * step reads is stored only in scratch. */
static void norm_acts(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_norm_rows rows,
                      uint32_t begin, uint32_t end)
{
    float *scratch = (float *)(void *)(exec->scratch + worker * exec->scratch_bytes);
    whit_acts acts = whit_acts_place(&step->acts, exec->n_rows[step->rows], step->width, step->made);
    rows.source = step->source;
    rows.weight = step->vector;
    rows.eps = step->constant;
    rows.normed = scratch;
    if (!rows.x) rows.x = scratch;
    exec->kernels->norm_acts(&rows, &acts, begin, end);
}

ROW_STEP(run_norm_acts)
{
    const size_t stride = step->input_stride[0];
    norm_acts(step, exec, worker,
              (whit_norm_rows){.a = INPUT(0, 0), .a_stride = stride, .b = INPUT(0, 0), .b_stride = stride}, begin, end);
}

ROW_STEP(run_gate_norm_acts)
{
    norm_acts(
        step, exec, worker,
        (whit_norm_rows){
            .a = INPUT(0, 0), .a_stride = step->input_stride[0], .b = INPUT(1, 0), .b_stride = step->input_stride[1]},
        begin, end);
}

ROW_STEP(run_add_norm_acts)
{
    norm_acts(step, exec, worker,
              (whit_norm_rows){.a = INPUT(0, 0),
                               .a_stride = step->input_stride[0],
                               .b = INPUT(1, 0),
                               .b_stride = step->input_stride[1],
                               .x = OUTPUT(0),
                               .x_stride = step->output_stride},
              begin, end);
}

/* ---- binding --------------------------------------------------------------------------------- */

void whit_exec_bind_items(whit_exec_step *step)
{
    static whit_exec_items_fn *const runs[WHIT_PLAN_OP_COUNT] = {
        [WHIT_PLAN_EMBED] = run_embed,
        [WHIT_PLAN_NORM] = run_norm,
        [WHIT_PLAN_ACTS] = run_acts,
        [WHIT_PLAN_BIAS] = run_bias,
        [WHIT_PLAN_ROPE] = run_rope,
        [WHIT_PLAN_APPEND] = run_append,
        [WHIT_PLAN_ATTEND] = whit_exec_attend,
        [WHIT_PLAN_ROPE_ATTEND] = whit_exec_attend,
        [WHIT_PLAN_GATE] = run_gate,
        [WHIT_PLAN_ADD] = run_add,
        [WHIT_PLAN_SCALE] = run_scale,
        [WHIT_PLAN_SELECT] = run_select,
        [WHIT_PLAN_TEMPERATURE] = run_temperature,
        [WHIT_PLAN_CONV] = whit_exec_convolve,
        [WHIT_PLAN_DELTA] = whit_exec_run_delta,
        [WHIT_PLAN_HADAMARD] = run_hadamard,
        [WHIT_PLAN_SOFTCAP] = run_softcap,
        [WHIT_PLAN_SLICE] = run_slice,
        [WHIT_PLAN_JOIN] = run_join,
        [WHIT_PLAN_SCALE_BY] = run_scale_by,
        [WHIT_PLAN_CLAMP] = run_clamp,
        [WHIT_PLAN_SCALE_ROWS] = run_scale_rows,
        [WHIT_PLAN_ROUTE] = whit_exec_route,
        [WHIT_PLAN_DISPATCH] = whit_exec_copy_pairs,
        [WHIT_PLAN_EXPERT_BIAS] = whit_exec_add_expert_bias,
        [WHIT_PLAN_COMBINE] = whit_exec_combine,
        [WHIT_PLAN_LAYER_NORM] = run_layer_norm,
        [WHIT_PLAN_ACTIVATE] = run_activate,
        [WHIT_PLAN_RESCORE] = run_rescore,
        [WHIT_PLAN_NORM_ACTS] = run_norm_acts,
        [WHIT_PLAN_ADD_NORM_ACTS] = run_add_norm_acts,
        [WHIT_PLAN_GATE_NORM_ACTS] = run_gate_norm_acts,
    };
    step->run = runs[step->plan->op];
    step->ready = step->plan->op == WHIT_PLAN_ROPE_ATTEND ? whit_exec_ready_rotated : whit_exec_ready;
}
