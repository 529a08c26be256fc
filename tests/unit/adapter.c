/* SPDX-License-Identifier: MIT
 * Tests adapters at run time: their arithmetic against a dense W + strength B A, several adapters at once, adapters
 * changed between requests, neighbours in the batch, equal bits, and refusals. */
#include "adapter_run.h"
#include "adapter_sample.h"
#include "failing_memory.h"
#include "format/ndf_append.h"
#include "format/ndf_verify.h"

static void make_adapter(const whit_model *model, const char *name, const adapter_sample *sample)
{
    whit_error error;
    whit_buf image = {0};
    if (!adapter_sample_build(sample, model->file, &image, &error)) fail_msg("%s", error.message);
    assert_ok(whit_ndf_write_loose(in_folder(name), WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error),
              error);
    whit_buf_free(&image);
}

static bool same_bits(const float *a, const float *b)
{
    return memcmp(a, b, (size_t)N_TOKENS * TINY_N_VOCAB * sizeof *a) == 0;
}

/* ---- the maths ------------------------------------------------------------------------------ */

/* Returns the values of a factor, row-major; the caller frees them. */
static double *factor_values(const whit_tensor *tensor)
{
    uint32_t n = tensor->type.n_cols;
    double *values = malloc((size_t)tensor->type.n_rows * n * sizeof *values);
    int8_t *codes = malloc(n);
    for (uint32_t row = 0; row < tensor->type.n_rows; row++) {
        float scale;
        whit_codec_unpack(tensor, row, 1, &(whit_rows){.elems = codes, .fields = &scale});
        for (uint32_t k = 0; k < n; k++) values[(size_t)row * n + k] = (double)codes[k] * (double)scale;
    }
    free(codes);
    return values;
}

/* Writes the model with the adapters added to its dense weights. */
static void bake(const whit_model *model, const whit_mount *mounts, size_t n_mounts, const char *to)
{
    whit_error error;
    whit_buf file = {0};
    dense_open(model, &file);
    for (size_t m = 0; m < n_mounts; m++)
        for (uint32_t i = 0; i < mounts[m].adapter->weights.n_pairs; i++) {
            const whit_adapter_pair *pair = &mounts[m].adapter->weights.pairs[i];
            double *a = factor_values(&pair->a), *b = factor_values(&pair->b);
            dense_add(model, &file, pair->name, (double)mounts[m].scale, pair->a.type.n_rows, a, b);
            free(a), free(b);
        }
    assert_ok(whit_write_file(in_folder(to), file.data, file.size_bytes, &error), error);
    whit_buf_free(&file);
}

static void equals_dense_weights(void **state)
{
    (void)state;
    whit_model *model = open_model("a.ndf");
    whit_adapter *first = open_adapter(model, "first.ndf"), *second = open_adapter(model, "second.ndf");
    const whit_mount mounts[] = {{first, 0.75f}, {second, -0.5f}};
    float *plain = run(model, options_of(WHIT_ACT_F32), NULL, 0, N_TOKENS);
    for (size_t n = 1; n <= 2; n++) { /* two adapters at once must equal their sum */
        bake(model, mounts, n, "dense.ndf");
        whit_model *dense = open_model("dense.ndf");
        float *expected = run(dense, options_of(WHIT_ACT_F32), NULL, 0, N_TOKENS);
        float *found = run(model, options_of(WHIT_ACT_F32), mounts, n, N_TOKENS);
        assert_near(found, expected, 2e-5);
        assert_far(found, plain);
        free(expected);
        free(found);
        whit_model_close(dense);
    }
    free(plain);
    whit_adapter_close(first);
    whit_adapter_close(second);
    whit_model_close(model);
}

/* ---- bits ----------------------------------------------------------------------------------- */

static void nothing_mounted_is_nothing_changed(void **state)
{
    (void)state;
    whit_error error;
    whit_model *model = open_model("a.ndf");
    whit_adapter *adapter = open_adapter(model, "first.ndf");
    whit_session_options options = options_of(WHIT_ACT_I8);
    float *plain = run(model, options, NULL, 0, N_TOKENS);
    float *zero = run(model, options, &(whit_mount){adapter, 0}, 1, N_TOKENS);
    assert_true(same_bits(zero, plain));
    float *mounted = run(model, options, &(whit_mount){adapter, 1}, 1, N_TOKENS);
    assert_false(same_bits(mounted, plain));

    /* switch adapters between requests of one session, back and forth */
    whit_session *session;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    float *logits = malloc((size_t)N_TOKENS * TINY_N_VOCAB * sizeof *logits);
    for (int round = 0; round < 4; round++) {
        assert_ok(whit_session_mount(session, 0, &(whit_mount){adapter, 1}, round % 2, &error), error);
        feed(session, 0, 0, 9, logits);
        assert_true(same_bits(logits, round % 2 ? mounted : plain));
    }
    whit_session_close(session);
    free(plain), free(zero), free(mounted), free(logits);
    whit_adapter_close(adapter);
    whit_model_close(model);
}

static void one_set_of_bits(void **state)
{
    (void)state;
    static const char *const levels[] = {"generic", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm"};
    whit_model *model = open_model("a.ndf");
    whit_adapter *first = open_adapter(model, "first.ndf"), *second = open_adapter(model, "second.ndf");
    const whit_mount mounts[] = {{first, 0.75f}, {second, -0.5f}};
    for (int act = 0; act < 2; act++) {
        whit_session_options options = options_of((whit_act_type)act);
        options.cpu = "generic";
        float *expected = run(model, options, mounts, 2, N_TOKENS);
        for (size_t l = 0; l < sizeof levels / sizeof *levels; l++)
            for (uint32_t split = 1; split <= N_TOKENS; split += 23) {
                options.cpu = levels[l];
                options.n_threads = 1 + split % 3;
                options.no_fuse = split % 2;
                float *found = run(model, options, mounts, 2, split);
                assert_true(same_bits(found, expected));
                free(found);
            }
        free(expected);
    }
    whit_adapter_close(first);
    whit_adapter_close(second);
    whit_model_close(model);
}

static void sequences_keep_their_own(void **state)
{
    (void)state;
    enum { N = 4 };
    whit_error error;
    whit_model *model = open_model("a.ndf");
    whit_adapter *first = open_adapter(model, "first.ndf"), *second = open_adapter(model, "second.ndf");
    const whit_mount both[] = {{first, 1}, {second, 0.5f}};
    const struct {
        const whit_mount *mounts;
        size_t n;
    } of[N] = {{NULL, 0}, {both, 1}, {both, 2}, {both, 1}};
    whit_session_options options = options_of(WHIT_ACT_I8);
    options.n_sequences = N;
    options.n_threads = 2;
    float *alone[N], *together[N];
    whit_session *session;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    for (uint32_t q = 0; q < N; q++) {
        alone[q] = malloc((size_t)N_TOKENS * TINY_N_VOCAB * sizeof(float));
        together[q] = malloc((size_t)N_TOKENS * TINY_N_VOCAB * sizeof(float));
        assert_ok(whit_session_mount(session, q, of[q].mounts, of[q].n, &error), error);
        feed(session, q, q, N_TOKENS, alone[q]);
        assert_ok(whit_session_truncate(session, q, 0, &error), error);
    }
    /* all sequences at once, at different positions, several tokens of each per step */
    uint32_t at[N] = {0};
    for (uint32_t round = 0; at[0] < N_TOKENS || at[1] < N_TOKENS || at[2] < N_TOKENS || at[3] < N_TOKENS; round++) {
        whit_step_token tokens[3 * N];
        uint32_t n = 0;
        for (uint32_t q = N; q-- > 0;)
            for (uint32_t k = 0; k <= (round + q) % 3; k++)
                if (at[q] < N_TOKENS)
                    tokens[n++] = (whit_step_token){.sequence = q, .id = token_at(q, at[q]++), .want_logits = true};
        uint32_t from[N];
        for (uint32_t q = 0; q < N; q++) from[q] = at[q];
        for (uint32_t k = 0; k < n; k++) from[tokens[k].sequence]--;
        assert_ok(whit_session_step(session, tokens, n, &error), error);
        for (uint32_t k = 0; k < n; k++)
            memcpy(together[tokens[k].sequence] + (size_t)from[tokens[k].sequence]++ * TINY_N_VOCAB,
                   whit_session_logits(session, k), TINY_N_VOCAB * sizeof(float));
    }
    for (uint32_t q = 0; q < N; q++) {
        assert_true(same_bits(together[q], alone[q]));
        free(alone[q]), free(together[q]);
    }
    whit_session_close(session);
    whit_adapter_close(first);
    whit_adapter_close(second);
    whit_model_close(model);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void steps_take_no_memory(void **state)
{
    (void)state;
    whit_error error;
    struct failing memory = {.n_left = -1};
    whit_allocator allocator = {failing_alloc, failing_free, &memory};
    whit_model_options model_options = {.struct_bytes = sizeof model_options, .allocator = &allocator};
    whit_model *model;
    assert_ok(whit_model_open(in_folder("a.ndf"), &model_options, &model, &error), error);
    whit_adapter *adapter = open_adapter(model, "first.ndf");
    whit_session_options options = options_of(WHIT_ACT_I8);
    whit_session *session;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_session_mount(session, 0, &(whit_mount){adapter, 1}, 1, &error), error);
    float *logits = malloc((size_t)N_TOKENS * TINY_N_VOCAB * sizeof *logits);
    long before = memory.n_left;
    feed(session, 0, 0, 7, logits);
    assert_ok(whit_session_mount(session, 0, NULL, 0, &error), error);
    assert_ok(whit_session_mount(session, 0, &(whit_mount){adapter, 0.5f}, 1, &error), error);
    assert_int_equal(memory.n_left, before);
    whit_session_close(session);
    whit_adapter_close(adapter);
    whit_model_close(model);
    assert_int_equal(memory.n_live, 0);
    free(logits);

    /* each allocation fails once: the result must be an error without a leak */
    for (long n = 0;; n++) {
        memory = (struct failing){.n_left = n};
        model = NULL, adapter = NULL, session = NULL;
        whit_status status = whit_model_open(in_folder("a.ndf"), &model_options, &model, &error);
        if (status == WHIT_OK) status = whit_adapter_open(model, in_folder("first.ndf"), &adapter, &error);
        if (status == WHIT_OK) status = whit_session_open(model, &options, &session, &error);
        if (status == WHIT_OK) status = whit_session_mount(session, 0, &(whit_mount){adapter, 1}, 1, &error);
        whit_session_close(session);
        whit_adapter_close(adapter);
        whit_model_close(model);
        assert_int_equal(memory.n_live, 0);
        if (status == WHIT_OK) break;
        assert_int_equal(status, WHIT_ERROR_MEMORY);
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

static void refused(const whit_model *model, const char *name, whit_status wanted, const char *words)
{
    whit_error error = {0};
    whit_adapter *adapter;
    assert_int_equal(whit_adapter_open(model, name, &adapter, &error), wanted);
    assert_null(adapter);
    if (!strstr(error.message, words)) fail_msg("'%s' lacks '%s'", error.message, words);
}

static void lies_in_the_models_file(void **state)
{
    (void)state;
    whit_error error;
    make_model("own.ndf", 1);
    whit_model *model = open_model("own.ndf");
    whit_buf images[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        adapter_sample sample = {.seed = 20 + (uint64_t)i, .rank = 4 + (uint32_t)i * 8, .size = 0.1f};
        assert_true(adapter_sample_build(&sample, model->file, &images[i], &error));
        assert_ok(whit_ndf_append(in_folder("own.ndf"), WHIT_NDF_ADAPTER, "verse", images[i].data, images[i].size_bytes,
                                  NULL, &error),
                  error);
    }
    whit_model_close(model);
    model = open_model("own.ndf");
    whit_adapter *adapter;
    assert_ok(whit_adapter_open(model, "verse", &adapter, &error), error);
    assert_true(whit_adapter_rank(adapter) >= 12); /* the last adapter of that name */
    whit_adapter_close(adapter);
    refused(model, "prose", WHIT_ERROR_IO, "no adapter of that name");
    whit_buf_free(&images[0]), whit_buf_free(&images[1]);
    whit_model_close(model);
}

/* A pass applies pairs only to matrices that every token uses. */
static void pairs_change_no_experts(void **state)
{
    (void)state;
    const whit_tensor_type matrix = {.layout = WHIT_LAYOUT_TILE16, .n_rows = 64, .n_cols = 64};
    assert_true(whit_adapter_may_change("layers.0.gate", &matrix));
    assert_false(whit_adapter_may_change("layers.0.expert_gate", &matrix));
    assert_false(whit_adapter_may_change("head", &matrix));
}

static void belongs_to_its_model(void **state)
{
    (void)state;
    whit_error error;
    whit_model *other = open_model("b.ndf"), *same = open_model("a.ndf"), *again = open_model("a.ndf");
    refused(other, in_folder("first.ndf"), WHIT_ERROR_ARGUMENT, "made for the model");
    refused(other, in_folder("a.ndf"), WHIT_ERROR_FORMAT, "not an adapter");
    whit_model *model;
    assert_int_equal(whit_model_open(in_folder("first.ndf"), NULL, &model, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "an adapter without a model"));

    whit_adapter *adapter = open_adapter(same, "first.ndf");
    whit_session_options options = options_of(WHIT_ACT_I8);
    whit_session *session;
    assert_ok(whit_session_open(again, &options, &session, &error), error);
    assert_int_equal(whit_session_mount(session, 0, &(whit_mount){adapter, 1}, 1, &error), WHIT_ERROR_ARGUMENT);
    whit_session_close(session);
    assert_ok(whit_session_open(same, &options, &session, &error), error);
    assert_int_equal(whit_session_mount(session, 1, &(whit_mount){adapter, 1}, 1, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_session_mount(session, 0, &(whit_mount){adapter, NAN}, 1, &error), WHIT_ERROR_ARGUMENT);
    whit_mount many[WHIT_MOUNTS_MAX + 1];
    for (int i = 0; i <= WHIT_MOUNTS_MAX; i++) many[i] = (whit_mount){adapter, 0.1f};
    assert_int_equal(whit_session_mount(session, 0, many, WHIT_MOUNTS_MAX + 1, &error), WHIT_ERROR_LIMIT);
    assert_ok(whit_session_mount(session, 0, many, WHIT_MOUNTS_MAX, &error), error);
    whit_session_close(session);
    whit_adapter_close(adapter);
    whit_model_close(other), whit_model_close(same), whit_model_close(again);
}

static void damage_is_told(void **state)
{
    (void)state;
    whit_error error;
    whit_buf file = {0}, part = {0};
    whit_model *model = open_model("a.ndf");
    assert_ok(whit_read_file(in_folder("first.ndf"), 1 << 24, &file, &error), error);
    for (size_t n = 1; n < file.size_bytes; n += 1 + file.size_bytes / 97) { /* files that are cut short */
        assert_ok(whit_write_file(in_folder("cut.ndf"), file.data, n, &error), error);
        refused(model, in_folder("cut.ndf"), WHIT_ERROR_FORMAT, "cut.ndf");
    }
    assert_true(whit_buf_append(&part, file.data, file.size_bytes));
    part.data[part.size_bytes / 2] ^= 1; /* a code, whose change only verification detects */
    assert_ok(whit_write_file(in_folder("flipped.ndf"), part.data, part.size_bytes, &error), error);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open_loose(in_folder("flipped.ndf"), NULL, &ndf, &error), error);
    assert_int_equal(whit_ndf_verify(ndf, 1, NULL, NULL, NULL, &error), WHIT_ERROR_FORMAT);
    whit_ndf_close(ndf);
    assert_ok(whit_ndf_open_loose(in_folder("first.ndf"), NULL, &ndf, &error), error);
    assert_ok(whit_ndf_verify(ndf, 2, NULL, NULL, NULL, &error), error);
    whit_ndf_close(ndf);
    whit_buf_free(&file), whit_buf_free(&part);
    whit_model_close(model);
}

/* Replaces each word of a valid image by numbers that are often critical for readers. */
static void hostile_images_are_refused(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0, 1, 63, 64, 0x7FFFFFFF, 0xFFFFFFFF, 0x1000000000000000, 0xFFFFFFFFFFFFFFC0};
    whit_error error;
    whit_buf image = {0};
    whit_model *model = open_model("a.ndf");
    adapter_sample sample = {.seed = 9, .rank = 3, .size = 0.1f};
    assert_true(adapter_sample_build(&sample, model->file, &image, &error));
    uint8_t *copy = whit_alloc(NULL, image.size_bytes);
    uint32_t n_refused = 0;
    for (size_t at = WHIT_HASH_BYTES; at < 64 + 3 * 64 && at < image.size_bytes; at += 4)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            memcpy(copy, image.data, image.size_bytes);
            memcpy(copy + at, &numbers[i], at % 8 ? 4 : 8);
            whit_adapter_view view;
            if (whit_adapter_check(copy, image.size_bytes, "here", &view, &error) != WHIT_OK) {
                assert_non_null(strstr(error.message, "here"));
                n_refused++;
                continue;
            }
            whit_adapter_weights weights;
            if (whit_adapter_bind(&view, model->file, "here", NULL, &weights, &error) == WHIT_OK)
                whit_adapter_unbind(&weights);
        }
    assert_true(n_refused > 100);
    whit_free(NULL, copy, image.size_bytes);
    whit_buf_free(&image);
    whit_model_close(model);
}

static int make_files(void **state)
{
    if (make_folder(state)) return -1;
    make_model("a.ndf", 1);
    make_model("b.ndf", 2);
    whit_model *model = open_model("a.ndf");
    make_adapter(model, "first.ndf", &(adapter_sample){.seed = 7, .rank = 5, .size = 0.2f});
    make_adapter(model, "second.ndf", &(adapter_sample){.seed = 8, .rank = 18, .every_second = true, .size = 0.1f});
    whit_model_close(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_dense_weights),    cmocka_unit_test(nothing_mounted_is_nothing_changed),
        cmocka_unit_test(one_set_of_bits),         cmocka_unit_test(sequences_keep_their_own),
        cmocka_unit_test(steps_take_no_memory),    cmocka_unit_test(lies_in_the_models_file),
        cmocka_unit_test(pairs_change_no_experts), cmocka_unit_test(belongs_to_its_model),
        cmocka_unit_test(damage_is_told),          cmocka_unit_test(hostile_images_are_refused),
    };
    return cmocka_run_group_tests_name("adapter", tests, make_files, remove_folder);
}
