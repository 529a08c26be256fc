/* SPDX-License-Identifier: MIT
 * Tests graphs and plans: which nodes are dropped, which are grouped, and in which slots values are stored. */
#include "test.h"

#include "model/plan.h"
#include "model/families.h"

/* A made-up model of shapes only: the shape follows from a tensor's name, and there are no weights. */
struct shapes {
    whit_config config;
    char names[64][WHIT_VALUE_NAME_BYTES];
    whit_tensor_type types[64];
    int32_t n;
    uint8_t codec; /* codec of the matrices in layers */
};

static int32_t find(void *context, const char *name)
{
    struct shapes *s = context;
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0) return i;
    const whit_config *c = &s->config;
    const char *dot = strrchr(name, '.'), *leaf = dot ? dot + 1 : name;
    whit_tensor_type t = {.layout = WHIT_LAYOUT_TILE16, .n_rows = c->n_embd, .n_cols = c->n_embd};
    if (strncmp(name, "layers.", 7) == 0) t.codec = s->codec;
    if (t.codec == WHIT_CODEC_T2) {
        t.scale_kind = WHIT_SCALE_TENSOR;
        t.act = WHIT_TENSOR_ACT_TOKEN;
    }
    if (strstr(leaf, "norm")) t = (whit_tensor_type){.n_rows = 1, .n_cols = c->n_embd};
    if (strcmp(leaf, "k") == 0 || strcmp(leaf, "v") == 0) t.n_rows = c->n_kv_heads * c->head_dim;
    if (strcmp(leaf, "gate") == 0 || strcmp(leaf, "up") == 0) t.n_rows = c->n_ff;
    if (strcmp(leaf, "down") == 0) t.n_cols = c->n_ff;
    if (strcmp(leaf, "ffn_sub_norm") == 0) t.n_cols = c->n_ff;
    if (strcmp(leaf, "embed") == 0) t.n_rows = c->n_vocab;
    if (s->n == 64) return -1;
    snprintf(s->names[s->n], sizeof s->names[0], "%s", name);
    s->types[s->n] = t;
    return s->n++;
}

static const whit_tensor_type *type_of(void *context, int32_t i)
{
    return &((struct shapes *)context)->types[i];
}

static struct shapes bitnet(void)
{
    return (struct shapes){.codec = WHIT_CODEC_T2,
                           .config = {.family = "bitnet",
                                      .n_layers = 2,
                                      .n_embd = 64,
                                      .n_ff = 96,
                                      .n_heads = 4,
                                      .n_kv_heads = 2,
                                      .head_dim = 16,
                                      .rope_dim = 16,
                                      .n_vocab = 32,
                                      .n_ctx = 64,
                                      .tied_head = true,
                                      .sub_norm = true,
                                      .norm_eps = 1e-5,
                                      .rope_theta = 1e4}};
}

static whit_graph build(struct shapes *shapes)
{
    whit_error error = {0};
    whit_graph graph;
    whit_graph_begin(&graph, NULL, (whit_resolver){shapes, find, type_of}, &error);
    assert_ok(whit_family_build(&shapes->config, &graph), error);
    return graph;
}

static whit_plan compile(const whit_graph *graph, whit_plan_options options)
{
    whit_error error;
    whit_plan plan;
    assert_ok(whit_plan_compile(graph, &options, NULL, &plan, &error), error);
    return plan;
}

static uint32_t count(const whit_plan *plan, whit_plan_op op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) n += plan->steps[i].op == op;
    return n;
}

static void matrices_of_one_input_share_it(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    whit_graph graph = build(&shapes);
    whit_plan plan = compile(&graph, (whit_plan_options){.act = WHIT_ACT_I8});
    /* Per layer four quantised inputs: of q, k and v, of o, of gate and up, of down. The f32 head needs none. */
    assert_int_equal(count(&plan, WHIT_PLAN_LINEAR), 2 * 7 + 1);
    assert_int_equal(count(&plan, WHIT_PLAN_ACTS), 2 * 4);
    uint32_t largest = 0, tiles = 0;
    for (uint32_t g = 0; g < plan.n_phases; g++) {
        if (plan.phases[g].domain != WHIT_DOMAIN_TILES) continue;
        tiles++;
        if (plan.phases[g].n_steps > largest) largest = plan.phases[g].n_steps;
    }
    assert_int_equal(largest, 3);
    assert_int_equal(tiles, 2 * 4 + 1);
    whit_plan alone = compile(&graph, (whit_plan_options){.act = WHIT_ACT_I8, .no_fuse = true});
    assert_int_equal(alone.n_steps, plan.n_steps);
    assert_int_equal(alone.n_phases, alone.n_steps);
    whit_plan_free(&alone);
    whit_plan_free(&plan);
    whit_graph_free(&graph);
}

/* Returns the plan value that holds a graph value, with its bias; 0 if it was dropped. */
static uint32_t find_value(const whit_plan *plan, whit_ref value)
{
    uint32_t found = 0;
    for (uint32_t v = 1; value && v <= plan->n_values; v++)
        if (plan->values[v - 1].graph_value == value) found = v;
    return found;
}

/* Two values that are needed at the same time may not share a slot. */
static void values_that_live_together_lie_apart(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    whit_graph graph = build(&shapes);
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        const char *keep[] = {"layers.0.gated", "layers.1.attended"};
        whit_plan plan = compile(&graph, (whit_plan_options){.no_fuse = no_fuse, .keep = keep, .n_keep = 2});
        uint32_t holder[256] = {0};
        assert_true(plan.n_slots < 256);
        for (uint32_t i = 0; i < plan.n_steps; i++) {
            for (int j = 0; j < 3; j++) {
                uint32_t v = plan.steps[i].input[j];
                if (v && plan.steps[i].op != WHIT_PLAN_ATTEND) assert_int_equal(holder[plan.values[v - 1].slot], v);
            }
            uint32_t out = plan.steps[i].output;
            if (out) holder[plan.values[out - 1].slot] = out;
        }
        for (int k = 0; k < 2; k++) {
            uint32_t v = find_value(&plan, whit_graph_find(&graph, keep[k]));
            assert_true(v && plan.values[v - 1].kept);
            assert_int_equal(holder[plan.values[v - 1].slot], v); /* kept values are still there at the end */
        }
        assert_int_equal(holder[plan.values[plan.output - 1].slot], plan.output);
        whit_plan_free(&plan);
    }
    whit_graph_free(&graph);
}

/* A step of several passes keeps rows of earlier passes in the slots of kept values: no other value may use them. */
static void kept_values_have_slots_of_their_own(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    whit_graph graph = build(&shapes);
    for (int how = 0; how < 4; how++) {
        const char *keep[] = {"layers.0.gated", "layers.1.attn_residual", "selected"};
        whit_plan plan = compile(
            &graph,
            (whit_plan_options){.no_fuse = how & 1, .keep_hidden = how & 2, .keep = keep, .n_keep = how & 2 ? 3 : 0});
        uint32_t n_kept = 0;
        for (uint32_t v = 0; v < plan.n_values; v++) {
            if (!plan.values[v].kept) continue;
            n_kept++;
            for (uint32_t w = 0; w < plan.n_values; w++)
                assert_true(w == v || plan.values[w].slot != plan.values[v].slot);
        }
        assert_int_equal(n_kept, how & 2 ? 5 : 1);
        whit_plan_free(&plan);
    }
    whit_graph_free(&graph);
}

static void a_range_of_nodes_runs_alone(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    whit_graph graph = build(&shapes);
    const char *keep[] = {"layers.1.ffn_residual"};
    uint32_t first = 0;
    while (strncmp(graph.values[graph.nodes[first].output - 1].name, "layers.1.", 9) != 0) first++;
    uint32_t n = 0;
    while (strncmp(graph.values[graph.nodes[first + n].output - 1].name, "layers.1.", 9) == 0) n++;
    whit_plan plan = compile(&graph, (whit_plan_options){.keep = keep, .n_keep = 1, .first_node = first, .n_nodes = n});
    uint32_t n_external = 0;
    for (uint32_t v = 0; v < plan.n_values; v++) n_external += plan.values[v].external;
    assert_int_equal(n_external, 1); /* the residual stream is external */
    assert_int_equal(plan.output, 0);
    assert_int_equal(count(&plan, WHIT_PLAN_LINEAR), 7);
    whit_plan_free(&plan);
    whit_graph_free(&graph);
}

static void unused_and_neutral_nodes_are_dropped(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    whit_error error = {0};
    whit_graph graph;
    whit_graph_begin(&graph, NULL, (whit_resolver){&shapes, find, type_of}, &error);
    whit_ref x = whit_graph_embed(&graph, "x", "embed", 32);
    whit_ref dead = whit_graph_scale(&graph, -1, "dead", x, 3.0);
    whit_ref same = whit_graph_scale(&graph, -1, "same", x, 1.0);
    whit_ref half = whit_graph_scale(&graph, -1, "half", same, 0.5);
    whit_graph_output(&graph, half, half);
    assert_ok(whit_graph_finish(&graph), error);
    whit_plan plan = compile(&graph, (whit_plan_options){0});
    assert_int_equal(plan.n_steps, 2); /* the steps of embed and half */
    assert_int_equal(find_value(&plan, dead), 0);
    assert_int_equal(plan.n_slots, 2); /* the output has a slot of its own */
    whit_plan_free(&plan);
    whit_graph_free(&graph);
}

/* What a layer appends to the cache must be computed if another layer reads it, even if the layer's own output is
 * unused. */
static void shared_keys_are_appended(void **state)
{
    (void)state;
    struct shapes s = bitnet();
    whit_error error = {0};
    whit_graph g;
    whit_plan plan;
    uint32_t n_appends = 0, n_shared = 0;
    whit_graph_begin(&g, NULL, (whit_resolver){&s, find, type_of}, &error);
    whit_ref x = whit_graph_embed(&g, "e", "embed", 32);
    whit_ref q = whit_graph_linear(&g, 0, "q0", x, "q", NULL, 64), k = whit_graph_linear(&g, 0, "k0", x, "k", NULL, 32),
             v = whit_graph_linear(&g, 0, "v0", x, "v", NULL, 32);
    whit_graph_attention(&g, 0, "unused", q, k, v, 16, 0, 0.25);
    whit_ref selected = whit_graph_select(&g, "s", x);
    q = whit_graph_linear(&g, 1, "q1", selected, "q", NULL, 64);
    x = whit_graph_attention_shared(&g, 1, "shared", q, 0, 16, 0.25);
    whit_graph_output(&g, x, whit_graph_linear(&g, -1, "logits", x, "embed", NULL, 32));
    assert_ok(whit_graph_finish(&g), error);
    const whit_plan_options options = {.act = WHIT_ACT_F32};
    assert_ok(whit_plan_compile(&g, &options, NULL, &plan, &error), error);
    for (uint32_t i = 0; i < plan.n_steps; i++) {
        n_appends += plan.steps[i].op == WHIT_PLAN_APPEND && plan.steps[i].layer == 0;
        n_shared += plan.steps[i].op == WHIT_PLAN_ATTEND && plan.steps[i].is_shared && plan.steps[i].layer == 0 &&
            plan.steps[i].rows == WHIT_ROWS_SELECTED;
    }
    assert_int_equal(n_appends, 1);
    assert_int_equal(n_shared, 1);
    whit_plan_free(&plan);
    whit_graph_free(&g);
}

static void wrong_models_are_refused_by_name(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    whit_error error = {0};
    whit_graph graph;
    shapes.config.n_ff = 80; /* the tensors are made for 80... */
    (void)find(&shapes, "layers.0.gate");
    shapes.config.n_ff = 96; /* ...and the configuration says 96 */
    whit_graph_begin(&graph, NULL, (whit_resolver){&shapes, find, type_of}, &error);
    assert_int_equal(whit_family_build(&shapes.config, &graph), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "layers.0.gate"));
    whit_graph_free(&graph);
    snprintf(shapes.config.family, sizeof shapes.config.family, "mamba");
    whit_graph_begin(&graph, NULL, (whit_resolver){&shapes, find, type_of}, &error);
    assert_int_equal(whit_family_build(&shapes.config, &graph), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "mamba"));
    whit_graph_free(&graph);
}

/* An unknown gate, and operands with different row counts, must be refused before a plan is made. */
static void what_cannot_be_computed_is_refused(void **state)
{
    (void)state;
    struct shapes shapes = bitnet();
    for (int how = 0; how < 3; how++) {
        whit_error error = {0};
        whit_graph graph;
        whit_graph_begin(&graph, NULL, (whit_resolver){&shapes, find, type_of}, &error);
        whit_ref x = whit_graph_embed(&graph, "x", "embed", 32), wanted = whit_graph_select(&graph, "wanted", x);
        whit_ref y = how == 1 ? whit_graph_add(&graph, -1, "sum", x, wanted)
                              : whit_graph_gate(&graph, -1, "gated", how ? WHIT_GATE_GELU : WHIT_GATE_COUNT, x, x);
        whit_graph_output(&graph, y, y);
        whit_status status = whit_graph_finish(&graph);
        assert_int_equal(status, how == 2 ? WHIT_OK : how ? WHIT_ERROR_FORMAT : WHIT_ERROR_UNSUPPORTED);
        if (status != WHIT_OK) assert_non_null(strstr(error.message, how ? "sum" : "gated"));
        whit_graph_free(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_one_input_share_it),       cmocka_unit_test(values_that_live_together_lie_apart),
        cmocka_unit_test(kept_values_have_slots_of_their_own),  cmocka_unit_test(a_range_of_nodes_runs_alone),
        cmocka_unit_test(unused_and_neutral_nodes_are_dropped), cmocka_unit_test(shared_keys_are_appended),
        cmocka_unit_test(wrong_models_are_refused_by_name),     cmocka_unit_test(what_cannot_be_computed_is_refused),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
