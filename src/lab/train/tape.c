/* SPDX-License-Identifier: MIT */
#include "train/tape.h"

#include "linalg/level.h"
#include "train/ops.h"

static const whit_train_op ops[WHIT_OP_COUNT] = {
    [WHIT_OP_EMBED] = {whit_op_embed, whit_op_embed_gradient},
    [WHIT_OP_RMS_NORM] = {whit_op_norm, whit_op_norm_gradient},
    [WHIT_OP_LINEAR] = {whit_op_linear, whit_op_linear_gradient},
    [WHIT_OP_ROPE] = {whit_op_rope, whit_op_rope_gradient},
    [WHIT_OP_ATTENTION] = {whit_op_attention, whit_op_attention_gradient},
    [WHIT_OP_GATE] = {whit_op_gate, whit_op_gate_gradient},
    [WHIT_OP_ADD] = {whit_op_add, whit_op_add_gradient},
    [WHIT_OP_SCALE] = {whit_op_scale, whit_op_scale_gradient},
    [WHIT_OP_SELECT] = {NULL, NULL},
    [WHIT_OP_SCALE_ROWS] = {whit_op_scale_rows, whit_op_scale_rows_gradient},
    [WHIT_OP_CONV] = {whit_op_conv, whit_op_conv_gradient},
    [WHIT_OP_DELTA] = {whit_op_delta, whit_op_delta_gradient},
    [WHIT_OP_CLAMP] = {whit_op_clamp, whit_op_clamp_gradient},
    [WHIT_OP_ROUTE] = {whit_op_route, whit_op_route_gradient},
    [WHIT_OP_DISPATCH] = {whit_op_dispatch, whit_op_dispatch_gradient},
    [WHIT_OP_EXPERT_LINEAR] = {whit_op_expert_linear, whit_op_expert_linear_gradient},
    [WHIT_OP_COMBINE] = {whit_op_combine, whit_op_combine_gradient},
};

/* ---- memory layout -------------------------------------------------------------------------- */

/* Divides the graph into segments wherever the layer number changes: the embedding with layer 0, every other layer, the
 * head. The head also has the layer number 0, so in a model with a single layer it begins at the node that selects
 * rows. */
static void cut_segments(whit_tape *tape)
{
    const whit_graph *g = tape->graph;
    uint32_t segment = 0;
    whit_ref route = 0;
    whit_ref given = tape->options.input;
    if (given) {
        tape->root[given] = given;
        tape->crosses[given] = true;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const whit_node *node = &g->nodes[i];
        bool only_layer_ends = !segment && node->op == WHIT_OP_SELECT;
        if (i && (node->layer != g->nodes[i - 1].layer || only_layer_ends)) segment++;
        if (node->op == WHIT_OP_ROUTE) route = node->output;
        tape->steps[i] = (whit_tape_step){.node = node, .segment = segment, .route = route};
        tape->segment_of[node->output] = segment;
        tape->root[node->output] = ops[node->op].forward ? node->output : tape->root[node->input[0]];
        for (int j = 0; j < 3; j++) {
            whit_ref input = node->input[j];
            if (input && tape->segment_of[tape->root[input]] != segment) tape->crosses[tape->root[input]] = true;
        }
    }
    tape->n_segments = segment + 1;
    tape->crosses[tape->root[g->output]] = true;
}

/* Finds the backward steps that are needed, and the gradients that each step overwrites. A step adds to a gradient that
 * an earlier backward step has written, and overwrites other gradients. A step is not needed if its output has no
 * gradient. The graph's output always has a gradient. */
static whit_status find_overwrites(whit_tape *tape, whit_error *error)
{
    const whit_graph *g = tape->graph;
    bool *written = whit_zalloc_array(tape->allocator, g->n_values + 1, sizeof *written);
    if (!written) return whit_fail_memory(error, "the values of a training step", g->n_values);
    written[tape->root[g->output]] = true;
    for (uint32_t i = g->n_nodes; i-- > 0;) {
        const whit_node *node = &g->nodes[i];
        tape->steps[i].needed = ops[node->op].backward && written[tape->root[node->output]];
        for (int j = 0; tape->steps[i].needed && j < 3; j++) {
            whit_ref root = tape->root[node->input[j]];
            if (!root) continue;
            tape->steps[i].overwrites[j] = !written[root];
            written[root] = true;
        }
    }
    whit_free(tape->allocator, written, (g->n_values + 1) * sizeof *written);
    return WHIT_OK;
}

/* Finds the needed linear layers whose weight no other node uses. */
static whit_status find_sole_writers(whit_tape *tape, whit_error *error)
{
    const uint32_t n = tape->params->n;
    uint32_t *n_uses = whit_zalloc_array(tape->allocator, n + 1, sizeof *n_uses);
    tape->is_sole = whit_zalloc_array(tape->allocator, n + 1, sizeof *tape->is_sole);
    const bool ok = n_uses && tape->is_sole;
    for (uint32_t i = 0; ok && i < tape->n_steps; i++) {
        const whit_node *node = tape->steps[i].node;
        if (node->weight >= 0) n_uses[node->weight]++;
        if (node->bias >= 0) n_uses[node->bias]++;
    }
    for (uint32_t i = 0; ok && i < tape->n_steps; i++) {
        whit_tape_step *step = &tape->steps[i];
        step->is_sole = step->node->op == WHIT_OP_LINEAR && step->needed && n_uses[step->node->weight] == 1;
        if (step->is_sole) tape->is_sole[step->node->weight] = true;
    }
    whit_free(tape->allocator, n_uses, (n + 1) * sizeof *n_uses);
    return ok ? WHIT_OK : whit_fail_memory(error, "the values of a training step", (n + 1) * sizeof *n_uses);
}

/* Assigns memory in the arena. If `arena` is NULL, it only counts the floats. */
struct placer {
    float *arena;
    size_t n_elems;
};

static float *place_array(struct placer *placer, size_t n_elems)
{
    float *at = placer->arena ? placer->arena + placer->n_elems : NULL;
    placer->n_elems += whit_round_up(n_elems, 16);
    return at;
}

/* Places the values of one segment, apart from crossing values, in the arena. `what` is tape->value or
 * tape->gradient. */
static void place_inner(whit_tape *tape, struct placer *placer, float **what, uint32_t segment)
{
    for (uint32_t v = 1; v <= tape->graph->n_values; v++)
        if (tape->root[v] == v && !tape->crosses[v] && tape->segment_of[v] == segment)
            what[v] = place_array(placer, (size_t)tape->graph->values[v - 1].width * whit_tape_rows(tape, v));
}

/* Places the values of all segments, apart from crossing values: one segment after the other, or in the same memory if
 * `shared`. */
static void place_segments(whit_tape *tape, struct placer *placer, float **what, bool shared)
{
    size_t begin = placer->n_elems, end = begin;
    for (uint32_t segment = 0; segment < tape->n_segments; segment++) {
        if (shared) placer->n_elems = begin;
        place_inner(tape, placer, what, segment);
        if (placer->n_elems > end) end = placer->n_elems;
    }
    placer->n_elems = end;
}

/* Places the arrays of tape->pairs. An index has as many bytes as a float. */
static void place_pairs(whit_tape *tape, struct placer *placer)
{
    const size_t n = (size_t)tape->n_rows * tape->pairs.n_used;
    tape->pairs.first = (uint32_t *)(void *)place_array(placer, (size_t)tape->pairs.n_experts + 1);
    tape->pairs.token_of = (uint32_t *)(void *)place_array(placer, n);
    tape->pairs.weight_of = place_array(placer, n);
    tape->pairs.row_of = (uint32_t *)(void *)place_array(placer, n);
}

static void place_all(whit_tape *tape, struct placer *placer)
{
    const whit_graph *g = tape->graph;
    whit_ref output = tape->root[g->output];
    for (uint32_t v = 1; v <= g->n_values; v++) {
        if (tape->root[v] != v || !tape->crosses[v]) continue;
        size_t n = (size_t)g->values[v - 1].width * whit_tape_rows(tape, v);
        tape->value[v] = place_array(placer, n);
        if (tape->options.gradients) tape->gradient[v] = v == output ? tape->value[v] : place_array(placer, n);
    }
    place_segments(tape, placer, tape->value, tape->options.checkpoint || !tape->options.gradients);
    if (tape->options.gradients) place_segments(tape, placer, tape->gradient, true);
    for (uint32_t i = 0; i < tape->n_ropes; i++)
        tape->rope[i] = place_array(placer, (size_t)tape->options.n_tokens * tape->ropes[i].dims);
    tape->partials = place_array(placer, tape->partial_elems * whit_tape_chunks(tape));
    tape->rounded = place_array(placer, tape->rounded_elems * tape->n_rows);
    tape->low = place_array(placer, tape->low_elems);
    if (tape->pairs.n_used) place_pairs(tape, placer);
    tape->scratch = place_array(placer, tape->scratch_elems * whit_pool_size(tape->pool));
    for (uint32_t v = 1; v <= g->n_values; v++) {
        tape->value[v] = tape->value[tape->root[v]];
        tape->gradient[v] = tape->gradient[tape->root[v]];
    }
}

static whit_status fill_rope(whit_tape *tape, uint32_t i, whit_error *error)
{
    const whit_rope *rope = &tape->ropes[i];
    const uint32_t n = rope->dims / 2, n_tokens = tape->options.n_tokens;
    if (!n) return WHIT_OK;
    double *frequencies = whit_zalloc_array(tape->allocator, n, sizeof *frequencies);
    if (!frequencies) return whit_fail_memory(error, "RoPE tables", n * sizeof *frequencies);
    const char *name = whit_rope_divisors(rope, n_tokens);
    int32_t divisors = name ? whit_params_find(tape->params, name) : -1;
    whit_rope_scaled_frequencies(rope, n_tokens, divisors >= 0 ? tape->params->items[divisors].value : NULL,
                                 frequencies);
    for (uint32_t t = 0; t < n_tokens; t++) whit_rope_table(frequencies, n, t, tape->rope[i] + (size_t)t * 2 * n);
    for (size_t k = 0; rope->magnitude != 1 && k < (size_t)n_tokens * 2 * n; k++)
        tape->rope[i][k] *= (float)rope->magnitude;
    whit_free(tape->allocator, frequencies, n * sizeof *frequencies);
    return WHIT_OK;
}

static void grow_to(size_t *largest, size_t n)
{
    if (n > *largest) *largest = n;
}

/* Increases the sizes of memory as far as an adapter's products need it, in the forward pass and for the gradients. */
static void find_low_operands(whit_tape *tape, const whit_param *weight)
{
    size_t rank = tape->params->items[weight->low_a].type.n_rows, n_in = weight->type.n_cols,
           n_out = weight->type.n_rows;
    grow_to(&tape->low_elems, 2 * tape->n_rows * rank);
    grow_to(&tape->common_elems, whit_blas_elems(rank, n_in));
    grow_to(&tape->common_elems, whit_blas_elems(n_out, rank));
    if (!tape->options.gradients) return;
    grow_to(&tape->common_elems, whit_blas_elems(rank, n_out));
    grow_to(&tape->common_elems, whit_blas_elems(rank, tape->n_rows));
    grow_to(&tape->common_elems, whit_blas_elems(n_in, rank));
}

/* Increases the sizes of memory as far as the right operands of a node's products need it. Linear layers share one
 * operand; for experts and attention each worker has one. */
static void find_operands(whit_tape *tape, const whit_node *node)
{
    if (node->op == WHIT_OP_LINEAR) {
        const whit_tensor_type *weight = &tape->params->items[node->weight].type;
        if (tape->params->items[node->weight].rounds_input) grow_to(&tape->rounded_elems, weight->n_cols);
        if (tape->params->items[node->weight].low_a >= 0) find_low_operands(tape, &tape->params->items[node->weight]);
        grow_to(&tape->common_elems, whit_blas_elems(weight->n_rows, weight->n_cols));
        if (tape->options.gradients) grow_to(&tape->common_elems, whit_blas_elems(weight->n_cols, tape->n_rows));
    } else if (node->op == WHIT_OP_EXPERT_LINEAR) {
        const size_t n_in = tape->params->items[node->weight].type.n_cols,
                     n_out = tape->graph->values[node->output - 1].width;
        grow_to(&tape->own_elems, whit_blas_elems(n_out, n_in));
        grow_to(&tape->own_elems, whit_blas_elems(n_in, n_out));
        if (tape->options.gradients) grow_to(&tape->own_elems, whit_blas_elems(n_in, tape->n_rows));
    } else if (node->op == WHIT_OP_ATTENTION) {
        grow_to(&tape->own_elems, whit_blas_elems(node->head_dim, tape->options.n_tokens));
    }
}

static void find_sizes(whit_tape *tape)
{
    for (uint32_t i = 0; i < tape->graph->n_nodes; i++) {
        const whit_node *node = &tape->graph->nodes[i];
        if (node->op == WHIT_OP_RMS_NORM) grow_to(&tape->partial_elems, node->head_dim);
        if (node->op == WHIT_OP_LINEAR && node->bias >= 0)
            grow_to(&tape->partial_elems, tape->graph->values[node->output - 1].width);
        if (node->op == WHIT_OP_ATTENTION)
            grow_to(&tape->scratch_elems, whit_op_attention_scratch(node, tape->options.n_tokens));
        if (node->op == WHIT_OP_CONV) grow_to(&tape->scratch_elems, whit_op_conv_scratch(tape->options.n_tokens));
        if (node->op == WHIT_OP_ROUTE) {
            grow_to(&tape->scratch_elems, whit_op_route_scratch(node));
            grow_to(&tape->partial_elems, node->n_experts);
        }
        if (node->op == WHIT_OP_DELTA) {
            grow_to(&tape->scratch_elems, whit_op_delta_scratch(node, tape->options.n_tokens));
            /* Each head of each sequence has two sums, the gradients of a and dt. */
            grow_to(&tape->partial_elems, 2 * (size_t)node->n_heads * tape->options.n_sequences);
        }
        find_operands(tape, node);
    }
    tape->scratch_elems = whit_round_up(tape->scratch_elems, 16); /* so that each worker's part is aligned */
}

/* Refuses a node that the tape cannot compute. */
static whit_status check_node(const whit_graph *graph, const whit_params *params, const whit_node *node,
                              whit_error *error)
{
    const char *name = graph->values[node->output - 1].name;
    if (node->op != WHIT_OP_SELECT && !ops[node->op].forward)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "'%s': models with the operation %s cannot be trained", name,
                         whit_op_name((whit_op)node->op));
    const char *what = NULL;
    if (node->is_bidirectional)
        what = "attention to both sides";
    else if (node->op == WHIT_OP_ATTENTION && node->weight >= 0)
        what = "attention with sinks";
    else if (node->op == WHIT_OP_EXPERT_LINEAR && params->items[node->weight].rounds_input)
        what = "experts whose inputs are rounded";
    else if (node->op == WHIT_OP_RMS_NORM && graph->values[node->output - 1].rows == WHIT_ROWS_EXPERT)
        what = "norms of experts' rows";
    else if (node->op == WHIT_OP_RMS_NORM && node->weight < 0)
        what = "norms without a weight";
    if (!what) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "'%s': models with %s cannot be trained", name, what);
}

whit_status whit_tape_open(whit_tape *tape, const whit_graph *graph, const whit_config *config, whit_params *params,
                           const whit_tape_options *options, whit_pool *pool, const whit_allocator *allocator,
                           whit_error *error)
{
    *tape = (whit_tape){.graph = graph,
                        .params = params,
                        .pool = pool,
                        .allocator = allocator,
                        .options = *options,
                        .n_rows = options->n_sequences * options->n_tokens,
                        .n_ropes = whit_config_n_ropes(config),
                        .n_steps = graph->n_nodes,
                        .pairs = {.n_experts = graph->n_experts, .n_used = graph->n_used},
                        .loops = params->loops};
    if (!options->n_sequences || !options->n_tokens || (uint64_t)options->n_sequences * options->n_tokens > 1u << 24)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "a batch of %u sequences of %u tokens is not possible: 1 to 2^24 tokens are",
                         options->n_sequences, options->n_tokens);
    if (config->bidirectional)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "models whose tokens attend to later ones cannot be trained");
    for (uint32_t i = 0; i < graph->n_nodes; i++) WHIT_TRY(check_node(graph, params, &graph->nodes[i], error));
    whit_cpu cpu;
    whit_linalg_detect(&cpu);
    WHIT_TRY(whit_kernels_select(&cpu, NULL, &tape->kernels, error));
    for (uint32_t i = 0; i < tape->n_ropes; i++) tape->ropes[i] = whit_config_rope(config, i);
    size_t n = (size_t)graph->n_values + 1;
    tape->steps = whit_zalloc_array(allocator, tape->n_steps, sizeof *tape->steps);
    tape->segment_of = whit_zalloc_array(allocator, n, sizeof *tape->segment_of);
    tape->crosses = whit_zalloc_array(allocator, n, sizeof *tape->crosses);
    tape->root = whit_zalloc_array(allocator, n, sizeof *tape->root);
    tape->value = whit_zalloc_array(allocator, n, sizeof *tape->value);
    tape->gradient = whit_zalloc_array(allocator, n, sizeof *tape->gradient);
    whit_status status = WHIT_OK;
    if (!tape->steps || !tape->segment_of || !tape->crosses || !tape->root || !tape->value || !tape->gradient)
        status = whit_fail_memory(error, "the values of a training step", n * sizeof *tape->value);
    if (status == WHIT_OK) {
        cut_segments(tape);
        find_sizes(tape);
        status = find_overwrites(tape, error);
        if (status == WHIT_OK) status = find_sole_writers(tape, error);
    }
    if (status == WHIT_OK) {
        struct placer placer = {0};
        place_all(tape, &placer);
        tape->arena_bytes = placer.n_elems * sizeof(float);
        tape->arena = whit_alloc(allocator, tape->arena_bytes);
        if (!tape->arena) status = whit_fail_memory(error, "the activations of a layer", tape->arena_bytes);
        placer = (struct placer){.arena = tape->arena};
        if (status == WHIT_OK) place_all(tape, &placer);
    }
    for (uint32_t i = 0; status == WHIT_OK && i < tape->n_ropes; i++) status = fill_rope(tape, i, error);
    if (status == WHIT_OK)
        status = whit_blas_open(&tape->blas, options->precision, tape->loops, tape->common_elems, tape->own_elems,
                                whit_pool_size(pool), allocator, error);
    if (status != WHIT_OK) whit_tape_close(tape);
    return status;
}

void whit_tape_close(whit_tape *tape)
{
    if (!tape->graph) return;
    const whit_allocator *a = tape->allocator;
    size_t n = (size_t)tape->graph->n_values + 1;
    whit_blas_close(&tape->blas);
    whit_free(a, tape->arena, tape->arena_bytes);
    whit_free(a, tape->steps, tape->n_steps * sizeof *tape->steps);
    whit_free(a, tape->segment_of, n * sizeof *tape->segment_of);
    whit_free(a, tape->is_sole, (tape->params->n + 1) * sizeof *tape->is_sole);
    whit_free(a, tape->crosses, n * sizeof *tape->crosses);
    whit_free(a, tape->root, n * sizeof *tape->root);
    whit_free(a, tape->value, n * sizeof *tape->value);
    whit_free(a, tape->gradient, n * sizeof *tape->gradient);
    *tape = (whit_tape){0};
}

size_t whit_tape_bytes(const whit_tape *tape)
{
    return tape->arena_bytes + tape->blas.packed_bytes;
}

/* ---- forward and backward ------------------------------------------------------------------- */

static void tell_watch(const whit_tape *tape)
{
    if (tape->watch) tape->watch(tape->watch_user);
}

static void run_segment(whit_tape *tape, uint32_t segment)
{
    for (uint32_t i = 0; i < tape->n_steps; i++) {
        const whit_tape_step *step = &tape->steps[i];
        whit_op_fn *forward = ops[step->node->op].forward;
        if (step->segment != segment || !forward) continue;
        forward(tape, step);
        tell_watch(tape);
    }
    tape->resident = segment;
}

void whit_tape_forward(whit_tape *tape, const int32_t *ids)
{
    tape->ids = ids;
    for (uint32_t segment = 0; segment < tape->n_segments; segment++) run_segment(tape, segment);
}

void whit_tape_forward_to(whit_tape *tape, const int32_t *ids, whit_ref value)
{
    tape->ids = ids;
    for (uint32_t i = 0; i < tape->n_steps; i++) {
        const whit_tape_step *step = &tape->steps[i];
        if (ops[step->node->op].forward) ops[step->node->op].forward(tape, step);
        if (step->node->output == value) return;
    }
}

float *whit_tape_value(const whit_tape *tape, whit_ref value)
{
    return tape->value[value];
}

float *whit_tape_gradient(const whit_tape *tape, whit_ref value)
{
    return tape->gradient[value];
}

void whit_tape_zero_gradients(whit_tape *tape)
{
    whit_params_zero_gradients(tape->params, tape->is_sole, tape->pool);
    tape->is_first = true;
}

void whit_tape_backward(whit_tape *tape, whit_tape_hook *hook, void *user)
{
    for (uint32_t segment = tape->n_segments; segment-- > 0;) {
        /* The last segment is still in memory, with the gradient of the logits in place of the logits. */
        if (tape->options.checkpoint && tape->resident != segment) run_segment(tape, segment);
        for (uint32_t i = tape->n_steps; i-- > 0;) {
            const whit_tape_step *step = &tape->steps[i];
            whit_ref output = step->node->output;
            if (step->segment != segment || !step->needed) continue;
            if (hook && tape->crosses[output] && output != tape->root[tape->graph->output]) hook(user, tape, output);
            ops[step->node->op].backward(tape, step);
            tell_watch(tape);
        }
    }
    tape->is_first = false;
}
