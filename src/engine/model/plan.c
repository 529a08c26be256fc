/* SPDX-License-Identifier: MIT
 * Compiles a graph: finds the nodes that are needed, lowers them (converts them to steps), and groups the steps into
 * phases. slots.c places values in slots. */
#include "model/plan.h"

#include "model/plan_split.h"
#include "model/slots.h"

#include <inttypes.h>

const char *whit_plan_op_name(whit_plan_op op)
{
    static const char *const names[WHIT_PLAN_OP_COUNT] = {
        [WHIT_PLAN_EMBED] = "embed",
        [WHIT_PLAN_NORM] = "norm",
        [WHIT_PLAN_ACTS] = "acts",
        [WHIT_PLAN_LINEAR] = "linear",
        [WHIT_PLAN_RESCORE] = "rescore",
        [WHIT_PLAN_BIAS] = "bias",
        [WHIT_PLAN_ROPE] = "rope",
        [WHIT_PLAN_APPEND] = "append",
        [WHIT_PLAN_ATTEND] = "attend",
        [WHIT_PLAN_GATE] = "gate",
        [WHIT_PLAN_ADD] = "add",
        [WHIT_PLAN_SCALE] = "scale",
        [WHIT_PLAN_SELECT] = "select",
        [WHIT_PLAN_TEMPERATURE] = "temperature",
        [WHIT_PLAN_CONV] = "conv",
        [WHIT_PLAN_DELTA] = "delta",
        [WHIT_PLAN_HADAMARD] = "hadamard",
        [WHIT_PLAN_SOFTCAP] = "softcap",
        [WHIT_PLAN_SLICE] = "slice",
        [WHIT_PLAN_SCALE_BY] = "scale_by",
        [WHIT_PLAN_CLAMP] = "clamp",
        [WHIT_PLAN_SCALE_ROWS] = "scale_rows",
        [WHIT_PLAN_ROUTE] = "route",
        [WHIT_PLAN_DISPATCH] = "dispatch",
        [WHIT_PLAN_EXPERT_LINEAR] = "expert_linear",
        [WHIT_PLAN_EXPERT_BIAS] = "expert_bias",
        [WHIT_PLAN_COMBINE] = "combine",
        [WHIT_PLAN_LAYER_NORM] = "layer_norm",
        [WHIT_PLAN_ACTIVATE] = "activate",
        [WHIT_PLAN_JOIN] = "join",
        [WHIT_PLAN_GATHER] = "gather",
        [WHIT_PLAN_SCREEN] = "screen",
        [WHIT_PLAN_LINEAR_GATED] = "linear+gate",
        [WHIT_PLAN_LINEAR_ADDED] = "linear+add",
        [WHIT_PLAN_NORM_ACTS] = "norm+acts",
        [WHIT_PLAN_ADD_NORM_ACTS] = "add+norm+acts",
        [WHIT_PLAN_GATE_NORM_ACTS] = "gate+norm+acts",
        [WHIT_PLAN_ROPE_ATTEND] = "rope+attend",
    };
    return op < WHIT_PLAN_OP_COUNT ? names[op] : "?";
}

void whit_plan_free(whit_plan *plan)
{
    const whit_allocator *a = plan->allocator;
    whit_free(a, plan->steps, plan->capacity_steps * sizeof *plan->steps);
    whit_free(a, plan->phases, plan->capacity_steps * sizeof *plan->phases);
    whit_free(a, plan->values, plan->capacity_values * sizeof *plan->values);
    whit_free(a, plan->slots, plan->capacity_values * sizeof *plan->slots);
    *plan = (whit_plan){0};
}

/* ---- needed nodes --------------------------------------------------------------------------- */

struct compiler {
    const whit_graph *graph;
    const whit_plan_options *options;
    whit_plan *plan;
    uint32_t first, end; /* nodes [first, end) are compiled */
    bool *needed;        /* by node: its result is needed */
    uint32_t *map;       /* by graph value: number of its plan value; 0: not assigned yet */
    whit_error *error;
};

static bool is_kept(const struct compiler *c, whit_ref value)
{
    if (value == c->graph->output && !c->options->only_vectors) return true;
    if (value == c->graph->vector && c->options->keep_hidden) return true;
    for (size_t i = 0; i < c->options->n_keep; i++)
        if (strcmp(c->options->keep[i], c->graph->values[value - 1].name) == 0) return true;
    return false;
}

/* Returns the output of the attention that appends to the cache of layer `layer`; 0 if not found. */
static whit_ref attention_of(const whit_graph *g, uint32_t layer)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == WHIT_OP_ATTENTION && g->nodes[i].layer == layer) return g->nodes[i].output;
    return 0;
}

/* Marks the nodes that kept values need, from the last node to the first; shared attention also needs the attention of
 * its owner. */
static whit_status mark_needed(struct compiler *c)
{
    const whit_graph *g = c->graph;
    for (size_t i = 0; i < c->options->n_keep; i++)
        if (!whit_graph_find(g, c->options->keep[i]))
            return whit_fail(c->error, WHIT_ERROR_ARGUMENT, "the graph has no value named '%s'", c->options->keep[i]);
    bool *wanted = whit_zalloc_array(c->plan->allocator, g->n_values + 1, sizeof *wanted);
    if (!wanted) return whit_fail_memory(c->error, "the plan", g->n_values);
    bool any = false;
    for (uint32_t i = c->end; i-- > c->first;) {
        const whit_node *node = &g->nodes[i];
        if (!wanted[node->output] && !is_kept(c, node->output)) continue;
        c->needed[i] = any = true;
        for (int j = 0; j < 3; j++) wanted[node->input[j]] = true;
        if (node->op == WHIT_OP_ATTENTION_SHARED) wanted[attention_of(g, node->owner)] = true;
    }
    whit_free(c->plan->allocator, wanted, (g->n_values + 1) * sizeof *wanted);
    if (!any)
        return whit_fail(c->error, WHIT_ERROR_ARGUMENT,
                         "the nodes first_node to first_node + n_nodes compute nothing that is needed");
    return WHIT_OK;
}

/* ---- values and steps ----------------------------------------------------------------------- */

static uint32_t add_value(struct compiler *c, whit_plan_value value)
{
    whit_plan *plan = c->plan;
    plan->values[plan->n_values++] = value; /* capacity_values is large enough (see whit_plan_compile) */
    return plan->n_values;
}

/* Returns the plan value of a graph value. A value that no node of the range computes is added as an external value,
 * which the caller writes. */
static uint32_t use(struct compiler *c, whit_ref value)
{
    if (!value || c->map[value]) return value ? c->map[value] : 0;
    const whit_graph_value *v = &c->graph->values[value - 1];
    return c->map[value] =
               add_value(c,
                         (whit_plan_value){
                             .graph_value = value, .width = v->width, .rows = v->rows, .kept = true, .external = true});
}

static uint32_t define(struct compiler *c, whit_ref value)
{
    const whit_graph_value *v = &c->graph->values[value - 1];
    return c->map[value] = add_value(
               c,
               (whit_plan_value){.graph_value = value, .width = v->width, .rows = v->rows, .kept = is_kept(c, value)});
}

static void emit(struct compiler *c, whit_plan_step step)
{
    for (int j = 0; j < 3; j++)
        if (step.input[j]) c->plan->values[step.input[j] - 1].n_reads++;
    step.rows = c->plan->values[(step.output ? step.output : step.input[0]) - 1].rows;
    step.gated = -1;
    if (step.op != WHIT_PLAN_DELTA && step.op != WHIT_PLAN_ROUTE && step.op != WHIT_PLAN_LAYER_NORM) step.second = -1;
    step.number = c->plan->n_steps;
    c->plan->steps[c->plan->n_steps++] = step;
}

static bool same_spec(const whit_acts_spec *a, const whit_acts_spec *b)
{
    return a->kind == b->kind && a->group == b->group && a->step == b->step && a->scale == b->scale;
}

/* Returns the value `input`, converted to the activation format that the node's matrix reads; `input` itself if that is
 * f32. The step that converts it is emitted unless a step from number `since` on does so. */
static uint32_t acts_of(struct compiler *c, const whit_node *node, uint32_t input, uint32_t since)
{
    const whit_tensor_type *type = c->graph->resolver.type(c->graph->resolver.context, node->weight);
    whit_plan_value wanted = c->plan->values[input - 1];
    wanted.acts = whit_acts_spec_for(type, c->options->act);
    if (wanted.acts.kind == WHIT_ACTS_F32) return input;
    for (uint32_t i = c->plan->n_steps; i-- > since;) {
        const whit_plan_step *step = &c->plan->steps[i];
        if (step->op != WHIT_PLAN_ACTS || step->input[0] != input) continue;
        if (same_spec(&c->plan->values[step->output - 1].acts, &wanted.acts)) return step->output;
    }
    uint32_t output = add_value(c, (whit_plan_value){.width = wanted.width, .acts = wanted.acts, .rows = wanted.rows});
    emit(
        c,
        (whit_plan_step){.op = WHIT_PLAN_ACTS, .layer = node->layer, .input = {input}, .output = output, .weight = -1});
    return output;
}

/* Returns whether a matrix is a head that can be screened: its logits are estimated first, and only the largest are
 * computed exactly. */
static bool can_screen(const struct compiler *c, const whit_node *node, uint32_t acts)
{
    const whit_tensor_type *type = c->graph->resolver.type(c->graph->resolver.context, node->weight);
    return node->output == c->graph->output && node->bias < 0 && type->codec == WHIT_CODEC_I8S &&
        c->plan->values[acts - 1].acts.kind == WHIT_ACTS_I8 && c->plan->values[acts - 1].rows == WHIT_ROWS_SELECTED;
}

/* Lowers consecutive matrices that read the same value (all of experts, or none): first the activation formats, then
 * all products, then the biases, so that the products form one phase. Returns the index of the node after the
 * matrices. */
static uint32_t lower_linears(struct compiler *c, uint32_t i)
{
    const whit_graph *g = c->graph;
    const uint8_t op = g->nodes[i].op;
    const bool has_experts = op == WHIT_OP_EXPERT_LINEAR;
    whit_ref shared = g->nodes[i].input[0];
    uint32_t input = use(c, shared), since = c->plan->n_steps, end = i;
    while (end < c->end && (!c->needed[end] || (g->nodes[end].op == op && g->nodes[end].input[0] == shared))) {
        if (c->needed[end]) (void)acts_of(c, &g->nodes[end], input, since);
        end++;
    }
    for (uint32_t j = i; j < end; j++) {
        if (!c->needed[j]) continue;
        const whit_node *node = &g->nodes[j];
        uint32_t acts = acts_of(c, node, input, since), output = define(c, node->output);
        /* the value after adding the bias is kept instead */
        if (node->bias >= 0) c->plan->values[output - 1].kept = false;
        emit(c,
             (whit_plan_step){.op = has_experts ? WHIT_PLAN_EXPERT_LINEAR : WHIT_PLAN_LINEAR,
                              .layer = node->layer,
                              .input = {acts},
                              .output = output,
                              .weight = node->weight,
                              .n_experts = node->n_experts,
                              .n_used = node->n_used});
        if (can_screen(c, node, acts))
            emit(c, (whit_plan_step){.op = WHIT_PLAN_RESCORE, .input = {output, acts}, .weight = node->weight});
    }
    for (uint32_t j = i; j < end; j++) {
        const whit_node *node = &g->nodes[j];
        if (!c->needed[j] || node->bias < 0) continue;
        uint32_t product = c->map[node->output];
        emit(c,
             (whit_plan_step){.op = has_experts ? WHIT_PLAN_EXPERT_BIAS : WHIT_PLAN_BIAS,
                              .layer = node->layer,
                              .input = {product},
                              .output = define(c, node->output),
                              .weight = node->bias});
    }
    return end;
}

static void lower_attention(struct compiler *c, const whit_node *node)
{
    uint32_t q = use(c, node->input[0]), k = use(c, node->input[1]), v = use(c, node->input[2]);
    whit_plan_step step = {
        .op = WHIT_PLAN_APPEND, .layer = node->layer, .input = {k, v}, .weight = -1, .head_dim = node->head_dim};
    emit(c, step);
    step.op = WHIT_PLAN_ATTEND;
    step.input[0] = q;
    step.input[1] = k; /* only its width is used, because keys are read from the cache */
    step.input[2] = 0;
    step.output = define(c, node->output);
    step.window = node->window;
    step.weight = node->weight;
    step.constant = node->constant;
    emit(c, step);
}

/* Lowers shared attention: it appends nothing, because an earlier layer has appended the keys and values. */
static void lower_shared(struct compiler *c, const whit_node *node)
{
    uint32_t q = use(c, node->input[0]);
    emit(c,
         (whit_plan_step){.op = WHIT_PLAN_ATTEND,
                          .layer = (uint16_t)node->owner,
                          .input = {q},
                          .output = define(c, node->output),
                          .weight = -1,
                          .head_dim = node->head_dim,
                          .is_shared = true,
                          .constant = node->constant});
}

static void lower_simple(struct compiler *c, const whit_node *node)
{
    static const uint8_t ops[WHIT_OP_COUNT] = {
        [WHIT_OP_EMBED] = WHIT_PLAN_EMBED,       [WHIT_OP_RMS_NORM] = WHIT_PLAN_NORM,
        [WHIT_OP_ROPE] = WHIT_PLAN_ROPE,         [WHIT_OP_GATE] = WHIT_PLAN_GATE,
        [WHIT_OP_ADD] = WHIT_PLAN_ADD,           [WHIT_OP_SCALE] = WHIT_PLAN_SCALE,
        [WHIT_OP_SELECT] = WHIT_PLAN_SELECT,     [WHIT_OP_TEMPERATURE] = WHIT_PLAN_TEMPERATURE,
        [WHIT_OP_CONV] = WHIT_PLAN_CONV,         [WHIT_OP_DELTA] = WHIT_PLAN_DELTA,
        [WHIT_OP_HADAMARD] = WHIT_PLAN_HADAMARD, [WHIT_OP_SOFTCAP] = WHIT_PLAN_SOFTCAP,
        [WHIT_OP_SLICE] = WHIT_PLAN_SLICE,       [WHIT_OP_SCALE_BY] = WHIT_PLAN_SCALE_BY,
        [WHIT_OP_CLAMP] = WHIT_PLAN_CLAMP,       [WHIT_OP_SCALE_ROWS] = WHIT_PLAN_SCALE_ROWS,
        [WHIT_OP_ROUTE] = WHIT_PLAN_ROUTE,       [WHIT_OP_DISPATCH] = WHIT_PLAN_DISPATCH,
        [WHIT_OP_COMBINE] = WHIT_PLAN_COMBINE,   [WHIT_OP_LAYER_NORM] = WHIT_PLAN_LAYER_NORM,
        [WHIT_OP_ACTIVATE] = WHIT_PLAN_ACTIVATE, [WHIT_OP_JOIN] = WHIT_PLAN_JOIN,
    };
    uint32_t a = use(c, node->input[0]), b = use(c, node->input[1]), d = use(c, node->input[2]);
    if (node->op == WHIT_OP_SCALE && node->constant == 1.0f && !is_kept(c, node->output)) {
        c->map[node->output] = a;
        return;
    }
    emit(c,
         (whit_plan_step){.op = ops[node->op],
                          .gate = node->gate,
                          .layer = node->layer,
                          .input = {a, b, d},
                          .output = define(c, node->output),
                          .weight = node->weight,
                          .second = node->bias,
                          .head_dim = node->head_dim,
                          .rotary = node->rotary,
                          .rope = node->rope,
                          .first = node->first,
                          .window = node->window,
                          .n_taps = node->n_taps,
                          .n_heads = node->n_heads,
                          .n_key_heads = node->n_key_heads,
                          .value_dim = node->value_dim,
                          .is_inverse = node->is_inverse,
                          .is_grouped = node->is_grouped,
                          .is_silu = node->is_silu,
                          .only_above = node->only_above,
                          .route = node->route,
                          .n_experts = node->n_experts,
                          .n_used = node->n_used,
                          .added = node->added,
                          .constant = node->constant});
}

/* Lowers the nodes of the range whose values belong to the row set `rows`; values of experts are lowered with
 * WHIT_ROWS_BATCH. */
static void lower(struct compiler *c, whit_row_set rows)
{
    const whit_row_set other = rows == WHIT_ROWS_BATCH ? WHIT_ROWS_EXPERT : rows;
    for (uint32_t i = c->first; i < c->end;) {
        const whit_node *node = &c->graph->nodes[i];
        const uint8_t made = c->graph->values[node->output - 1].rows;
        if (!c->needed[i] || node->op == WHIT_OP_GIVEN || (made != rows && made != other))
            i++;
        else if (node->op == WHIT_OP_LINEAR || node->op == WHIT_OP_EXPERT_LINEAR)
            i = lower_linears(c, i);
        else {
            if (node->op == WHIT_OP_ATTENTION)
                lower_attention(c, node);
            else if (node->op == WHIT_OP_ATTENTION_SHARED)
                lower_shared(c, node);
            else
                lower_simple(c, node);
            i++;
        }
    }
}

/* ---- phases --------------------------------------------------------------------------------- */

static uint8_t domain_of(const whit_plan_step *step)
{
    switch (step->op) {
    case WHIT_PLAN_LINEAR: return WHIT_DOMAIN_TILES;
    case WHIT_PLAN_ATTEND: return WHIT_DOMAIN_HEADS;
    case WHIT_PLAN_DISPATCH: return WHIT_DOMAIN_PAIRS;
    case WHIT_PLAN_EXPERT_LINEAR: return WHIT_DOMAIN_EXPERTS;
    case WHIT_PLAN_CONV:
    case WHIT_PLAN_DELTA: return WHIT_DOMAIN_STATE;
    case WHIT_PLAN_GATHER: return WHIT_DOMAIN_GATHER;
    default: return WHIT_DOMAIN_ROWS;
    }
}

/* Returns whether `step` reads an output of the open phase. If so, it may join a phase of rows, but no phase of tiles
 * or of experts. */
static bool depends(const whit_plan *plan, const whit_plan_phase *phase, const whit_plan_step *step)
{
    for (uint32_t i = phase->first; i < phase->first + phase->n_steps; i++)
        for (int j = 0; j < 3; j++)
            if (step->input[j] && step->input[j] == plan->steps[i].output) return true;
    return false;
}

static void make_phases(struct compiler *c)
{
    whit_plan *plan = c->plan;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const whit_plan_step *step = &plan->steps[i];
        uint8_t domain = domain_of(step);
        whit_plan_phase *open = plan->n_phases ? &plan->phases[plan->n_phases - 1] : NULL;
        bool joins = open && !c->options->no_fuse && open->domain == domain && open->rows == step->rows &&
            domain != WHIT_DOMAIN_HEADS && domain != WHIT_DOMAIN_STATE && domain != WHIT_DOMAIN_PAIRS &&
            domain != WHIT_DOMAIN_GATHER && (domain == WHIT_DOMAIN_ROWS || !depends(plan, open, step));
        if (joins)
            open->n_steps++;
        else
            plan->phases[plan->n_phases++] =
                (whit_plan_phase){.first = i, .n_steps = 1, .domain = domain, .rows = step->rows};
    }
}

/* ---- compiling and printing ----------------------------------------------------------------- */

/* Refuses a range of nodes that begins within a layer's experts: rows of experts need a dispatch in the same pass. */
static whit_status check_external(const whit_plan *plan, whit_error *error)
{
    for (uint32_t v = 0; v < plan->n_values; v++)
        if (plan->values[v].external && plan->values[v].rows == WHIT_ROWS_EXPERT)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "first_node lies between a layer's dispatch() and combine(), where a plan cannot begin");
    return WHIT_OK;
}

whit_status whit_plan_compile(const whit_graph *graph, const whit_plan_options *options,
                              const whit_allocator *allocator, whit_plan *plan, whit_error *error)
{
    *plan = (whit_plan){.allocator = allocator, .graph = graph, .ranks = options->ranks, .no_fuse = options->no_fuse};
    struct compiler c = {.graph = graph, .options = options, .plan = plan, .error = error};
    c.first = options->first_node;
    c.end = options->n_nodes ? options->first_node + options->n_nodes : graph->n_nodes;
    if (c.first >= c.end || c.end > graph->n_nodes)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the graph has %u nodes, so a plan cannot have its nodes %u to %u",
                         graph->n_nodes, c.first, c.end);

    /* A node needs at most three steps (formats, product, and bias or rescoring), two values and three external values.
     * With ranks, each of the two values may need a gather, and the product of a delta rule's input may become three
     * steps. */
    size_t n_nodes = c.end - c.first;
    plan->capacity_steps = (uint32_t)((options->ranks ? 7 : 3) * n_nodes);
    plan->capacity_values = (uint32_t)(5 * n_nodes);
    plan->steps = whit_zalloc_array(allocator, plan->capacity_steps, sizeof *plan->steps);
    plan->phases = whit_zalloc_array(allocator, plan->capacity_steps, sizeof *plan->phases);
    plan->values = whit_zalloc_array(allocator, plan->capacity_values, sizeof *plan->values);
    plan->slots = whit_zalloc_array(allocator, plan->capacity_values, sizeof *plan->slots);
    c.needed = whit_zalloc_array(allocator, graph->n_nodes, sizeof *c.needed);
    c.map = whit_zalloc_array(allocator, graph->n_values + 1, sizeof *c.map);
    whit_status status = WHIT_OK;
    if (!plan->steps || !plan->phases || !plan->values || !plan->slots || !c.needed || !c.map)
        status = whit_fail_memory(error, "the plan", plan->capacity_steps * sizeof *plan->steps);
    if (status == WHIT_OK) status = mark_needed(&c);
    if (status == WHIT_OK) {
        for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++) lower(&c, (whit_row_set)rows);
        if (options->ranks) status = whit_plan_split(plan, error);
    }
    if (status == WHIT_OK) {
        make_phases(&c);
        plan->n_experts = graph->n_experts;
        plan->n_used = graph->n_used;
        plan->output = options->only_vectors ? 0 : c.map[graph->output];
        plan->hidden = c.map[graph->vector];
        status = check_external(plan, error);
        if (status == WHIT_OK) status = whit_slots_assign(plan, error);
    }
    whit_free(allocator, c.needed, graph->n_nodes * sizeof *c.needed);
    whit_free(allocator, c.map, (graph->n_values + 1) * sizeof *c.map);
    if (status != WHIT_OK) whit_plan_free(plan);
    return status;
}

static void print_value(const whit_plan *plan, uint32_t v, whit_buf *out)
{
    const whit_plan_value *value = &plan->values[v - 1];
    if (value->graph_value)
        whit_buf_printf(out, "%s@%u", plan->graph->values[value->graph_value - 1].name, value->slot);
    else if (value->acts.group)
        whit_buf_printf(out, "i8/%u@%u", value->acts.group, value->slot);
    else
        whit_buf_printf(out, "i8@%u", value->slot);
}

void whit_plan_print_step(const whit_plan *plan, const whit_plan_step *step,
                          const char *(*name)(void *context, int32_t tensor), void *context, whit_buf *out)
{
    static const char *const gates[WHIT_GATE_COUNT] = {
        [WHIT_GATE_SILU] = "silu",       [WHIT_GATE_RELU2] = "relu2",     [WHIT_GATE_GELU] = "gelu",
        [WHIT_GATE_SIGMOID] = "sigmoid", [WHIT_GATE_PRODUCT] = "product", [WHIT_GATE_SWISH1] = "swish1"};
    whit_buf_printf(out, "       %-14s", whit_plan_op_name((whit_plan_op)step->op));
    if (step->op == WHIT_PLAN_GATE || step->op == WHIT_PLAN_LINEAR_GATED || step->op == WHIT_PLAN_GATE_NORM_ACTS)
        whit_buf_printf(out, " %s", gates[step->gate]);
    for (int j = 0; j < 3; j++) {
        if (!step->input[j]) continue;
        whit_buf_append_str(out, " ");
        print_value(plan, step->input[j], out);
    }
    if (step->weight >= 0) whit_buf_printf(out, " [%s]", name(context, step->weight));
    if (step->gated >= 0) whit_buf_printf(out, " [%s]", name(context, step->gated));
    if (step->output || step->acts) whit_buf_append_str(out, " ->");
    for (int j = 0; j < 2; j++) {
        uint32_t value = j ? step->acts : step->output;
        if (!value) continue;
        whit_buf_append_str(out, " ");
        print_value(plan, value, out);
    }
    whit_buf_append_str(out, "\n");
}

void whit_plan_print_slots(const whit_plan *plan, whit_buf *out)
{
    for (uint32_t s = 0; s < plan->n_slots; s++)
        whit_buf_printf(out, "slot %u: %" PRIu64 " bytes a row%s\n", s, plan->slots[s].row_bytes,
                        plan->slots[s].rows == WHIT_ROWS_SELECTED ? " (selected)" : "");
}
