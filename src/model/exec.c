/* SPDX-License-Identifier: MIT
 * Binding a plan and walking it. What the steps do is in exec_steps.c. */
#include "model/exec.h"

#include "base/clock.h"
#include "quant/requantise.h"

#include <string.h>

/* ---- binding -------------------------------------------------------------------------------- */

static uint32_t bucket_of(uint32_t n_rows)
{
    if (n_rows <= 8) return n_rows - 1;
    uint32_t bucket = 7 + (31 - (uint32_t)__builtin_clz(n_rows / 8));
    return bucket < WHIT_EXEC_BUCKETS ? bucket : WHIT_EXEC_BUCKETS - 1;
}

static uint32_t bucket_rows(uint32_t bucket)
{
    return bucket < 8 ? bucket + 1 : 8u << (bucket - 7);
}

static void bind_value(const whit_exec *exec, uint32_t value, uint8_t **pointer, size_t *stride)
{
    if (!value) return;
    const whit_plan_value *v = &exec->plan->values[value - 1];
    if (exec->slots) *pointer = exec->slots + exec->plan->slots[v->slot].offset_bytes; /* NULL: counting */
    *stride = whit_plan_stride(v);
}

/* Products take columns by so many. */
#define ROWS_TOGETHER 32

/* Stands before what a kernel prepared: by whom, for which run of a group and which activations. All zero
 * is nothing yet, since runs count from 1. */
typedef struct prepared_for {
    void (*prepare)(const whit_acts *x, void *scratch);
    uint64_t run;
    const void *acts;
    uint32_t n_tokens;
} prepared_for;
_Static_assert(sizeof(prepared_for) <= WHIT_ALIGN_BYTES, "one line in front of the tables");

/* Finds the kernels of a matrix for every number of rows, and has scratch be as large as they need. */
static void find_kernels(whit_exec *exec, const whit_tensor_type *type, const whit_acts_spec *acts, uint32_t n_rows,
                         const whit_matmul_kernel *kernels[WHIT_EXEC_BUCKETS])
{
    for (uint32_t b = 0; b < WHIT_EXEC_BUCKETS; b++) {
        kernels[b] = whit_matmul_find(exec->kernels, type, acts, bucket_rows(b));
        if (!kernels[b]->scratch_bytes || (b && bucket_rows(b) > n_rows)) continue;
        uint32_t rows = b < 8 ? bucket_rows(b) : 2 * bucket_rows(b) - 1;
        size_t bytes = kernels[b]->scratch_bytes(type, acts, rows < n_rows ? rows : n_rows);
        size_t *most = kernels[b]->prepare ? &exec->prepared_bytes : &exec->scratch_bytes;
        if (kernels[b]->prepare) bytes = whit_round_up(bytes, WHIT_ALIGN_BYTES) + WHIT_ALIGN_BYTES;
        if (bytes > *most) *most = bytes;
    }
}

static void bind_linear(whit_exec *exec, uint32_t i, const whit_plan_value *input, uint32_t n_batch_rows,
                        whit_exec_step *step)
{
    const whit_tensor_type *type = &step->tensor->type;
    step->acts = input->acts;
    step->n_cols = input->width;
    step->is_screened = i + 1 < exec->plan->n_steps && exec->plan->steps[i + 1].op == WHIT_PLAN_RESCORE;
    step->n_tiles = (type->n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    find_kernels(exec, type, &step->acts, n_batch_rows, step->kernels);
    if (step->selected) return; /* adapters change the layers' matrices only */
    whit_tensor_type factor = whit_requantise_type(WHIT_CODEC_I8, WHIT_ADAPTER_MAX_RANK, step->n_cols);
    find_kernels(exec, &factor, &step->acts, n_batch_rows, step->low_kernels);
}

static void bind_step(whit_exec *exec, uint32_t i, const whit_tensor *tensors, uint32_t n_batch_rows,
                      whit_exec_step *step)
{
    const whit_plan_step *from = &exec->plan->steps[i];
    *step = (whit_exec_step){.n_together = 1,
                             .layer = from->layer,
                             .group = from->group,
                             .rotary = from->rotary,
                             .window = from->window,
                             .constant = from->constant};
    bind_value(exec, from->input[0], &step->input[0], &step->input_stride[0]);
    bind_value(exec, from->input[1], &step->input[1], &step->input_stride[1]);
    bind_value(exec, from->output, &step->output, &step->output_stride);
    const whit_plan_value *shape = &exec->plan->values[(from->output ? from->output : from->input[0]) - 1];
    step->width = shape->width;
    step->selected = shape->selected;
    step->weight = from->weight;
    if (from->weight >= 0) {
        step->tensor = &tensors[from->weight];
        step->vector = (const float *)(const void *)step->tensor->part[WHIT_PART_CODES];
        step->vector_elems = step->tensor->type.n_cols;
    }
    if (from->op == WHIT_PLAN_ACTS) step->acts = exec->plan->values[from->output - 1].acts;
    if (from->op == WHIT_PLAN_LINEAR) bind_linear(exec, i, &exec->plan->values[from->input[0] - 1], n_batch_rows, step);
    if (from->op == WHIT_PLAN_RESCORE) {
        const whit_plan_value *acts = &exec->plan->values[from->input[1] - 1];
        step->acts = acts->acts;
        step->n_cols = acts->width;
        size_t bytes = (size_t)step->width * sizeof(uint32_t);
        if (bytes > exec->scratch_bytes) exec->scratch_bytes = bytes;
    }
    if (from->op == WHIT_PLAN_NORM && step->width * sizeof(float) > exec->scratch_bytes)
        exec->scratch_bytes = step->width * sizeof(float); /* of joined steps */
    whit_exec_bind_step(step, from, exec->kernels);
}

/* Rows whose queries share a reading of a block, of so many in a batch: as many as the kernels want,
 * fewer where there would be little to share out among the threads. */
static uint32_t rows_of_tile(const whit_exec *exec, uint32_t n_threads, uint32_t n_rows)
{
    enum { LEAST_QUERIES = 128, ITEMS_OF_THREAD = 8 };
    uint32_t n_queries = exec->kernels->kv_queries, n = n_rows * exec->heads_per_kv_head;
    if (!exec->heads_per_kv_head) return 0; /* a plan without attention */
    while (n_queries > LEAST_QUERIES && n / n_queries * exec->n_kv_heads < ITEMS_OF_THREAD * n_threads) n_queries /= 2;
    return exec->heads_per_kv_head < n_queries ? n_queries / exec->heads_per_kv_head : 1;
}

void whit_exec_place(whit_exec *exec, whit_plan *plan, const whit_tensor *tensors, const whit_kernels *kernels,
                     whit_kv *kv, const whit_exec_options *options, whit_arena *arena)
{
    *exec = (whit_exec){.plan = plan,
                        .kernels = kernels,
                        .kv = kv,
                        .rope_pairs = options->rope_pairs,
                        .n_batch_rows = options->n_batch_rows};
    uint64_t slot_bytes;
    if (!whit_plan_layout(plan, options->n_batch_rows, options->n_selected_rows, &slot_bytes)) {
        arena->overflow = true;
        return;
    }
    const whit_kv_shape *shape = &kv->shape;
    exec->kv_append = whit_kv_append(kernels, shape->type);
    exec->kv_query = whit_kv_query(kernels, shape->type);
    exec->kv_attend = whit_kv_attend(kernels, shape->type);
    exec->n_kv_heads = shape->n_kv_heads;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].op == WHIT_PLAN_ATTEND) {
            uint32_t q = plan->values[plan->steps[i].output - 1].width;
            exec->heads_per_kv_head = q / (shape->n_kv_heads * shape->head_dim);
        }
    uint32_t n_queries = exec->heads_per_kv_head * rows_of_tile(exec, 1, options->n_batch_rows);
    exec->scratch_bytes = whit_exec_attend_scratch_bytes(shape->type, shape->head_dim, n_queries);

    whit_exec_step *steps = whit_arena_take(arena, plan->n_steps, sizeof *steps);
    exec->slots = whit_arena_take(arena, slot_bytes, 1);
    exec->rope_frequencies = whit_arena_take(arena, options->rope_pairs, sizeof *exec->rope_frequencies);
    exec->rope_tables =
        whit_arena_take(arena, (uint64_t)options->n_batch_rows * 2 * options->rope_pairs, sizeof(float));
    exec->n_rescored = whit_arena_take(arena, options->n_selected_rows, sizeof *exec->n_rescored);
    exec->row_tiles = whit_arena_take(arena, (uint64_t)options->n_batch_rows + 1, sizeof *exec->row_tiles);
    if (kernels->kv_makes_f16 && shape->type == WHIT_KV_F16) {
        exec->rooms = whit_arena_take(arena, options->n_threads, sizeof *exec->rooms);
        exec->room =
            whit_arena_take(arena, (uint64_t)options->n_threads * WHIT_EXEC_ROOMS, whit_kv_room_bytes(shape->head_dim));
        if (exec->rooms) memset(exec->rooms, 0, options->n_threads * sizeof *exec->rooms);
    }
    if (options->n_threads > 1) {
        size_t query_bytes = whit_kv_query_bytes(shape->type, shape->head_dim);
        exec->queries = whit_arena_take(arena, (uint64_t)shape->n_kv_heads * n_queries, query_bytes);
        exec->n_joined = whit_arena_take(arena, shape->n_kv_heads, sizeof *exec->n_joined);
        exec->n_partials =
            ((uint64_t)shape->n_ctx_tokens / WHIT_KV_GROUP_TOKENS + 1) * shape->n_kv_heads * exec->heads_per_kv_head;
    }
    exec->partials = whit_arena_take(arena, exec->n_partials, whit_kv_partial_elems(shape->head_dim) * sizeof(float));
    exec->steps = steps;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        whit_exec_step counted; /* while only counting, steps have no memory: their scratch matters */
        bind_step(exec, i, tensors, options->n_batch_rows, steps ? &steps[i] : &counted);
    }
    for (uint32_t g = 0; steps && g < plan->n_groups; g++) {
        for (uint32_t i = 0, n_tiles = 0; i < plan->groups[g].n_steps; i++) {
            whit_exec_step *step = &steps[plan->groups[g].first + i];
            step->place = i;
            step->first_tile = n_tiles;
            n_tiles += step->n_tiles;
            whit_exec_join_steps(plan, &plan->groups[g], plan->groups[g].first + i, steps);
            whit_exec_join_rope(plan, plan->groups[g].first + i, steps);
        }
        whit_exec_join_gate(plan, g, steps);
        whit_exec_join_sum(plan, g, steps);
    }
    if (arena->memory)
        whit_rope_frequencies(options->rope_theta, options->rope_pairs, options->rope_factors, exec->rope_frequencies);
    exec->scratch_bytes = whit_round_up(exec->scratch_bytes, WHIT_ALIGN_BYTES);
    exec->scratch = whit_arena_take(arena, options->n_threads, exec->scratch_bytes);
    exec->prepared = whit_arena_take(arena, options->n_threads, exec->prepared_bytes);
    for (uint32_t w = 0; exec->prepared && exec->prepared_bytes && w < options->n_threads; w++)
        memset(exec->prepared + w * exec->prepared_bytes, 0, sizeof(prepared_for));
}

/* ---- running -------------------------------------------------------------------------------- */

void *whit_exec_scratch(const whit_exec *exec, const whit_matmul_kernel *kernel, const whit_acts *x, uint32_t worker)
{
    if (!kernel->prepare) return exec->scratch + worker * exec->scratch_bytes;
    uint8_t *memory = exec->prepared + worker * exec->prepared_bytes, *scratch = memory + WHIT_ALIGN_BYTES;
    prepared_for *made = (prepared_for *)(void *)memory;
    if (made->prepare != kernel->prepare || made->run != exec->n_runs || made->acts != x->i8 ||
        made->n_tokens != x->n_tokens) {
        kernel->prepare(x, scratch);
        *made = (prepared_for){kernel->prepare, exec->n_runs, x->i8, x->n_tokens};
    }
    return scratch;
}

struct group_run {
    const whit_exec *exec;
    const whit_plan_group *group;
    uint32_t n_rows, n_parts, n_tiles; /* of products: each part of the rows meets all tiles */
    bool gates;
};

static void run_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct group_run *run = context;
    const whit_exec_step *step = &run->exec->steps[run->group->first];
    for (uint32_t i = 0; i < run->group->n_steps; i += step->n_together, step += step->n_together)
        step->run(step, run->exec, worker, begin, end);
}

/* Tiles [begin, end) of all matrices of the group, one after the other, for some rows. */
static void run_part(const struct group_run *run, uint32_t worker, whit_exec_rows rows, uint32_t begin, uint32_t end)
{
    const whit_exec_step *step = &run->exec->steps[run->group->first];
    if (run->gates) {
        whit_exec_run_gated(step, run->exec, worker, rows, begin, end);
        return;
    }
    for (uint32_t i = 0; i < run->group->n_steps && begin < end; i++, step++) {
        uint32_t n = step->n_tiles;
        if (begin < n) whit_exec_run_linear(step, run->exec, worker, rows, begin, end < n ? end : n);
        begin = begin > n ? begin - n : 0;
        end = end > n ? end - n : 0;
    }
}

/* Items are the tiles, once for every part of the rows. */
static void run_tiles(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct group_run *run = context;
    uint32_t part_rows = ((run->n_rows - 1) / run->n_parts / ROWS_TOGETHER + 1) * ROWS_TOGETHER;
    for (uint32_t part_end; begin < end; begin = part_end) {
        uint32_t part = begin / run->n_tiles, from = part * run->n_tiles, row = part * part_rows;
        part_end = from + run->n_tiles < end ? from + run->n_tiles : end;
        if (row >= run->n_rows) continue; /* the parts before had them all */
        whit_exec_rows rows = {row, run->n_rows - row < part_rows ? run->n_rows - row : part_rows};
        run_part(run, worker, rows, begin - from, part_end - from);
    }
}

static void make_rope_tables(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_exec *exec = context;
    (void)worker;
    for (uint32_t r = begin; r < end; r++)
        whit_rope_table(exec->rope_frequencies, exec->rope_pairs, exec->batch->positions[r],
                        exec->rope_tables + (size_t)r * 2 * exec->rope_pairs);
}

/* Cuts the batch into tiles of neighbouring rows of one sequence, so that their queries share one
 * reading of its keys and values. */
static void make_row_tiles(whit_exec *exec)
{
    const whit_batch *batch = exec->batch;
    uint32_t most = rows_of_tile(exec, whit_pool_size(exec->pool), batch->n_rows);
    exec->n_row_tiles = 0;
    for (uint32_t r = 0; r < batch->n_rows;) {
        exec->row_tiles[exec->n_row_tiles++] = r;
        uint32_t begin = r++;
        while (r < batch->n_rows && r - begin < most && batch->sequences[r] == batch->sequences[begin]) r++;
    }
    exec->row_tiles[exec->n_row_tiles] = batch->n_rows;
}

/* Tiles of a chunk. Products of many columns read all activations once a chunk and unpack tiles by
 * fours: chunks are large then, whole fours, and of the sizes that share out evenly the largest. */
static uint32_t chunk_tiles(uint32_t n_tiles, uint32_t n_workers, uint32_t n_rows)
{
    if (n_rows <= 8) return (n_tiles - 1) / (16 * n_workers) + 1;
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t n = 4; n <= 8; n++) { /* chunks of a worker */
        uint32_t share = (n_tiles + n * n_workers - 1) / (n * n_workers), chunk = (share + 3) / 4 * 4;
        uint32_t n_chunks = (n_tiles + chunk - 1) / chunk, most = (n_chunks + n_workers - 1) / n_workers * chunk;
        if (most < least) {
            least = most;
            best = chunk;
        }
    }
    return best;
}

static void run_group(whit_exec *exec, const whit_plan_group *group)
{
    uint32_t n_rows = group->selected ? exec->batch->n_selected : exec->batch->n_rows;
    struct group_run run = {.exec = exec, .group = group, .n_rows = n_rows, .n_parts = 1};
    if (n_rows == 0) return;
    exec->n_runs++;
    if (group->domain == WHIT_DOMAIN_ROWS) {
        uint32_t chunk = n_rows / (8 * whit_pool_size(exec->pool)) + 1;
        if (chunk >= 16) chunk = (chunk + 8) / 16 * 16; /* keys are transposed by sixteens */
        if (n_rows == 1)
            run_rows(&run, 0, 0, 1); /* not worth waking anybody */
        else
            whit_pool_run(exec->pool, run_rows, &run, n_rows, chunk);
    } else if (group->domain == WHIT_DOMAIN_TILES) {
        const whit_exec_step *first = &exec->steps[group->first];
        bool is_adapted = exec->adapt.n_spans && !group->selected;
        const whit_matmul_kernel *kernel = whit_exec_kernel(first, n_rows);
        run.gates = whit_exec_gates(first, exec);
        for (uint32_t i = 0; i < (run.gates ? 1 : group->n_steps); i++) run.n_tiles += first[i].n_tiles;
        uint32_t part_rows =
            is_adapted || !kernel->part_tokens ? n_rows : kernel->part_tokens(&first->tensor->type, n_rows);
        if (n_rows > part_rows) run.n_parts = n_rows / part_rows;
        uint32_t n_items = run.n_tiles * run.n_parts, chunk = chunk_tiles(n_items, whit_pool_size(exec->pool), n_rows);
        if (is_adapted)
            whit_exec_run_adapted(exec, group, run_tiles, &run, n_items, chunk);
        else
            whit_pool_run(exec->pool, run_tiles, &run, n_items, chunk);
    } else if (whit_exec_attend_divides(&exec->steps[group->first], exec)) {
        whit_exec_attend_divided(&exec->steps[group->first], exec);
    } else {
        whit_pool_run(exec->pool, run_rows, &run, exec->n_row_tiles * exec->n_kv_heads, 1);
    }
}

static bool may_screen(const whit_batch *batch)
{
    if (!batch->tops || batch->n_selected > WHIT_EXEC_SCREENED_ROWS) return false;
    for (uint32_t i = 0; i < batch->n_selected; i++)
        if (batch->tops[i] == 0 || batch->tops[i] > WHIT_SCREEN_MAX_BEST) return false;
    return true;
}

bool whit_exec_run(whit_exec *exec, const whit_batch *batch, const volatile bool *cancel)
{
    exec->batch = batch;
    exec->screens = may_screen(batch);
    whit_exec_make_spans(exec);
    if (exec->rope_pairs) whit_pool_run(exec->pool, make_rope_tables, exec, batch->n_rows, 0);
    if (exec->heads_per_kv_head) make_row_tiles(exec);
    for (uint32_t g = 0; g < exec->plan->n_groups; g++) {
        if (cancel && *cancel) return false;
        uint64_t from_ns = exec->group_ns ? whit_now_ns() : 0;
        run_group(exec, &exec->plan->groups[g]);
        if (exec->group_ns) exec->group_ns[g] += whit_now_ns() - from_ns;
    }
    return true;
}

float *whit_exec_row(const whit_exec *exec, uint32_t plan_value, uint32_t i)
{
    const whit_plan_value *value = &exec->plan->values[plan_value - 1];
    float *rows = (float *)(void *)(exec->slots + exec->plan->slots[value->slot].offset_bytes);
    return rows + i * whit_plan_stride(value);
}

const whit_matmul_kernel *whit_exec_bucket(const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS], uint32_t n_rows)
{
    return kernels[bucket_of(n_rows)];
}

const whit_matmul_kernel *whit_exec_kernel(const whit_exec_step *step, uint32_t n_rows)
{
    return whit_exec_bucket(step->kernels, n_rows);
}
