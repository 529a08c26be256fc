/* SPDX-License-Identifier: MIT
 * Tests models whose ternary matrices are two bit planes: the weights are the same, and --act q2 gives the same
 * logits on every level, for all threads and batches. Conversions to another codec use the file's weights, whatever
 * their codec in memory. */
#include "model/convert.h"
#include "random_model.h"
#include "runtime/model.h"
#include "test.h"

static whit_model *open_fd(int fd)
{
    char path[64];
    whit_error error;
    whit_model *model;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_ok(whit_model_open(path, NULL, &model, &error), error);
    return model;
}

/* Returns the logits of N tokens, one row of n_vocab each; NULL if the CPU lacks the level. The caller frees them. */
static float *logits_of(const whit_model *model, whit_act_type act, const char *cpu, uint32_t n_threads, uint32_t batch)
{
    enum { N = 9 };
    uint32_t n_vocab = whit_model_vocab_size(model);
    whit_session_options options = whit_session_options_default();
    whit_session *session;
    whit_error error;
    options.n_ctx_tokens = 32;
    options.n_batch_tokens = batch;
    options.n_logits = N;
    options.n_threads = n_threads;
    options.act = act;
    options.cpu = cpu;
    if (whit_session_open(model, &options, &session, &error) != WHIT_OK) return NULL; /* this CPU lacks the level */
    whit_step_token tokens[N];
    for (int i = 0; i < N; i++) tokens[i] = (whit_step_token){.id = (i * 31 + 7) % (int)n_vocab, .want_logits = true};
    float *all = malloc(N * n_vocab * sizeof *all);
    assert_non_null(all);
    assert_ok(whit_session_step(session, tokens, N, &error), error);
    for (int i = 0; i < N; i++) memcpy(all + i * n_vocab, whit_session_logits(session, i), n_vocab * sizeof *all);
    whit_session_close(session);
    return all;
}

static bool has_bits(const whit_model *model)
{
    for (uint32_t i = 0; i < model->weights.n_tensors; i++)
        if (model->weights.tensors[i].type.codec == WHIT_CODEC_B1 ||
            model->weights.tensors[i].type.codec == WHIT_CODEC_Q2)
            return true;
    return false;
}

static void check_levels(const whit_model *model)
{
    static const char *const levels[] = {"avx2", "avx512", "amx", "neon", "dotprod", "i8mm", NULL};
    size_t n = 9 * (size_t)whit_model_vocab_size(model) * sizeof(float);
    float *generic = logits_of(model, WHIT_ACT_Q2, "generic", 1, 32),
          *i8 = logits_of(model, WHIT_ACT_I8, "generic", 1, 32);
    assert_non_null(generic);
    /* q2 gives other logits only where a matrix has bit planes */
    assert_true((memcmp(generic, i8, n) != 0) == has_bits(model));
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
        for (uint32_t batch = 1; batch <= 32; batch = batch * 5 + 2) {
            float *other = logits_of(model, WHIT_ACT_Q2, levels[k], 1 + batch % 2, batch);
            if (other) assert_memory_equal(generic, other, n);
            free(other);
        }
    free(generic);
    free(i8);
}

static void bits_are_the_same_on_every_level(void **state)
{
    uint32_t n_with_bits = 0;
    (void)state;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_ndf_writer *writer;
        whit_config config;
        whit_error error;
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        whit_model *model = open_fd(whit_ndf_writer_fd(writer));
        n_with_bits += has_bits(model);
        check_levels(model);
        whit_model_close(model);
        whit_ndf_writer_close(writer);
    }
    assert_true(n_with_bits >= 3);
}

/* Compares the values of every tensor row by row. Returns how many tensors of b are stored as bit planes. */
static uint32_t compare_weights(const whit_model *a, const whit_model *b)
{
    uint32_t n_planes = 0;
    for (uint32_t i = 0; i < a->weights.n_tensors; i++) {
        int64_t j = whit_ndf_find(b->file, whit_ndf_tensor_name(a->file, i));
        assert_true(j >= 0);
        const whit_tensor *x = &a->weights.tensors[i], *y = &b->weights.tensors[j];
        if (x->type.codec != y->type.codec) {
            assert_true(x->type.codec == WHIT_CODEC_T2 || x->type.codec == WHIT_CODEC_T5);
            assert_int_equal(y->type.codec, WHIT_CODEC_Q2);
            n_planes++;
        } else /* codes of 2 and offsets keep their codec */
            assert_true(x->type.codec != WHIT_CODEC_T5 || x->type.has_offset);
        if (y->type.layout != WHIT_LAYOUT_TILE16) continue;
        float *p = malloc(2 * x->type.n_cols * sizeof *p), *q = p + x->type.n_cols;
        for (int32_t row = 0; row < (int32_t)x->type.n_rows; row++) {
            whit_codec_get_rows(x, &row, 1, p, x->type.n_cols);
            whit_codec_get_rows(y, &row, 1, q, x->type.n_cols);
            for (uint32_t k = 0; k < x->type.n_cols; k++) assert_true(p[k] == q[k]); /* 0 and -0 are equal */
        }
        free(p);
    }
    return n_planes;
}

static void ternary_planes_hold_the_same_weights(void **state)
{
    uint32_t n_planes = 0, n_corrected = 0;
    (void)state;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_ndf_writer *writer, *converted;
        whit_error error;
        whit_source source;
        char path[64];
        whit_status status = random_model_open_source(i, &writer, path, &source, &error);
        if (status == WHIT_ERROR_UNSUPPORTED) {
            assert_non_null(strstr(error.message, "has corrections"));
            n_corrected++;
            continue;
        }
        assert_ok(status, error);
        assert_ok(whit_ndf_writer_open(NULL, NULL, NULL, &converted, &error), error);
        const whit_convert_options options = {.ternary = "q2", .n_threads = 1};
        assert_ok(whit_convert(&source, &options, converted, &error), error);
        whit_source_close(&source);
        whit_model *a = open_fd(whit_ndf_writer_fd(writer)), *b = open_fd(whit_ndf_writer_fd(converted));
        uint32_t n = compare_weights(a, b);
        if (n) check_levels(b);
        n_planes += n;
        whit_model_close(a);
        whit_model_close(b);
        whit_ndf_writer_close(converted);
        whit_ndf_writer_close(writer);
    }
    assert_true(n_planes >= 10);
    assert_int_equal(n_corrected, 3);
}

/* A tensor that b stores as f32 must have a's values, bit by bit. */
static void compare_floats(const whit_model *a, const whit_model *b, const char *name)
{
    int64_t i = whit_ndf_find(a->file, name), j = whit_ndf_find(b->file, name);
    if (i < 0) return; /* the model has no separate head */
    const whit_tensor *x = &a->weights.tensors[i], *y = &b->weights.tensors[j];
    uint32_t n = x->type.n_cols;
    float *p = malloc(2 * n * sizeof *p), *q = p + n;
    assert_non_null(p);
    assert_int_equal(y->type.codec, WHIT_CODEC_F32);
    for (int32_t row = 0; row < (int32_t)x->type.n_rows; row++) {
        whit_codec_get_rows(x, &row, 1, p, n);
        whit_codec_get_rows(y, &row, 1, q, n);
        if (memcmp(p, q, n * sizeof *p) != 0)
            fail_msg("%s of %s with scales %u: row %d differs as f32", name, whit_codec_find(x->type.codec)->name,
                     x->type.scale_type, row);
    }
    free(p);
}

static void floats_of_any_codec_are_its_values(void **state)
{
    enum { N_DRAWN = 40 };
    uint32_t n_converted = 0;
    (void)state;
    for (uint32_t i = 0; i < random_model_count() + N_DRAWN; i++) {
        whit_ndf_writer *writer, *converted;
        whit_error error;
        whit_source source;
        char path[64];
        whit_status status = random_model_open_source(i, &writer, path, &source, &error);
        if (status == WHIT_ERROR_UNSUPPORTED) continue;
        assert_ok(status, error);
        assert_ok(whit_ndf_writer_open(NULL, NULL, NULL, &converted, &error), error);
        const whit_convert_options options = {.embd = "f32", .head = "f32", .n_threads = 1};
        assert_ok(whit_convert(&source, &options, converted, &error), error);
        whit_source_close(&source);
        whit_model *a = open_fd(whit_ndf_writer_fd(writer)), *b = open_fd(whit_ndf_writer_fd(converted));
        compare_floats(a, b, "embed");
        compare_floats(a, b, "head");
        n_converted++;
        whit_model_close(a);
        whit_model_close(b);
        whit_ndf_writer_close(converted);
        whit_ndf_writer_close(writer);
    }
    assert_true(n_converted >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats_of_any_codec_are_its_values),
                                       cmocka_unit_test(bits_are_the_same_on_every_level),
                                       cmocka_unit_test(ternary_planes_hold_the_same_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
