/* SPDX-License-Identifier: MIT
 * Tests that what is printed of a plan is what runs: every function that a pass calls is recorded, and every kernel
 * call counted. Products that only some kernels offer (gated or added to a value) are replaced by functions here, so
 * that they run on every machine; these give the bits of the separate operations. */
#include "test.h"

#include "adapter_sample.h"
#include "format/ndf_append.h"
#include "model/exec_step.h"
#include "random_model.h"
#include "runtime/session.h"

enum { ROWS_MAX = 40, WIDTH_MAX = 512, STEPS_MAX = 256, N_VOCAB_MAX = 256 };

/* ---- counted kernels ------------------------------------------------------------------------- */

static whit_kernels real, generic;
static struct counts {
    long norms, ropes, adds, norm_acts, quantise, screens, gates, products, gated, added, convs, deltas;
} calls;

static void count_norm(const float *x, const float *weight, uint32_t n, float eps, float *out)
{
    calls.norms++;
    real.rms_norm(x, weight, n, eps, out);
}

static void count_rope(const float *x, uint32_t n_heads, uint32_t head_dim, uint32_t n_pairs, const float *table,
                       float *out)
{
    calls.ropes++;
    real.rope_half(x, n_heads, head_dim, n_pairs, table, out);
}

static void count_add(float *x, const float *y, uint32_t n)
{
    calls.adds++;
    real.add(x, y, n);
}

static void count_norm_acts(const whit_norm_rows *rows, const whit_acts *acts, uint32_t begin, uint32_t end)
{
    calls.norm_acts++;
    real.norm_acts(rows, acts, begin, end);
}

static void count_quantise(const float *x, size_t stride, const whit_acts *acts, uint32_t begin, uint32_t end)
{
    calls.quantise++;
    real.quantise(x, stride, acts, begin, end);
}

static void count_screen(const whit_tensor *w, const whit_acts *x, uint32_t begin, uint32_t end, float *logits,
                         size_t stride)
{
    calls.screens++;
    real.screen(w, x, begin, end, logits, stride);
}

static void count_silu(const float *gate, const float *up, uint32_t n, float *out)
{
    calls.gates++;
    real.silu_mul(gate, up, n, out);
}

static void count_relu2(const float *gate, const float *up, uint32_t n, float *out)
{
    calls.gates++;
    real.relu2_mul(gate, up, n, out);
}

static void count_sigmoid(const float *gate, const float *up, uint32_t n, float *out)
{
    calls.gates++;
    real.sigmoid_mul(gate, up, n, out);
}

static void count_product(const float *gate, const float *up, uint32_t n, float *out)
{
    calls.gates++;
    real.product(gate, up, n, out);
}

static void count_swish1(const float *gate, const float *up, uint32_t n, float *out)
{
    calls.gates++;
    real.swish1_mul(gate, up, n, out);
}

static void count_conv(const float *const *rows, const float *weight, size_t weight_stride, uint32_t n_taps,
                       bool is_silu, uint32_t n, float *out)
{
    calls.convs++;
    real.causal_conv(rows, weight, weight_stride, n_taps, is_silu, n, out);
}

static void count_delta(float *state, const float *query, const float *value, float beta,
                        const whit_delta_update *update, uint32_t key_dim, uint32_t value_dim, float *out)
{
    calls.deltas += value_dim; /* columns: a call may advance many tokens */
    real.delta_step(state, query, value, beta, update, key_dim, value_dim, out);
}

static void count_gelu(const float *gate, const float *up, uint32_t n, float *out)
{
    calls.gates++;
    real.gelu_mul(gate, up, n, out);
}

static void multiply(const whit_tensor *w, const whit_acts *x, uint32_t begin, uint32_t end, float *y, size_t stride)
{
    static _Alignas(64) uint8_t scratch[1 << 20];
    const whit_matmul_kernel *kernel = whit_matmul_find(&generic, &w->type, &x->spec, x->n_tokens);
    if (kernel->scratch_bytes) assert_true(kernel->scratch_bytes(&w->type, &x->spec, x->n_tokens) <= sizeof scratch);
    kernel->run(w, x, begin, end, y, stride, scratch);
}

static void run(const whit_tensor *w, const whit_acts *x, uint32_t begin, uint32_t end, float *y, size_t stride,
                void *scratch)
{
    (void)scratch;
    calls.products++;
    multiply(w, x, begin, end, y, stride);
}

/* Returns the number of outputs of tiles `begin` to `end` - 1, without padding. */
static uint32_t outputs_of(const whit_tensor *w, uint32_t begin, uint32_t end)
{
    uint32_t rows = end * WHIT_TILE_ROWS < w->type.n_rows ? end * WHIT_TILE_ROWS : w->type.n_rows;
    return rows - begin * WHIT_TILE_ROWS;
}

static void run_added(const whit_tensor *w, const whit_acts *x, uint32_t begin, uint32_t end, float *y, size_t stride,
                      void *scratch)
{
    static float product[ROWS_MAX][WIDTH_MAX];
    (void)scratch;
    calls.added++;
    multiply(w, x, begin, end, product[0], WIDTH_MAX);
    for (uint32_t t = 0; t < x->n_tokens; t++)
        real.add(y + t * stride + begin * WHIT_TILE_ROWS, product[t] + begin * WHIT_TILE_ROWS,
                 outputs_of(w, begin, end));
}

static void run_gated(const whit_tensor *gate, const whit_tensor *w, whit_gate_fn *f, const whit_acts *x,
                      uint32_t begin, uint32_t end, float *y, size_t stride, void *scratch)
{
    static float gates[ROWS_MAX][WIDTH_MAX], ups[ROWS_MAX][WIDTH_MAX];
    (void)scratch;
    calls.gated++;
    multiply(gate, x, begin, end, gates[0], WIDTH_MAX);
    multiply(w, x, begin, end, ups[0], WIDTH_MAX);
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        f(gates[t] + begin * WHIT_TILE_ROWS, ups[t] + begin * WHIT_TILE_ROWS, outputs_of(w, begin, end),
          y + t * stride + begin * WHIT_TILE_ROWS);
        calls.gates--; /* `f` counts a gate, but this gate is part of the product */
    }
}

static const whit_matmul_kernel stand_in = {
    .name = "stand-in", .run = run, .run_added = run_added, .run_gated = run_gated};

/* ---- traced steps ---------------------------------------------------------------------------- */

static struct traced {
    const whit_exec_step *step;
    whit_exec_items_fn *run;
    whit_exec_tiles_fn *run_tiles;
} traced[16 * STEPS_MAX];
static uint32_t n_traced;
static const whit_exec_step *ran[STEPS_MAX];
static uint32_t n_ran;

static volatile bool cancel; /* set when the cancel_at-th function of a step is called, from 1; 0: never */
static uint32_t n_calls, cancel_at;

static const struct traced *note(const whit_exec_step *step)
{
    uint32_t i = 0;
    if (++n_calls == cancel_at) cancel = true;
    while (i < n_ran && ran[i] != step) i++;
    assert_true(i < STEPS_MAX);
    if (i == n_ran) ran[n_ran++] = step;
    for (i = 0; traced[i].step != step; i++) assert_true(i < n_traced);
    return &traced[i];
}

static void trace_items(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, uint32_t begin,
                        uint32_t end)
{
    note(step)->run(step, exec, worker, begin, end);
}

static void trace_tiles(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                        uint32_t begin, uint32_t end)
{
    note(step)->run_tiles(step, exec, worker, rows, begin, end);
}

/* Binds the session again, to kernels that count and steps that are recorded. The caller frees `arena`. */
static void rebind(whit_session *s, void **arena)
{
    whit_error error;
    whit_arena count = {0};
    whit_pool *pool = s->exec.pool;
    const whit_tensor *tensors = s->model->weights.tensors;
    const whit_config *c = &s->model->config;
    real = s->kernels;
    s->kernels.rms_norm = count_norm;
    s->kernels.rope_half = count_rope;
    s->kernels.add = count_add;
    s->kernels.norm_acts = count_norm_acts;
    s->kernels.quantise = count_quantise;
    s->kernels.screen = count_screen;
    s->kernels.silu_mul = count_silu;
    s->kernels.relu2_mul = count_relu2;
    s->kernels.sigmoid_mul = count_sigmoid;
    s->kernels.product = count_product;
    s->kernels.swish1_mul = count_swish1;
    s->kernels.causal_conv = count_conv;
    s->kernels.delta_step = count_delta;
    s->kernels.gelu_mul = count_gelu;
    whit_exec_schedules_free(&s->plan, &s->schedules);
    assert_ok(whit_exec_choose(&s->plan, tensors, &s->kernels, &s->schedules, &error), error);
    for (uint32_t i = 0; i < s->schedules.n_choices; i++)
        for (uint32_t b = 0; b < WHIT_EXEC_BUCKETS; b++)
            s->schedules.choices[i].kernels[b] = s->schedules.choices[i].plane_kernels[b] = &stand_in;
    assert_ok(whit_exec_schedules_make(&s->plan, tensors, s->options.n_batch_tokens, s->options.n_logits, &s->schedules,
                                       &error),
              error);
    whit_exec_options options = {.n_batch_rows = s->options.n_batch_tokens,
                                 .n_selected_rows = s->options.n_logits,
                                 .n_threads = 1,
                                 .n_ctx_tokens = s->options.n_ctx_tokens};
    const whit_resolver resolver = whit_weights_resolver((whit_weights *)(uintptr_t)&s->model->weights);
    whit_exec_find_ropes(c, &resolver, tensors, &options);
    whit_exec_place(&s->exec, &s->plan, &s->schedules, tensors, &s->kernels, &s->kv, &options, &count);
    assert_non_null(*arena = aligned_alloc(64, count.used_bytes));
    memset(*arena, 0xFF, count.used_bytes);
    whit_arena place = {.memory = *arena};
    whit_exec_place(&s->exec, &s->plan, &s->schedules, tensors, &s->kernels, &s->kv, &options, &place);
    s->exec.pool = pool;
    n_traced = 0;
    for (uint32_t i = 0; i < s->schedules.n; i++)
        for (uint32_t g = 0; g < s->exec.bound[i].n_phases; g++)
            for (uint32_t k = 0; k < s->exec.bound[i].phases[g].n_steps; k++) {
                whit_exec_step *step = &s->exec.bound[i].phases[g].steps[k];
                assert_true(n_traced < sizeof traced / sizeof *traced);
                traced[n_traced++] = (struct traced){step, step->run, step->run_tiles};
                assert_true((step->run != NULL) != (step->run_tiles != NULL));
                if (step->run) step->run = trace_items;
                if (step->run_tiles) step->run_tiles = trace_tiles;
            }
}

/* ---- comparing ------------------------------------------------------------------------------- */

static const char *tensor_name(void *file, int32_t tensor)
{
    return whit_ndf_tensor_name(file, (uint32_t)tensor);
}

/* Adds to `expected` the kernel calls of which a printed operation consists. */
static void expect_calls(const whit_plan *plan, const whit_plan_step *step, uint32_t n, const whit_model *model,
                         struct counts *expected)
{
    if (step->op == WHIT_PLAN_LINEAR && model->weights.tensors[step->weight].part_bytes[WHIT_PART_PLANE]) {
        expected->added++; /* a correction is part of the product: the plane's, with activations of its own */
        expected->quantise += plan->values[step->input[0] - 1].acts.kind != WHIT_ACTS_F32;
    }
    if (step->rows == WHIT_ROWS_EXPERT) n *= plan->n_used;
    uint32_t width = plan->values[(step->output ? step->output : step->input[0] ? step->input[0] : 1) - 1].width;
    switch (step->op) {
    case WHIT_PLAN_NORM: expected->norms += n * (width / step->head_dim); break;
    case WHIT_PLAN_ACTS: expected->quantise++; break;
    case WHIT_PLAN_LINEAR: expected->products++; break;
    case WHIT_PLAN_LINEAR_GATED: expected->gated++; break;
    case WHIT_PLAN_LINEAR_ADDED: expected->added++; break;
    case WHIT_PLAN_SCREEN: expected->screens++; break;
    case WHIT_PLAN_EXPERT_BIAS:
    case WHIT_PLAN_BIAS:
    case WHIT_PLAN_ADD: expected->adds += n; break;
    case WHIT_PLAN_ROPE: expected->ropes += n; break;
    case WHIT_PLAN_ROPE_ATTEND: expected->ropes += n * whit_config_kind(&model->config, step->layer).n_kv_heads; break;
    case WHIT_PLAN_GATE: expected->gates += n; break;
    case WHIT_PLAN_CONV: expected->convs += n * ((width + 255) / 256); break; /* runs of 256 channels */
    case WHIT_PLAN_DELTA:
        expected->norms += 2 * n * step->n_heads; /* norms of queries and keys */
        expected->deltas += n * step->n_heads * step->value_dim;
        break;
    case WHIT_PLAN_NORM_ACTS:
    case WHIT_PLAN_ADD_NORM_ACTS:
    case WHIT_PLAN_GATE_NORM_ACTS: expected->norm_acts++; break;
    default: break;
    }
}

static uint32_t seen[WHIT_PLAN_OP_COUNT]; /* how often each operation ran */

/* Runs a pass over n_rows tokens, the last of which wants logits. Checks that it runs the printed operations and gives
 * the bits of an ordinary session. */
static void check_pass(const whit_model *model, whit_session_options options, uint32_t n_rows, uint32_t n_top,
                       const whit_mount *mount)
{
    whit_error error;
    whit_session *plain, *s;
    void *arena;
    whit_step_token tokens[ROWS_MAX];
    for (uint32_t i = 0; i < n_rows; i++)
        tokens[i] = (whit_step_token){.id = (int32_t)(i * 7 % 60), .want_logits = i + 1 == n_rows, .n_top = n_top};
    assert_ok(whit_session_open(model, &options, &plain, &error), error);
    assert_ok(whit_session_open(model, &options, &s, &error), error);
    rebind(s, &arena);
    if (mount) assert_ok(whit_session_mount(plain, 0, mount, 1, &error), error);
    if (mount) assert_ok(whit_session_mount(s, 0, mount, 1, &error), error);
    calls = (struct counts){0};
    n_ran = 0;
    assert_ok(whit_session_step(plain, tokens, n_rows, &error), error);
    assert_ok(whit_session_step(s, tokens, n_rows, &error), error);
    assert_memory_equal(whit_session_logits(s, 0), whit_session_logits(plain, 0),
                        whit_model_vocab_size(model) * sizeof(float));

    whit_buf printed = {0}, recorded = {0};
    struct counts expected = {0};
    const uint32_t n[WHIT_ROWS_COUNT] = {n_rows, 1};
    const int mode[WHIT_ROWS_COUNT] = {mount ? WHIT_EXEC_ADAPTED : WHIT_EXEC_PLAIN,
                                       n_top ? WHIT_EXEC_SCREENED : WHIT_EXEC_PLAIN};
    for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++) {
        uint32_t which = whit_exec_schedule_of(&s->schedules, (whit_row_set)rows, mode[rows], n[rows]);
        const whit_schedule *schedule = &s->schedules.list[which].schedule;
        whit_schedule_print(&s->plan, schedule, tensor_name, model->file, &printed);
        for (uint32_t i = 0; i < schedule->n_steps; i++)
            expect_calls(&s->plan, &schedule->steps[i], n[rows], model, &expected);
    }
    expected.products += 3 * (long)s->exec.pairs.n_read; /* three matrices per chosen expert */
    assert_true(s->exec.pairs.n_read <= (uint64_t)n_rows * s->plan.n_used * model->config.n_layers);
    for (uint32_t i = 0; i < n_ran; i++) {
        seen[ran[i]->plan->op]++;
        whit_plan_print_step(&s->plan, ran[i]->plan, tensor_name, model->file, &recorded);
    }
    whit_buf_append(&printed, "", 1);
    whit_buf_append(&recorded, "", 1);
    const char *line = (const char *)printed.data, *at = (const char *)recorded.data;
    for (size_t length; *line; line += length) {
        length = strcspn(line, "\n") + 1;
        if (line[6] != ' ') continue; /* the heading line of a group */
        if (strncmp(line, at, length) != 0) fail_msg("printed '%.*s', run '%.*s'", (int)length, line, (int)length, at);
        at += length;
    }
    assert_int_equal(*at, 0);
    assert_memory_equal(&calls, &expected, sizeof calls);
    whit_buf_free(&printed);
    whit_buf_free(&recorded);
    whit_session_close(plain);
    whit_session_close(s);
    free(arena);
}

static void what_is_printed_is_what_runs(void **state)
{
    (void)state;
    static const uint32_t rows[] = {1, 2, 9, 16, ROWS_MAX};
    whit_error error;
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    assert_ok(whit_kernels_select(&cpu, "generic", &generic, &error), error);
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_config config;
        whit_ndf_writer *writer;
        whit_model *model;
        whit_adapter *adapter;
        whit_buf image = {0};
        char path[64], adapter_path[] = "/tmp/whit-schedule-XXXXXX";
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
        whit_model_options model_options = whit_model_options_default();
        model_options.no_cache = true;
        assert_ok(whit_model_open(path, &model_options, &model, &error), error);
        int fd = mkstemp(adapter_path);
        assert_true(fd >= 0);
        close(fd);
        assert_true(adapter_sample_build(&(adapter_sample){.rank = 5, .size = 0.05f}, model->file, &image, &error));
        assert_ok(
            whit_ndf_write_loose(adapter_path, WHIT_NDF_ADAPTER, "sample", image.data, image.size_bytes, NULL, &error),
            error);
        assert_ok(whit_adapter_open(model, adapter_path, &adapter, &error), error);
        unlink(adapter_path);
        const whit_mount mount = {adapter, 1};
        for (uint32_t how = 0; how < 8; how++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                if (tests_are_brief() && rows[r] > 9 && (i + how) % 8 != r) continue;
                whit_session_options options = whit_session_options_default();
                options.n_ctx_tokens = options.n_batch_tokens = ROWS_MAX;
                options.n_threads = 1;
                options.no_fuse = how & 1;
                check_pass(model, options, rows[r], how & 2 ? 3 : 0, how & 4 ? &mount : NULL);
            }
        whit_adapter_close(adapter);
        whit_model_close(model);
        whit_ndf_writer_close(writer);
        whit_buf_free(&image);
    }
    /* Operations that these models lack, and the tests that run them. */
    static const struct {
        whit_plan_op op;
        const char *test;
    } elsewhere[] = {
        {WHIT_PLAN_SCALE, "golden_vectors"}, {WHIT_PLAN_LAYER_NORM, "golden_vectors"},
        {WHIT_PLAN_JOIN, "drafter"},         {WHIT_PLAN_ACTIVATE, "golden_vectors"},
        {WHIT_PLAN_GATHER, "split"},         {WHIT_PLAN_HADAMARD, "hadamard"},
    };
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) seen[elsewhere[i].op] = true;
    for (int op = 0; op < WHIT_PLAN_OP_COUNT; op++)
        if (!seen[op]) fail_msg("no pass ran %s", whit_plan_op_name((whit_plan_op)op));
}

/* ---- cancelled steps --------------------------------------------------------------------------- */

/* A step of three passes that is cancelled at any place must leave the state before it unchanged, also shared
 * blocks. */
static void cancelled_steps_leave_nothing(void **state)
{
    (void)state;
    enum { N_BEFORE = 70, N_STEP = 24, N_WANTED = 3 };
    whit_error error;
    whit_cpu cpu;
    whit_config config;
    whit_ndf_writer *writer;
    whit_model *model;
    char path[64];
    whit_cpu_detect(&cpu);
    assert_ok(whit_kernels_select(&cpu, "generic", &generic, &error), error);
    assert_ok(random_model_make(3, &writer, &config, &error), error);
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
    whit_model_options model_options = whit_model_options_default();
    model_options.no_cache = true;
    assert_ok(whit_model_open(path, &model_options, &model, &error), error);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 128;
    options.n_batch_tokens = 10;
    options.n_sequences = 2;
    options.n_threads = 1;
    options.n_logits = N_WANTED;
    options.cancel = &cancel;
    whit_step_token before[N_BEFORE], tokens[N_STEP];
    for (uint32_t i = 0; i < N_BEFORE; i++) before[i] = (whit_step_token){.id = (int32_t)(i * 11 % 90)};
    for (uint32_t i = 0; i < N_STEP; i++)
        tokens[i] = (whit_step_token){.sequence = i % 2, .id = (int32_t)(i * 7 % 90), .want_logits = i % 9 == 5};
    static float expected[N_WANTED][N_VOCAB_MAX];
    uint32_t n_all = 0;
    /* the first run is not cancelled and counts the functions */
    for (uint32_t at = 0; at <= n_all; at += at < 8 ? 1 : 7) {
        whit_session *s;
        void *arena;
        assert_ok(whit_session_open(model, &options, &s, &error), error);
        rebind(s, &arena);
        cancel_at = 0;
        assert_ok(whit_session_step(s, before, N_BEFORE, &error), error);
        assert_ok(whit_session_share(s, 0, 1, N_BEFORE - 3, &error), error);
        n_calls = 0;
        n_ran = 0;
        if (at) {
            cancel_at = at;
            assert_int_equal(whit_session_step(s, tokens, N_STEP, &error), WHIT_ERROR_CANCELLED);
            assert_null(whit_session_logits(s, 0));
            assert_int_equal(whit_session_position(s, 0), N_BEFORE);
            assert_int_equal(whit_session_position(s, 1), N_BEFORE - 3);
            cancel_at = 0;
            cancel = false;
        }
        assert_ok(whit_session_step(s, tokens, N_STEP, &error), error);
        for (uint32_t k = 0; k < N_WANTED; k++) {
            if (!at) memcpy(expected[k], whit_session_logits(s, k), config.n_vocab * sizeof(float));
            assert_memory_equal(whit_session_logits(s, k), expected[k], config.n_vocab * sizeof(float));
        }
        if (!at) n_all = n_calls - 2; /* after the last group nothing can be left out */
        whit_session_close(s);
        free(arena);
    }
    assert_true(n_all > 60);
    whit_model_close(model);
    whit_ndf_writer_close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_what_runs),
        cmocka_unit_test(cancelled_steps_leave_nothing),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
