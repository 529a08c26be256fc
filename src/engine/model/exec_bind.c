/* SPDX-License-Identifier: MIT
 * Binds schedules: takes the memory of their steps, and sets each step's function, operands and kernel. */
#include "model/exec_step.h"
#include "quant/requantise.h"

#include <string.h>

static void bind_value(const whit_exec *exec, uint32_t value, uint8_t **pointer, size_t *stride)
{
    if (!value) return;
    const whit_plan_value *v = &exec->plan->values[value - 1];
    /* the pointer stays NULL while memory is only counted */
    if (exec->slots) *pointer = exec->slots + exec->plan->slots[v->slot].offset_bytes;
    *stride = whit_plan_stride(v);
}

/* ---- scratch --------------------------------------------------------------------------------- */

static void need_scratch(whit_exec *exec, size_t bytes)
{
    if (bytes > exec->scratch_bytes) exec->scratch_bytes = bytes;
}

/* Raises scratch_bytes and prepared_bytes to the largest need of these kernels for up to n_rows rows. */
static void need_for_kernels(whit_exec *exec, const whit_tensor_type *type, const whit_acts_spec *acts, uint32_t n_rows,
                             const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS])
{
    for (uint32_t b = 0; b < WHIT_EXEC_BUCKETS && whit_exec_bucket_rows(b) <= n_rows; b++) {
        if (!kernels[b]->scratch_bytes) continue;
        size_t bytes = kernels[b]->scratch_bytes(type, acts, whit_exec_bucket_most(b, n_rows));
        size_t *most = kernels[b]->prepare ? &exec->prepared_bytes : &exec->scratch_bytes;
        if (kernels[b]->prepare) bytes = whit_round_up(bytes, WHIT_ALIGN_BYTES) + WHIT_ALIGN_BYTES;
        if (bytes > *most) *most = bytes;
    }
}

/* Raises scratch_bytes to the largest need of any step: kernels, a row of a norm, row numbers to rescore, a delta rule,
 * a router, a bias of an expert. Also raises correction_bytes to the largest need of any matrix. */
static void need_for_steps(whit_exec *exec, uint32_t n_batch_rows)
{
    const whit_exec_schedules *s = exec->schedules;
    for (uint32_t i = 0; i < s->n_choices; i++) {
        const whit_exec_choice *choice = &s->choices[i];
        whit_tensor_type factor = whit_requantise_type(WHIT_CODEC_I8, WHIT_ADAPTER_MAX_RANK, choice->type.n_cols);
        need_for_kernels(exec, &choice->type, &choice->acts, n_batch_rows, choice->kernels);
        need_for_kernels(exec, &factor, &choice->acts, n_batch_rows, choice->low_kernels);
        size_t bytes = whit_exec_correction_bytes(choice, n_batch_rows);
        if (bytes > exec->correction_bytes) exec->correction_bytes = bytes;
    }
    for (uint32_t i = 0; i < exec->plan->n_steps; i++) {
        const whit_plan_step *step = &exec->plan->steps[i];
        size_t width = exec->plan->values[step->input[0] ? step->input[0] - 1 : 0].width;
        if (step->op == WHIT_PLAN_NORM) need_scratch(exec, width * sizeof(float));
        if (step->op == WHIT_PLAN_RESCORE) need_scratch(exec, width * sizeof(uint32_t));
        if (step->op == WHIT_PLAN_DELTA) need_scratch(exec, whit_exec_state_scratch_bytes(step));
        if (step->op == WHIT_PLAN_ROUTE || step->op == WHIT_PLAN_EXPERT_BIAS)
            need_scratch(exec, 2 * width * sizeof(float));
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Returns a gate's function; NULL for an unknown gate, which does not occur in a graph. */
static whit_gate_fn *find_gate(const whit_kernels *kernels, uint8_t gate)
{
    switch (gate) {
    case WHIT_GATE_SILU: return kernels->silu_mul;
    case WHIT_GATE_RELU2: return kernels->relu2_mul;
    case WHIT_GATE_GELU: return kernels->gelu_mul;
    case WHIT_GATE_SIGMOID: return kernels->sigmoid_mul;
    case WHIT_GATE_PRODUCT: return kernels->product;
    case WHIT_GATE_SWISH1: return kernels->swish1_mul;
    default: return NULL;
    }
}

static whit_row_source source_of(const whit_plan_step *step)
{
    if (step->op == WHIT_PLAN_ADD_NORM_ACTS) return WHIT_ROW_SUM;
    if (step->op != WHIT_PLAN_GATE_NORM_ACTS) return WHIT_ROW_GIVEN;
    /* only these two gates are fused */
    return step->gate == WHIT_GATE_RELU2 ? WHIT_ROW_RELU2 : WHIT_ROW_SILU;
}

static void bind_product(whit_exec *exec, const struct whit_exec_scheduled *scheduled, whit_exec_step *step)
{
    const whit_plan_value *input = &exec->plan->values[step->plan->input[0] - 1];
    step->acts = input->acts;
    step->n_cols = input->width;
    const uint32_t n_rows = step->plan->op == WHIT_PLAN_EXPERT_LINEAR ? step->width : step->tensor->type.n_rows;
    step->n_tiles = (n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    step->output_scale = whit_fixed_output_scale(&step->tensor->type);
    step->choice = &exec->schedules->choices[exec->schedules->choice_of[step->plan->number]];
    step->kernel = step->choice->kernels[scheduled->bucket];
    if (exec->parts) step->parts = &exec->parts[step->plan->number];
    whit_exec_bind_tiles(step, scheduled->rows == WHIT_ROWS_BATCH && scheduled->mode == WHIT_EXEC_ADAPTED);
}

#define LARGE_TABLE_BYTES (4u << 20)

/* Decides which pages of a table are released after look-ups: all pages, except those of tiles that a matrix in this
 * process reads. */
static void bind_release(const whit_exec *exec, whit_exec_step *step)
{
    const whit_plan *plan = exec->plan;
    step->releases_pages = true;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const whit_plan_step *other = &plan->steps[i];
        if (other->weight != step->weight || other->op == WHIT_PLAN_EMBED || other->op == WHIT_PLAN_RESCORE) continue;
        step->releases_pages = other->op == WHIT_PLAN_LINEAR && other->is_split;
        if (!step->releases_pages) return;
        const whit_columns own = whit_split_columns(plan->ranks, &plan->values[other->output - 1]);
        step->kept_begin = own.begin / WHIT_TILE_ROWS;
        step->kept_end = (own.end + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    }
}

static void bind_step(whit_exec *exec, const struct whit_exec_scheduled *scheduled, const whit_plan_step *from,
                      const whit_tensor *tensors, whit_exec_step *step)
{
    const whit_plan_value *values = exec->plan->values,
                          *shape = &values[(from->output ? from->output : from->input[0]) - 1];
    size_t unused;
    *step = (whit_exec_step){.plan = from,
                             .rows = from->rows,
                             .width = shape->width,
                             .head_dim = from->head_dim,
                             .rotary = from->rotary,
                             .constant = from->constant,
                             .weight = from->weight,
                             .source = source_of(from),
                             .gate = find_gate(exec->kernels, from->gate)};
    bind_value(exec, from->input[0], &step->input[0], &step->input_stride[0]);
    bind_value(exec, from->input[1], &step->input[1], &step->input_stride[1]);
    bind_value(exec, from->input[2], &step->input[2], &step->input_stride[2]);
    bind_value(exec, from->output, &step->output, &step->output_stride);
    bind_value(exec, from->acts, &step->made, &unused);
    if (from->weight >= 0) {
        step->tensor = &tensors[from->weight];
        step->vector = (const float *)(const void *)step->tensor->part[WHIT_PART_CODES];
        step->vector_elems = step->tensor->type.n_cols;
    }
    if (from->op == WHIT_PLAN_EMBED && exec->releases_tables &&
        step->tensor->part_bytes[WHIT_PART_CODES] >= LARGE_TABLE_BYTES)
        bind_release(exec, step);
    if (from->gated >= 0) step->gated = &tensors[from->gated];
    if (from->second >= 0) step->second = (const float *)(const void *)tensors[from->second].part[WHIT_PART_CODES];
    if (from->op == WHIT_PLAN_APPEND || from->op == WHIT_PLAN_ATTEND || from->op == WHIT_PLAN_ROPE_ATTEND) {
        step->cache = &exec->caches[exec->kv->layers[from->layer].class];
        step->layer = exec->kv->layers[from->layer].layer;
        step->rope = &exec->ropes[exec->kv->shape.layers[from->layer].rope];
    }
    if (from->op == WHIT_PLAN_ROPE) step->rope = &exec->ropes[from->rope];
    if (from->acts) step->acts = values[from->acts - 1].acts;
    if (from->op == WHIT_PLAN_ACTS) step->acts = values[from->output - 1].acts;
    if (from->op == WHIT_PLAN_RESCORE) {
        step->acts = values[from->input[1] - 1].acts;
        step->n_cols = values[from->input[1] - 1].width;
        step->columns = (whit_columns){0, shape->width};
    }
    switch (from->op) {
    case WHIT_PLAN_LINEAR:
    case WHIT_PLAN_LINEAR_ADDED:
    case WHIT_PLAN_LINEAR_GATED:
    case WHIT_PLAN_EXPERT_LINEAR:
    case WHIT_PLAN_SCREEN: bind_product(exec, scheduled, step); break;
    default: whit_exec_bind_items(step);
    }
    if (from->op == WHIT_PLAN_CONV || from->op == WHIT_PLAN_DELTA) whit_exec_bind_state(exec->plan, step);
    if (from->is_split) whit_exec_narrow(exec, step);
}

static void bind_phase(whit_exec *exec, const struct whit_exec_scheduled *scheduled, const whit_plan_phase *from,
                       const whit_tensor *tensors, whit_exec_step *steps, whit_exec_phase *phase)
{
    static void (*const runs[])(whit_exec *, const whit_exec_phase *, uint32_t) = {
        [WHIT_DOMAIN_ROWS] = whit_exec_run_rows_phase,    [WHIT_DOMAIN_TILES] = whit_exec_run_tiles_phase,
        [WHIT_DOMAIN_HEADS] = whit_exec_run_heads_phase,  [WHIT_DOMAIN_STATE] = whit_exec_run_state_phase,
        [WHIT_DOMAIN_PAIRS] = whit_exec_run_pairs_phase,  [WHIT_DOMAIN_EXPERTS] = whit_exec_run_experts_phase,
        [WHIT_DOMAIN_GATHER] = whit_exec_run_gather_phase};
    *phase = (whit_exec_phase){
        .run = runs[from->domain], .steps = steps, .n_steps = from->n_steps, .place = from->place, .rows = from->rows};
    if (from->domain == WHIT_DOMAIN_TILES && from->rows == WHIT_ROWS_BATCH && scheduled->mode == WHIT_EXEC_ADAPTED)
        phase->run = whit_exec_run_adapted_phase;
    for (uint32_t i = 0; i < from->n_steps; i++) {
        bind_step(exec, scheduled, &scheduled->schedule.steps[from->first + i], tensors, &steps[i]);
        steps[i].place = i;
        steps[i].first_tile = phase->n_tiles;
        phase->n_tiles += steps[i].n_tiles;
    }
}

/* Looks up the locations of the corrections of the plan's matrices. */
static void place_parts(whit_exec *exec, const whit_tensor *tensors, whit_arena *arena)
{
    const whit_plan *plan = exec->plan;
    bool any = false;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        any = any || (plan->steps[i].op == WHIT_PLAN_LINEAR && whit_is_corrected(&tensors[plan->steps[i].weight]));
    if (any) exec->parts = whit_arena_take(arena, plan->n_steps, sizeof *exec->parts);
    for (uint32_t i = 0; exec->parts && i < plan->n_steps; i++)
        if (plan->steps[i].op == WHIT_PLAN_LINEAR)
            whit_exec_find_parts(&tensors[plan->steps[i].weight], &exec->parts[plan->steps[i].number]);
}

/* Takes the memory of all schedules from the arena and, unless the arena is only counting, binds them. */
static void bind_schedules(whit_exec *exec, const whit_tensor *tensors, whit_arena *arena)
{
    const whit_exec_schedules *s = exec->schedules;
    whit_exec_bound *bound = whit_arena_take(arena, s->n, sizeof *bound);
    for (uint32_t i = 0; i < s->n; i++) {
        const whit_schedule *schedule = &s->list[i].schedule;
        whit_exec_phase *phases = whit_arena_take(arena, schedule->n_phases, sizeof *phases);
        whit_exec_step *steps = whit_arena_take(arena, schedule->n_steps, sizeof *steps);
        if (!bound) continue;
        bound[i] = (whit_exec_bound){phases, schedule->n_phases};
        for (uint32_t g = 0; g < schedule->n_phases; g++)
            bind_phase(exec, &s->list[i], &schedule->phases[g], tensors, steps + schedule->phases[g].first, &phases[g]);
    }
    exec->bound = bound;
}

const whit_exec_bound *whit_exec_bound_of(const whit_exec *exec, whit_row_set rows, int mode, uint32_t n_rows)
{
    return &exec->bound[whit_exec_schedule_of(exec->schedules, rows, mode, n_rows)];
}

/* ---- the executor and its KV layers ---------------------------------------------------------- */

/* Returns whether positions of selected rows are needed, because attention or a temperature comes after selected() in
 * the graph. */
static bool attends_selected(const whit_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].rows == WHIT_ROWS_SELECTED &&
            (plan->steps[i].op == WHIT_PLAN_ATTEND || plan->steps[i].op == WHIT_PLAN_TEMPERATURE))
            return true;
    return false;
}

/* Places the memory of attention that does not belong to single steps. Buffers of queries and partial results have the
 * size that the largest KV class needs, because the classes run one after the other. */
static void place_attention(whit_exec *exec, const whit_exec_options *options, whit_arena *arena)
{
    const whit_kv *kv = exec->kv;
    const whit_kernels *kernels = exec->kernels;
    uint64_t queries_bytes = 0, n_heads = 0;
    bool has_sinks = false, has_f16 = false, is_packed = false;
    bool turns_packed[WHIT_ROPES_MAX] = {false};
    const bool selects = attends_selected(exec->plan);
    if (selects) {
        exec->selected_positions = whit_arena_take(arena, options->n_selected_rows, sizeof(uint32_t));
        exec->selected_sequences = whit_arena_take(arena, options->n_selected_rows, sizeof(uint32_t));
    }
    exec->caches = whit_arena_take(arena, kv->n_classes, sizeof *exec->caches);
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (class->role != WHIT_KV_ROLE_LAYERS) continue;
        whit_exec_cache cache = {.class = class,
                                 .open = whit_kv_open_class(class),
                                 .append = whit_kv_append(kernels, class->type),
                                 .query = whit_kv_query(kernels, class->type),
                                 .attend = whit_kv_attend(kernels, class->type),
                                 .finish = whit_kv_finish(kernels, class->type),
                                 .pack = whit_kv_pack(kernels, class->type),
                                 .heads_per_kv_head = class->n_heads / class->n_kv_heads};
        cache.query_blocks[WHIT_ROWS_BATCH].first =
            whit_arena_take(arena, (uint64_t)options->n_batch_rows + 1, sizeof(uint32_t));
        if (selects)
            cache.query_blocks[WHIT_ROWS_SELECTED].first =
                whit_arena_take(arena, (uint64_t)options->n_selected_rows + 1, sizeof(uint32_t));
        uint32_t n_queries =
            cache.heads_per_kv_head * whit_exec_query_block_rows(exec, &cache, 1, options->n_batch_rows);
        uint64_t n_groups = (uint64_t)kv->shape.n_ctx_tokens / WHIT_KV_GROUP_TOKENS + 1 + 2 * (class->n_sinks != 0);
        uint64_t n_partial_elems = n_groups * class->n_heads * whit_kv_partial_elems(class->head_dim);
        uint64_t bytes = (uint64_t) class->n_kv_heads * n_queries * whit_kv_query_bytes(class->type, class->head_dim);
        if (class->n_sinks) bytes *= 2;
        need_scratch(exec, whit_exec_attend_scratch_bytes(class, n_queries));
        if (bytes > queries_bytes) queries_bytes = bytes;
        if (n_partial_elems > exec->n_partial_elems) exec->n_partial_elems = n_partial_elems;
        if (class->n_kv_heads > n_heads) n_heads = class->n_kv_heads;
        if (whit_kv_converted_bytes(class->head_dim) > exec->converted_bytes)
            exec->converted_bytes = whit_kv_converted_bytes(class->head_dim);
        has_sinks |= class->n_sinks != 0;
        is_packed |= cache.pack != NULL;
        if (class->rope_pairs) turns_packed[class->rope] = true;
        has_f16 |= class->type == WHIT_KV_F16;
        if (exec->caches) exec->caches[c] = cache;
    }
    if (is_packed) exec->closing = whit_arena_take(arena, options->n_batch_rows, sizeof *exec->closing);
    whit_exec_place_ropes(exec, options, has_sinks, turns_packed, arena);
    if (kernels->kv_converts_f16 && has_f16) {
        exec->converted = whit_arena_take(arena, options->n_threads, sizeof *exec->converted);
        exec->converted_data =
            whit_arena_take(arena, (uint64_t)options->n_threads * WHIT_EXEC_CONVERTED_GROUPS, exec->converted_bytes);
        if (exec->converted) memset(exec->converted, 0, options->n_threads * sizeof *exec->converted);
    }
    if (options->n_threads == 1) exec->n_partial_elems = 0;
    if (options->n_threads > 1) {
        exec->queries = whit_arena_take(arena, queries_bytes, 1);
        exec->n_merged = whit_arena_take(arena, n_heads, sizeof *exec->n_merged);
    }
    exec->partials = whit_arena_take(arena, exec->n_partial_elems, sizeof(float));
}

/* Records how the keys of an attention were computed: whether their matrix has a bias, how many of their pairs are
 * rotated, and by which RoPE table. */
static void note_keys(const whit_graph *graph, whit_ref keys, whit_kv_layer *layer)
{
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const whit_node *node = &graph->nodes[i];
        if (node->output != keys) continue;
        if (node->op == WHIT_OP_LINEAR) layer->has_key_bias = node->bias >= 0;
        if (node->op != WHIT_OP_ROPE && node->op != WHIT_OP_RMS_NORM && node->op != WHIT_OP_SCALE) return;
        if (node->op == WHIT_OP_ROPE) layer->rope_pairs = node->rotary / 2;
        if (node->op == WHIT_OP_ROPE) layer->rope = node->rope;
        note_keys(graph, node->input[0], layer);
        return;
    }
}

/* Records the convolution or the delta rule of a recurrent layer in `state`; returns false if the layer already has one
 * of that kind. */
static bool note_state(const whit_graph *graph, const whit_node *node, whit_state_layer *state)
{
    if (node->op == WHIT_OP_CONV) {
        if (state->n_channels) return false;
        state->n_channels = graph->values[node->output - 1].width;
        state->n_taps = node->n_taps;
    } else if (node->op == WHIT_OP_DELTA) {
        if (state->n_heads) return false;
        state->n_heads = node->n_heads;
        state->key_dim = node->head_dim;
        state->value_dim = node->value_dim;
    }
    return true;
}

bool whit_exec_kv_layers(const whit_graph *graph, whit_kv_layer *layers, uint32_t n_layers)
{
    memset(layers, 0, n_layers * sizeof *layers);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const whit_node *node = &graph->nodes[i];
        if (node->layer >= n_layers || !note_state(graph, node, &layers[node->layer].state)) return false;
        if (node->op != WHIT_OP_ATTENTION) continue;
        whit_kv_layer layer = {.n_heads = graph->values[node->output - 1].width / node->head_dim,
                               .n_kv_heads = graph->values[node->input[1] - 1].width / node->head_dim,
                               .head_dim = node->head_dim,
                               .window = node->window,
                               .is_bidirectional = node->is_bidirectional,
                               .state = layers[node->layer].state};
        note_keys(graph, node->input[1], &layer);
        if (layers[node->layer].n_kv_heads) return false;
        layers[node->layer] = layer;
    }
    return true;
}

void whit_exec_place(whit_exec *exec, whit_plan *plan, const whit_exec_schedules *schedules, const whit_tensor *tensors,
                     const whit_kernels *kernels, whit_kv *kv, const whit_exec_options *options, whit_arena *arena)
{
    *exec = (whit_exec){.plan = plan,
                        .schedules = schedules,
                        .kernels = kernels,
                        .kv = kv,
                        .n_batch_rows = options->n_batch_rows,
                        .releases_tables = options->releases_tables};
    uint64_t slot_bytes;
    if (!whit_plan_layout(plan, options->n_batch_rows, options->n_selected_rows, &slot_bytes)) {
        arena->overflow = true;
        return;
    }
    exec->slots = whit_arena_take(arena, slot_bytes, 1);
    exec->n_rescored = whit_arena_take(arena, options->n_selected_rows, sizeof *exec->n_rescored);
    place_attention(exec, options, arena);
    whit_exec_place_pairs(exec, options->n_batch_rows, arena);
    if (plan->ranks) whit_exec_place_gathers(exec, options->n_batch_rows, arena);
    need_for_steps(exec, options->n_batch_rows);
    place_parts(exec, tensors, arena);
    bind_schedules(exec, tensors, arena);
    exec->scratch_bytes = whit_round_up(exec->scratch_bytes, WHIT_ALIGN_BYTES);
    exec->scratch = whit_arena_take(arena, options->n_threads, exec->scratch_bytes);
    exec->corrections = whit_arena_take(arena, options->n_threads, exec->correction_bytes);
    for (uint32_t w = 0; exec->corrections && exec->correction_bytes && w < options->n_threads; w++)
        memset(exec->corrections + w * exec->correction_bytes, 0, WHIT_ALIGN_BYTES);
    exec->prepared = whit_arena_take(arena, options->n_threads, exec->prepared_bytes);
    for (uint32_t w = 0; exec->prepared && exec->prepared_bytes && w < options->n_threads; w++)
        memset(exec->prepared + w * exec->prepared_bytes, 0, WHIT_ALIGN_BYTES);
}
