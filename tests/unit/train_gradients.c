/* SPDX-License-Identifier: MIT
 * Compares gradients of every operation, of straight-through layers and of whole tiny models with central
 * differences in double precision. */
#include "test.h"

#include "base/rng.h"
#include "model/families.h"
#include "train/loss.h"
#include "train/ops.h"
#include "train_reference.h"

enum { VOCAB = 13, SEQUENCES = 2, TOKENS = 70 }; /* more tokens than a block of queries */

struct world {
    whit_config config;
    whit_params params;
    whit_graph graph;
    whit_tape tape;
    whit_pool *pool;
    whit_error error;
    int32_t ids[SEQUENCES * TOKENS];
    float *direction; /* loss = sum of direction * output; so this is the loss's gradient */
    size_t n_outputs;
};

static float noise(whit_rng *rng)
{
    return (float)(whit_rng_uniform(rng) * 2 - 1);
}

static void add_tensor(struct world *w, const char *name, uint32_t n_rows, uint32_t n_cols, whit_layout layout)
{
    whit_tensor_type type = {.layout = layout, .n_rows = n_rows, .n_cols = n_cols};
    assert_ok(whit_params_add(&w->params, name, &type, false, &w->error), w->error);
}

static void add_matrix(struct world *w, const char *name, uint32_t n_rows, uint32_t n_cols)
{
    add_tensor(w, name, n_rows, n_cols, WHIT_LAYOUT_TILE16);
}

/* Adds a matrix; one of a single row is a vector. */
static void add(struct world *w, const char *name, uint32_t n_rows, uint32_t n_cols)
{
    add_tensor(w, name, n_rows, n_cols, n_rows == 1 ? WHIT_LAYOUT_PLAIN : WHIT_LAYOUT_TILE16);
}

static void fill(struct world *w)
{
    whit_rng rng = {7};
    assert_ok(whit_params_allocate(&w->params, true, &w->error), w->error);
    for (uint32_t i = 0; i < w->params.n; i++) {
        const whit_param *param = &w->params.items[i];
        float *latent = whit_param_latent(&w->params, param), centre = param->type.n_rows == 1 ? 1.0f : 0.0f;
        float size = param->type.n_rows == 1 ? 0.3f : 1.5f / sqrtf((float)param->type.n_cols);
        for (size_t k = 0; k < param->n; k++) latent[k] = centre + size * noise(&rng);
    }
    whit_params_fit(&w->params, NULL, NULL);
    whit_params_round(&w->params, NULL);
    for (size_t i = 0; i < SEQUENCES * TOKENS; i++) w->ids[i] = (int32_t)whit_rng_below(&rng, VOCAB);
}

static void open_tape(struct world *w, bool checkpoint, uint32_t n_threads)
{
    whit_tape_options options = {SEQUENCES, TOKENS, true, checkpoint};
    assert_ok(whit_pool_open(n_threads, NULL, &w->pool, &w->error), w->error);
    assert_ok(whit_tape_open(&w->tape, &w->graph, &w->config, &w->params, &options, w->pool, NULL, &w->error),
              w->error);
}

static void close_tape(struct world *w)
{
    whit_tape_close(&w->tape);
    whit_pool_close(w->pool);
}

static void close_world(struct world *w)
{
    free(w->direction);
    whit_graph_free(&w->graph);
    whit_params_free(&w->params);
}

/* ---- single operations ---------------------------------------------------------------------- */

enum { WIDTH = 24, HEAD = 4, TAPS = 3 };

static whit_ref state_op_scale(whit_graph *g, whit_ref x)
{
    return whit_graph_select(g, "selected", whit_graph_scale(g, -1, "y", x, 0.7));
}

static whit_ref state_op_norm(whit_graph *g, whit_ref x)
{
    return whit_graph_rms_norm(g, -1, "y", x, "norm", 1e-3);
}

static whit_ref state_op_head_norm(whit_graph *g, whit_ref x)
{
    return whit_graph_head_norm(g, -1, "y", x, "head_norm", HEAD, 1e-3);
}

static whit_ref state_op_linear(whit_graph *g, whit_ref x)
{
    return whit_graph_linear(g, -1, "y", x, "wide", "bias", 2 * WIDTH);
}

static whit_ref state_op_rope(whit_graph *g, whit_ref x)
{
    return whit_graph_rope(g, -1, "y", x, 2 * HEAD, HEAD, 0);
}

static whit_ref attention(whit_graph *g, whit_ref x, uint32_t window)
{
    whit_ref q = whit_graph_linear(g, -1, "q", x, "square", NULL, WIDTH);
    whit_ref k = whit_graph_linear(g, -1, "k", x, "narrow", NULL, 2 * HEAD);
    whit_ref v = whit_graph_linear(g, -1, "v", x, "narrow2", NULL, 2 * HEAD);
    return whit_graph_attention(g, -1, "y", q, k, v, HEAD, window, 0.5);
}

static whit_ref state_op_attention(whit_graph *g, whit_ref x)
{
    return attention(g, x, 0);
}

static whit_ref state_op_window(whit_graph *g, whit_ref x)
{
    return attention(g, x, 9);
}

static whit_ref state_op_silu(whit_graph *g, whit_ref x)
{
    return whit_graph_gate(g, -1, "y", WHIT_GATE_SILU, whit_graph_linear(g, -1, "a", x, "square", NULL, WIDTH), x);
}

static whit_ref state_op_relu2(whit_graph *g, whit_ref x)
{
    return whit_graph_gate(g, -1, "y", WHIT_GATE_RELU2, x, whit_graph_linear(g, -1, "a", x, "square", NULL, WIDTH));
}

static whit_ref gate_of(whit_graph *g, whit_ref x, whit_gate gate)
{
    return whit_graph_gate(g, -1, "y", gate, whit_graph_linear(g, -1, "a", x, "square", NULL, WIDTH), x);
}

static whit_ref state_op_gelu(whit_graph *g, whit_ref x)
{
    return gate_of(g, x, WHIT_GATE_GELU);
}

static whit_ref state_op_sigmoid(whit_graph *g, whit_ref x)
{
    return gate_of(g, x, WHIT_GATE_SIGMOID);
}

static whit_ref state_op_product(whit_graph *g, whit_ref x)
{
    return gate_of(g, x, WHIT_GATE_PRODUCT);
}

static whit_ref state_op_swish1(whit_graph *g, whit_ref x)
{
    return gate_of(g, x, WHIT_GATE_SWISH1);
}

static whit_ref state_op_scale_rows(whit_graph *g, whit_ref x)
{
    return whit_graph_scale_rows(g, -1, "y", x, whit_graph_linear(g, -1, "a", x, "single", NULL, 1));
}

/* The output also adds x, so that the convolution's gradient of x is the second one to be written. */
static whit_ref state_op_conv(whit_graph *g, whit_ref x)
{
    return whit_graph_add(g, -1, "y", whit_graph_conv(g, -1, "c", x, "taps", TAPS, false), x);
}

static whit_ref state_op_conv_silu(whit_graph *g, whit_ref x)
{
    return whit_graph_conv(g, -1, "y", x, "taps", TAPS, true);
}

/* Four value heads on two key heads. */
static whit_ref state_op_delta(whit_graph *g, whit_ref x)
{
    whit_delta_shape shape = {.n_heads = 4, .n_key_heads = 2, .key_dim = HEAD, .value_dim = HEAD - 1};
    whit_ref mixed = whit_graph_linear(g, -1, "m", x, "mixed", NULL, 4 * HEAD + 4 * (HEAD - 1)),
             beta = whit_graph_linear(g, -1, "b", x, "four", NULL, 4),
             decay = whit_graph_linear(g, -1, "d", x, "four2", NULL, 4);
    whit_ref y = whit_graph_delta(g, -1, "y", mixed, beta, decay, "delta_a", "delta_dt", shape);
    shape.is_grouped = true;
    return whit_graph_delta(g, -1, "z", whit_graph_add(g, -1, "twice", mixed, mixed), beta,
                            whit_graph_linear(g, -1, "back", y, "four_back", NULL, 4), "delta_a", "delta_dt", shape);
}

static whit_ref state_op_clamp(whit_graph *g, whit_ref x)
{
    return whit_graph_clamp(g, -1, "z", whit_graph_clamp(g, -1, "y", x, 0.31, false), 0.17, true);
}

/* Two of five experts per token, in two layers; the second layer reads the first. */
static whit_ref experts(whit_graph *g, whit_ref x, whit_route_shape shape)
{
    for (int layer = 0; layer < 2; layer++) {
        whit_ref route = whit_graph_route(g, -1, layer ? "r2" : "r", whit_graph_linear(g, -1, "l", x, "five", NULL, 5),
                                          shape),
                 rows = whit_graph_dispatch(g, -1, "d", x, route),
                 h = whit_graph_expert_linear(g, -1, "h", rows, "experts", "experts_bias", 16),
                 up = whit_graph_expert_linear(g, -1, "u", rows, "experts2", NULL, 16);
        h = whit_graph_gate(g, -1, "g", WHIT_GATE_SILU, h, up);
        h = whit_graph_expert_linear(g, -1, "o", h, "experts_back", NULL, 32);
        h = whit_graph_combine(g, -1, "c", h, route);
        x = whit_graph_add(g, -1, "y", x, whit_graph_linear(g, -1, "n", h, "from_experts", NULL, WIDTH));
    }
    return x;
}

static whit_ref state_op_experts(whit_graph *g, whit_ref x)
{
    return experts(g, x, (whit_route_shape){.n_used = 2, .factor = 1.5});
}

static whit_ref state_op_experts_normed(whit_graph *g, whit_ref x)
{
    return experts(g, x,
                   (whit_route_shape){.n_used = 2, .factor = 1, .flags = WHIT_ROUTE_NORM, .scales = "expert_scales"});
}

static whit_ref state_op_experts_sigmoid(whit_graph *g, whit_ref x)
{
    return experts(
        g, x,
        (whit_route_shape){.n_used = 2, .factor = 2, .added = 0.1, .flags = WHIT_ROUTE_NORM | WHIT_ROUTE_SIGMOID});
}

static whit_ref state_op_add(whit_graph *g, whit_ref x)
{
    return whit_graph_add(g, -1, "y", x, whit_graph_linear(g, -1, "a", x, "square", NULL, WIDTH));
}

static whit_ref state_op_tied(whit_graph *g, whit_ref x)
{
    return whit_graph_linear(g, -1, "y", x, "table", NULL, VOCAB);
}

/* Returns the relative error, as a norm, of one parameter's gradient. Of a large parameter only some elements are
 * compared. */
static double compare_param(struct world *w, reference *r, uint32_t i)
{
    const whit_param *param = &w->params.items[i];
    const float *gradient = whit_param_gradient(&w->params, param);
    double error = 0, size = 0, h = 1e-5;
    for (size_t k = 0; k < param->n; k += 1 + param->n / (tests_are_brief() ? 30 : 150)) {
        double both[2], kept = r->weights[i][k];
        for (int side = 0; side < 2; side++) {
            r->weights[i][k] = kept + (side ? h : -h);
            const double *y = reference_run(r, w->ids);
            both[side] = 0;
            for (size_t j = 0; j < w->n_outputs; j++) both[side] += w->direction[j] * y[j];
            both[side] += (double)w->tape.options.balance * r->unbalance;
        }
        r->weights[i][k] = kept;
        double expected = (both[1] - both[0]) / (2 * h);
        error += (gradient[k] - expected) * (gradient[k] - expected);
        size += expected * expected;
    }
    return sqrt(error) / (sqrt(size) + 1e-30);
}

static void check_balanced_op(const char *name, whit_ref (*state_op)(whit_graph *g, whit_ref x), float balance)
{
    struct world w = {.config = {.rope_dim = HEAD, .rope_theta = 100}};
    whit_params_begin(&w.params, NULL);
    add(&w, "table", VOCAB, WIDTH);
    add(&w, "norm", 1, WIDTH);
    add(&w, "head_norm", 1, HEAD);
    add(&w, "square", WIDTH, WIDTH);
    add(&w, "narrow", 2 * HEAD, WIDTH);
    add(&w, "narrow2", 2 * HEAD, WIDTH);
    add(&w, "wide", 2 * WIDTH, WIDTH);
    add(&w, "bias", 1, 2 * WIDTH);
    add_matrix(&w, "single", 1, WIDTH);
    add(&w, "taps", 1, TAPS * WIDTH);
    add(&w, "mixed", 4 * HEAD + 4 * (HEAD - 1), WIDTH);
    add(&w, "four", 4, WIDTH);
    add(&w, "four2", 4, WIDTH);
    add(&w, "four_back", 4, 4 * (HEAD - 1));
    add(&w, "five", 5, WIDTH);
    add(&w, "experts", 5 * 16, WIDTH);
    add(&w, "experts2", 5 * 16, WIDTH);
    add(&w, "experts_bias", 5, 16);
    add(&w, "experts_back", 5 * 32, 16);
    add(&w, "from_experts", WIDTH, 32);
    add(&w, "expert_scales", 1, 5);
    add(&w, "delta_a", 1, 4);
    add(&w, "delta_dt", 1, 4);
    fill(&w);
    float *a = whit_param_latent(&w.params, &w.params.items[whit_params_find(&w.params, "delta_a")]);
    for (int i = 0; i < 4; i++) a[i] = -a[i]; /* states decay */
    whit_graph_begin(&w.graph, NULL, whit_params_resolver(&w.params), &w.error);
    /* The gradient overwrites the output, but attention needs its own result; so a copy of it is the output. */
    whit_ref y =
        whit_graph_scale(&w.graph, -1, "out", state_op(&w.graph, whit_graph_embed(&w.graph, "x", "table", VOCAB)), 1);
    whit_graph_output(&w.graph, y, y);
    assert_ok(whit_graph_finish(&w.graph), w.error);
    open_tape(&w, false, 2);
    w.tape.options.balance = balance;

    w.n_outputs = (size_t)SEQUENCES * TOKENS * w.graph.values[y - 1].width;
    w.direction = malloc(w.n_outputs * sizeof *w.direction);
    whit_rng rng = {11};
    for (size_t i = 0; i < w.n_outputs; i++) w.direction[i] = noise(&rng);
    reference r = reference_open(&w.graph, &w.params, SEQUENCES, TOKENS, 100);
    const double *expected = reference_run(&r, w.ids);
    whit_tape_forward(&w.tape, w.ids);
    for (size_t i = 0; i < w.n_outputs; i++)
        assert_true(fabs(expected[i] - whit_tape_value(&w.tape, y)[i]) < 1e-5 * (1 + fabs(expected[i])));
    whit_tape_zero_gradients(&w.tape);
    memcpy(whit_tape_gradient(&w.tape, y), w.direction, w.n_outputs * sizeof *w.direction);
    whit_tape_backward(&w.tape, NULL, NULL);
    double worst = 0;
    for (uint32_t i = 0; i < w.params.n; i++) {
        bool used = false;
        for (uint32_t n = 0; n < w.graph.n_nodes; n++)
            used |= w.graph.nodes[n].weight == (int32_t)i || w.graph.nodes[n].bias == (int32_t)i;
        if (used) worst = fmax(worst, compare_param(&w, &r, i));
    }
    print_message("%s: relative error %.2g\n", name, worst);
    assert_true(worst < 1e-4);
    reference_close(&r);
    close_tape(&w);
    close_world(&w);
}

static void check_op(const char *name, whit_ref (*state_op)(whit_graph *g, whit_ref x))
{
    check_balanced_op(name, state_op, 0);
}

static void operations(void **state)
{
    (void)state;
    check_op("embed, scale, select", state_op_scale);
    check_op("norm", state_op_norm);
    check_op("norm of heads", state_op_head_norm);
    check_op("linear with bias", state_op_linear);
    check_op("rope", state_op_rope);
    check_op("attention", state_op_attention);
    check_op("attention in a window", state_op_window);
    check_op("silu gate", state_op_silu);
    check_op("relu2 gate", state_op_relu2);
    check_op("gelu gate", state_op_gelu);
    check_op("sigmoid gate", state_op_sigmoid);
    check_op("product gate", state_op_product);
    check_op("gate of swish and one more", state_op_swish1);
    check_op("rows times a sigmoid", state_op_scale_rows);
    check_op("convolution", state_op_conv);
    check_op("convolution with silu", state_op_conv_silu);
    check_op("delta rule", state_op_delta);
    check_op("clamps", state_op_clamp);
    check_op("experts", state_op_experts);
    check_op("experts, normalised and scaled", state_op_experts_normed);
    check_op("experts by sigmoids", state_op_experts_sigmoid);
    check_balanced_op("experts, balanced", state_op_experts, 30);
    check_balanced_op("experts by sigmoids, balanced", state_op_experts_sigmoid, 30);
    check_op("add", state_op_add);
    check_op("tied head", state_op_tied);
}

/* Only every sqrt(n)-th state is stored and the others are computed again, so memory grows with the square root of the
 * number of tokens. */
static void few_states_are_kept(void **state)
{
    (void)state;
    const whit_node node = {.op = WHIT_OP_DELTA, .head_dim = 32, .value_dim = 64};
    for (uint32_t root = 8; root <= 64; root *= 2) {
        size_t floats = whit_op_delta_scratch(&node, root * root);
        print_message("%u tokens: %.1f states\n", root * root, (double)floats / (32 * 64));
        assert_true(floats < (2.2 * root + 3) * 32 * 64);
    }
}

/* ---- losses --------------------------------------------------------------------------------- */

static void losses(void **state)
{
    (void)state;
    enum { ROWS = 5, N = 37 };
    float logits[ROWS * N], teacher[ROWS * N], gradient[ROWS * N];
    int32_t targets[ROWS] = {3, -1, 0, 36, 7};
    whit_rng rng = {3};
    whit_error error;
    for (int i = 0; i < ROWS * N; i++) {
        logits[i] = 4 * noise(&rng);
        teacher[i] = 4 * noise(&rng);
    }
    memcpy(gradient, logits, sizeof gradient);
    whit_loss loss;
    assert_ok(whit_loss_open(&loss, ROWS, 0.3f, 0.7f, NULL, &error), error);
    whit_loss_run(&loss, NULL, gradient, teacher, targets, N, 2);
    double ce = 0, kl = 0, worst = 0;
    for (int r = 0; r < ROWS; r++) {
        double x[N], t[N];
        for (int i = 0; i < N; i++) {
            x[i] = logits[r * N + i];
            t[i] = teacher[r * N + i];
        }
        if (targets[r] < 0) {
            for (int i = 0; i < N; i++) assert_true(gradient[r * N + i] == 0);
            continue;
        }
        double whole[2], total = 0;
        for (int k = -1; k < N; k++) /* k = -1: the loss itself */
            for (int side = 0; side < (k < 0 ? 1 : 2); side++) {
                double kept = k < 0 ? 0 : x[k], h = 1e-5;
                if (k >= 0) x[k] += side ? h : -h;
                double lx = reference_log_sum(x, N), lt = reference_log_sum(t, N), row_kl = 0;
                double row_ce = lx - x[targets[r]];
                for (int i = 0; i < N; i++) row_kl += exp(t[i] - lt) * ((t[i] - lt) - (x[i] - lx));
                whole[side] = 2 * (0.3 * row_ce + 0.7 * row_kl) / (ROWS - 1);
                if (k >= 0) x[k] = kept;
                if (k < 0) {
                    ce += row_ce / (ROWS - 1);
                    kl += row_kl / (ROWS - 1);
                } else if (side) {
                    double expected = (whole[1] - whole[0]) / (2 * h);
                    worst = fmax(worst, fabs(expected - gradient[r * N + k]));
                    total = fmax(total, fabs(expected));
                }
            }
        assert_true(total > 0.01);
    }
    assert_true(worst < 1e-6);
    assert_true(fabs(ce - loss.ce) < 1e-5 && fabs(kl - loss.kl) < 1e-5);
    whit_loss_close(&loss);
}

/* ---- whole models --------------------------------------------------------------------------- */

static void add_layer(struct world *w, int layer, const whit_config *c)
{
    const struct {
        const char *name;
        uint32_t n_rows, n_cols;
        bool wanted;
    } tensors[] = {
        {"attn_norm", 1, c->n_embd, true},
        {"q", c->n_heads * c->head_dim, c->n_embd, true},
        {"k", c->n_kv_heads * c->head_dim, c->n_embd, true},
        {"v", c->n_kv_heads * c->head_dim, c->n_embd, true},
        {"q_bias", 1, c->n_heads * c->head_dim, c->attn_bias},
        {"k_bias", 1, c->n_kv_heads * c->head_dim, c->attn_bias},
        {"v_bias", 1, c->n_kv_heads * c->head_dim, c->attn_bias},
        {"q_norm", 1, c->head_dim, c->qk_norm},
        {"k_norm", 1, c->head_dim, c->qk_norm},
        {"attn_sub_norm", 1, c->n_heads * c->head_dim, c->sub_norm},
        {"o", c->n_embd, c->n_heads * c->head_dim, true},
        {"ffn_norm", 1, c->n_embd, true},
        {"gate", c->n_ff, c->n_embd, true},
        {"up", c->n_ff, c->n_embd, true},
        {"ffn_sub_norm", 1, c->n_ff, c->sub_norm},
        {"down", c->n_embd, c->n_ff, true},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.%s", layer, tensors[i].name);
        if (tensors[i].wanted) add(w, name, tensors[i].n_rows, tensors[i].n_cols);
    }
}

static void open_model(struct world *w, const whit_config *config)
{
    *w = (struct world){.config = *config};
    whit_params_begin(&w->params, NULL);
    add(w, "embed", VOCAB, config->n_embd);
    for (uint32_t layer = 0; layer < config->n_layers; layer++) add_layer(w, (int)layer, config);
    add(w, "final_norm", 1, config->n_embd);
    if (!config->tied_head) add(w, "head", VOCAB, config->n_embd);
    fill(w);
    whit_graph_begin(&w->graph, NULL, whit_params_resolver(&w->params), &w->error);
    assert_ok(whit_family_build(config, &w->graph), w->error);
}

static whit_config config_of(const char *family)
{
    whit_config c = {.n_layers = 3,
                     .n_embd = 16,
                     .n_ff = 24,
                     .n_heads = 4,
                     .n_kv_heads = 2,
                     .head_dim = 4,
                     .rope_dim = 4,
                     .n_vocab = VOCAB,
                     .n_ctx = 256,
                     .norm_eps = 1e-5,
                     .rope_theta = 1e4};
    snprintf(c.family, sizeof c.family, "%s", family);
    c.tied_head = strcmp(family, "llama") != 0;
    c.attn_bias = !strcmp(family, "qwen2");
    c.qk_norm = !strcmp(family, "qwen3");
    c.sub_norm = !strcmp(family, "bitnet");
    c.gate = c.sub_norm ? WHIT_GATE_RELU2 : WHIT_GATE_SILU;
    return c;
}

static void targets_of(const struct world *w, int32_t *targets)
{
    for (uint32_t i = 0; i < SEQUENCES * TOKENS; i++) targets[i] = i % TOKENS + 1 < TOKENS ? w->ids[i + 1] : -1;
}

static void add_gradients(struct world *w)
{
    int32_t targets[SEQUENCES * TOKENS];
    whit_loss loss;
    targets_of(w, targets);
    assert_ok(whit_loss_open(&loss, SEQUENCES * TOKENS, 1, 0, NULL, &w->error), w->error);
    whit_tape_forward(&w->tape, w->ids);
    whit_loss_run(&loss, w->tape.pool, whit_tape_gradient(&w->tape, w->graph.output), NULL, targets, VOCAB, 1);
    whit_tape_backward(&w->tape, NULL, NULL);
    whit_loss_close(&loss);
}

static void run_gradients(struct world *w)
{
    whit_tape_zero_gradients(&w->tape);
    add_gradients(w);
}

static double reference_loss(reference *r, const struct world *w)
{
    int32_t targets[SEQUENCES * TOKENS];
    targets_of(w, targets);
    const double *logits = reference_run(r, w->ids);
    double sum = 0;
    for (int i = 0; i < SEQUENCES * TOKENS; i++)
        if (targets[i] >= 0) sum += reference_log_sum(logits + i * VOCAB, VOCAB) - logits[i * VOCAB + targets[i]];
    return sum / (SEQUENCES * (TOKENS - 1));
}

/* Compares the slope of the loss along three random directions of all parameters with the gradient. */
static void check_directions(struct world *w, const char *name)
{
    whit_rng rng = {5};
    for (int trial = 0; trial < 3; trial++) {
        reference r = reference_open(&w->graph, &w->params, SEQUENCES, TOKENS, w->config.rope_theta);
        double slope = 0, h = 1e-5, both[2];
        float *direction = malloc(w->params.n_latents * sizeof *direction);
        for (size_t i = 0; i < w->params.n_latents; i++) {
            direction[i] = noise(&rng);
            slope += (double)direction[i] * w->params.gradient[i];
        }
        for (int side = 0; side < 2; side++) {
            for (uint32_t i = 0; i < w->params.n; i++)
                for (size_t k = 0; k < w->params.items[i].n; k++)
                    r.weights[i][k] += (side ? 2 : -1) * h * direction[w->params.items[i].offset + k];
            both[side] = reference_loss(&r, w);
        }
        double expected = (both[1] - both[0]) / (2 * h);
        print_message("%s: along a direction %.7f, expected %.7f\n", name, slope, expected);
        assert_true(fabs(slope - expected) < 1e-3 * fabs(expected));
        free(direction);
        reference_close(&r);
    }
}

static void models(void **state)
{
    (void)state;
    static const char *const families[] = {"llama", "qwen2", "qwen3", "bitnet"};
    for (size_t i = 0; i < 4; i++) {
        whit_config config = config_of(families[i]);
        struct world w;
        open_model(&w, &config);
        open_tape(&w, true, 2);
        run_gradients(&w);
        check_directions(&w, families[i]);
        close_tape(&w);
        close_world(&w);
    }
}

static void gradients_do_not_depend_on_threads_or_checkpoints(void **state)
{
    (void)state;
    whit_config config = config_of("qwen3");
    struct world w;
    open_model(&w, &config);
    float *first = malloc(w.params.n_floats * sizeof *first);
    for (int variant = 0; variant < 4; variant++) {
        open_tape(&w, variant & 1, variant & 2 ? 3 : 1);
        run_gradients(&w);
        if (!variant) memcpy(first, w.params.gradient, w.params.n_floats * sizeof *first);
        assert_memory_equal(first, w.params.gradient, w.params.n_floats * sizeof *first);
        close_tape(&w);
    }
    free(first);
    close_world(&w);
}

/* The first pass must overwrite the gradients, and later ones must add to them. */
static void gradients_are_a_sum_of_passes(void **state)
{
    (void)state;
    static const char *const families[] = {"qwen2", "bitnet"};
    for (size_t i = 0; i < 2; i++) {
        whit_config config = config_of(families[i]);
        struct world w;
        open_model(&w, &config);
        open_tape(&w, false, 1);
        const size_t n = w.params.n_floats;
        float *first = malloc(n * sizeof *first);
        run_gradients(&w);
        memcpy(first, w.params.gradient, n * sizeof *first);
        for (size_t k = 0; k < n; k++) w.params.gradient[k] = NAN;
        run_gradients(&w);
        assert_memory_equal(first, w.params.gradient, n * sizeof *first);
        add_gradients(&w);
        for (size_t k = 0; k < n; k++)
            assert_true(fabs(2.0 * first[k] - w.params.gradient[k]) <= 1e-5 * fabs(2.0 * first[k]) + 1e-7);
        uint32_t n_sole = 0;
        for (uint32_t p = 0; p < w.params.n; p++) n_sole += w.tape.is_sole[p];
        assert_true(n_sole > 0 && n_sole < w.params.n);
        free(first);
        close_tape(&w);
        close_world(&w);
    }
}

/* A value that is not used, and a value that only such a value uses, may not change a gradient. */
static void dead_values_have_no_gradients(void **state)
{
    (void)state;
    float *first = NULL;
    for (int dead = 0; dead < 2; dead++) {
        struct world w = {.config = {.rope_dim = 0, .rope_theta = 100}};
        whit_params_begin(&w.params, NULL);
        add(&w, "table", VOCAB, WIDTH);
        add(&w, "square", WIDTH, WIDTH);
        add(&w, "unused", WIDTH, WIDTH);
        fill(&w);
        whit_graph *g = &w.graph;
        whit_graph_begin(g, NULL, whit_params_resolver(&w.params), &w.error);
        whit_ref x = whit_graph_embed(g, "x", "table", VOCAB),
                 h = whit_graph_linear(g, -1, "h", x, "square", NULL, WIDTH);
        if (dead) whit_graph_add(g, -1, "b", h, whit_graph_linear(g, -1, "a", h, "unused", NULL, WIDTH));
        whit_ref y = whit_graph_linear(g, -1, "y", h, "table", NULL, VOCAB);
        whit_graph_output(g, y, y);
        assert_ok(whit_graph_finish(g), w.error);
        open_tape(&w, false, 1);
        /* Fills the memory with NaN, as old content where no gradient is written. */
        for (size_t i = 0; i < w.tape.arena_bytes / sizeof *w.tape.arena; i++) w.tape.arena[i] = NAN;
        run_gradients(&w);
        if (!dead) {
            first = malloc(w.params.n_floats * sizeof *first);
            memcpy(first, w.params.gradient, w.params.n_floats * sizeof *first);
        }
        assert_memory_equal(first, w.params.gradient, w.params.n_floats * sizeof *first);
        close_tape(&w);
        close_world(&w);
    }
    free(first);
}

/* ---- straight through ----------------------------------------------------------------------- */

static whit_tensor_type coded_type(uint8_t codec, uint8_t kind, uint32_t n_rows, uint32_t n_cols)
{
    whit_tensor_type type = {
        .codec = codec, .layout = WHIT_LAYOUT_TILE16, .n_rows = n_rows, .n_cols = n_cols, .scale_kind = kind};
    if (kind == WHIT_SCALE_GROUP) {
        type.scale_type = codec == WHIT_CODEC_L2 ? WHIT_SCALE_L6 : WHIT_SCALE_F16;
        type.group = codec == WHIT_CODEC_T5 ? 128 : 32;
    }
    return type;
}

/* Returns the slope of the loss for a change of one scale with all codes unchanged, which the scale's gradient must
 * equal. `rounded` are the values with a rounding share of 1. */
static double scale_slope(struct world *w, reference *r, const whit_param *param, const float *rounded, size_t scale)
{
    size_t group = scale / param->n_fields, line = group / param->n_groups;
    size_t begin = line * param->line_elems + group % param->n_groups * param->group_elems,
           end = begin + param->group_elems;
    if (end > (line + 1) * param->line_elems) end = (line + 1) * param->line_elems;
    const float *fields = w->params.run + param->scales + group * param->n_fields;
    const float *latent = whit_param_latent(&w->params, param);
    uint32_t at = (uint32_t)(param - w->params.items);
    double both[2], h = 1e-5;
    for (int side = 0; side < 2; side++) {
        for (size_t k = begin; k < end; k++) {
            double value = rounded[k], a = fields[0], along = value < 0 ? -1 : 1;
            if (param->n_fields == 2 && scale % param->n_fields)
                along *= fabs(value) > a ? 1 : -1;
            else if (value == 0)
                along = 0;
            r->weights[at][k] = latent[k] + w->params.share * (value + (side ? h : -h) * along - latent[k]);
        }
        const double *y = reference_run(r, w->ids);
        both[side] = 0;
        for (size_t j = 0; j < w->n_outputs; j++) both[side] += w->direction[j] * y[j];
    }
    for (size_t k = begin; k < end; k++) r->weights[at][k] = param->value[k];
    return (both[1] - both[0]) / (2 * h);
}

/* Rounds rows to int8 with a scale each, as W1.58A8 rounds activations. */
static void round_table(double *table, size_t n_rows, size_t n_cols)
{
    for (double *row = table; row < table + n_rows * n_cols; row += n_cols) {
        double most = 1e-5;
        for (size_t i = 0; i < n_cols; i++) most = fmax(most, fabs(row[i]));
        for (size_t i = 0; i < n_cols; i++) row[i] = nearbyint(row[i] * 127 / most) * most / 127;
    }
}

/* Checks a linear layer on rows of a table, whose weights are rounded by `share`. With `rounds_input` the rows are
 * rounded, too, and the gradients are those at the rounded rows. */
static void check_codec(uint8_t codec, uint8_t kind, bool rounds_input, float share)
{
    struct world w = {.config = {.rope_dim = 0, .rope_theta = 100}};
    enum { IN = 160 };                                    /* the last group is short */
    uint32_t n_out = kind == WHIT_SCALE_TENSOR ? 28 : 12; /* more outputs than are summed at once */
    whit_params_begin(&w.params, NULL);
    add(&w, "table", VOCAB, IN);
    whit_tensor_type type = coded_type(codec, kind, n_out, IN);
    assert_ok(whit_params_add(&w.params, "coded", &type, true, &w.error), w.error);
    w.params.items[1].rounds_input = rounds_input;
    fill(&w);
    w.params.learn_scales = true;
    whit_params_round(&w.params, NULL);
    const whit_param *coded = &w.params.items[1];
    float *rounded = malloc(coded->n * sizeof *rounded);
    memcpy(rounded, coded->value, coded->n * sizeof *rounded);
    w.params.share = share;
    whit_params_round(&w.params, NULL);
    whit_graph_begin(&w.graph, NULL, whit_params_resolver(&w.params), &w.error);
    whit_ref y =
        whit_graph_linear(&w.graph, -1, "y", whit_graph_embed(&w.graph, "x", "table", VOCAB), "coded", NULL, n_out);
    whit_graph_output(&w.graph, y, y);
    assert_ok(whit_graph_finish(&w.graph), w.error);
    open_tape(&w, false, 1);
    w.n_outputs = SEQUENCES * TOKENS * n_out;
    w.direction = malloc(w.n_outputs * sizeof *w.direction);
    whit_rng rng = {11};
    for (size_t i = 0; i < w.n_outputs; i++) w.direction[i] = noise(&rng);

    reference r = reference_open(&w.graph, &w.params, SEQUENCES, TOKENS, 100);
    if (rounds_input) round_table(r.weights[0], VOCAB, IN);
    whit_tape_zero_gradients(&w.tape);
    whit_tape_forward(&w.tape, w.ids);
    const double *expected_y = reference_run(&r, w.ids);
    for (size_t i = 0; i < w.n_outputs; i++) assert_true(fabs(whit_tape_value(&w.tape, y)[i] - expected_y[i]) < 1e-4);
    memcpy(whit_tape_gradient(&w.tape, y), w.direction, w.n_outputs * sizeof *w.direction);
    whit_tape_backward(&w.tape, NULL, NULL);
    whit_params_scale_gradients(&w.params, NULL);
    assert_true(compare_param(&w, &r, 0) < 1e-4 && compare_param(&w, &r, 1) < 1e-4);
    double worst = 0, size = 0;
    for (size_t s = 0; codec != WHIT_CODEC_I8 && s < coded->n_scales; s += tests_are_brief() ? 5 : 1) {
        double expected = scale_slope(&w, &r, coded, rounded, s);
        worst = fmax(worst, fabs(expected - w.params.gradient[coded->scales + s]));
        size = fmax(size, fabs(expected));
    }
    print_message("codec %u, scales of kind %u, share %g: error %.2g of %.2g\n", codec, kind, share, worst, size);
    assert_true(worst <= 1e-4 * size);
    free(rounded);
    reference_close(&r);
    close_tape(&w);
    close_world(&w);
}

static void straight_through(void **state)
{
    (void)state;
    static const uint8_t codecs[] = {WHIT_CODEC_T5, WHIT_CODEC_T2, WHIT_CODEC_B1, WHIT_CODEC_Q2};
    for (size_t i = 0; i < sizeof codecs; i++) {
        check_codec(codecs[i], WHIT_SCALE_GROUP, false, 1);
        check_codec(codecs[i], WHIT_SCALE_TENSOR, false, 1);
    }
    check_codec(WHIT_CODEC_L2, WHIT_SCALE_GROUP, false, 1);
    check_codec(WHIT_CODEC_I8, WHIT_SCALE_ROW, false, 1);
    check_codec(WHIT_CODEC_T5, WHIT_SCALE_GROUP, true, 1);
    check_codec(WHIT_CODEC_T5, WHIT_SCALE_TENSOR, true, 1);
}

/* If weights are only partly rounded, the gradients of scales have the same share. */
static void straight_through_in_part(void **state)
{
    (void)state;
    check_codec(WHIT_CODEC_T2, WHIT_SCALE_TENSOR, false, 0.5f);
    check_codec(WHIT_CODEC_Q2, WHIT_SCALE_TENSOR, false, 0.5f);
    check_codec(WHIT_CODEC_B1, WHIT_SCALE_TENSOR, false, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations),
        cmocka_unit_test(few_states_are_kept),
        cmocka_unit_test(losses),
        cmocka_unit_test(models),
        cmocka_unit_test(gradients_do_not_depend_on_threads_or_checkpoints),
        cmocka_unit_test(gradients_are_a_sum_of_passes),
        cmocka_unit_test(straight_through),
        cmocka_unit_test(straight_through_in_part),
        cmocka_unit_test(dead_values_have_no_gradients),
    };
    return cmocka_run_group_tests_name("gradients of training", tests, NULL, NULL);
}
