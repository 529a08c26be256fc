/* SPDX-License-Identifier: MIT
 * Tests that a model with merged adapters computes the same as one with mounted adapters. */
#include "adapter_run.h"
#include "adapter_sample.h"
#include "base/file.h"
#include "format/ndf_append.h"
#include "model/merge.h"

struct heard {
    uint32_t n;
    double largest;
};

static void on_matrix(void *user, const whit_merge_report *report)
{
    struct heard *heard = user;
    heard->n++;
    heard->largest = fmax(heard->largest, report->error);
}

static whit_status merge(const whit_model *model, const whit_merge_adapter *adapters, size_t n, const char *codec,
                         const char *to, struct heard *heard, whit_error *error)
{
    whit_ndf_writer *writer;
    whit_merge_options options = {.codec = codec, .n_threads = 2, .report = on_matrix, .user = heard};
    *heard = (struct heard){0};
    assert_ok(whit_ndf_writer_open(in_folder(to), NULL, NULL, &writer, error), *error);
    whit_status status = whit_merge(&model->weights, whit_ndf_path(model->file), adapters, n, &options, writer, error);
    whit_ndf_writer_close(writer);
    return status;
}

static void equals_mounting(void **state)
{
    (void)state;
    whit_error error;
    struct heard heard;
    whit_model *model = open_model("a.ndf");
    whit_adapter *first = open_adapter(model, "first.ndf"), *second = open_adapter(model, "second.ndf");
    const whit_mount mounts[] = {{first, 0.75f}, {second, -0.5f}};
    const whit_merge_adapter adapters[] = {{&first->weights, 0.75f}, {&second->weights, -0.5f}};
    float *expected = run(model, options_of(WHIT_ACT_F32), mounts, 2, N_TOKENS);
    static const struct {
        const char *codec;
        double loss, tolerance;
    } cases[] = {{NULL, 1e-7, 2e-5}, {"f16", 5e-4, 5e-3}, {"i8", 2e-2, 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(merge(model, adapters, 2, cases[i].codec, "merged.ndf", &heard, &error), error);
        assert_int_equal(heard.n, 14);
        assert_true(heard.largest < cases[i].loss);
        whit_model *merged = open_model("merged.ndf");
        assert_true(memcmp(whit_model_identity(merged), whit_model_identity(model), 32) != 0);
        float *found = run(merged, options_of(WHIT_ACT_F32), NULL, 0, N_TOKENS);
        assert_near(found, expected, cases[i].tolerance);
        free(found);
        /* The adapter belongs to the model before the merge. */
        whit_adapter *adapter;
        assert_int_equal(whit_adapter_open(merged, in_folder("first.ndf"), &adapter, &error), WHIT_ERROR_ARGUMENT);
        whit_model_close(merged);
    }
    /* With scale 0 nothing is added: the model must stay the same. */
    assert_ok(merge(model, &(whit_merge_adapter){&first->weights, 0}, 1, NULL, "merged.ndf", &heard, &error), error);
    assert_int_equal(heard.n, 0);
    whit_model *same = open_model("merged.ndf");
    assert_memory_equal(whit_model_identity(same), whit_model_identity(model), 32);
    whit_model_close(same);
    free(expected);
    whit_adapter_close(first);
    whit_adapter_close(second);
    whit_model_close(model);
}

/* A merge into i4 matrices without a codec must be refused, as for every codec that cannot store the sums. */
static void low_bits_are_refused(void **state)
{
    (void)state;
    whit_error error;
    struct heard heard;
    whit_model *model = open_model("a.ndf");
    whit_adapter *first = open_adapter(model, "first.ndf");
    assert_ok(merge(model, &(whit_merge_adapter){&first->weights, 1}, 1, "i4", "low.ndf", &heard, &error), error);
    whit_adapter_close(first);
    whit_model_close(model);
    model = open_model("low.ndf");
    whit_buf image = {0};
    adapter_sample sample = {.seed = 3, .rank = 4, .size = 0.1f};
    assert_true(adapter_sample_build(&sample, model->file, &image, &error));
    assert_ok(whit_ndf_write_loose(in_folder("low-adapter.ndf"), WHIT_NDF_ADAPTER, "x", image.data, image.size_bytes,
                                   NULL, &error),
              error);
    whit_buf_free(&image);
    first = open_adapter(model, "low-adapter.ndf");
    whit_merge_adapter adapter = {&first->weights, 1};
    assert_int_equal(merge(model, &adapter, 1, NULL, "no.ndf", &heard, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(
        error.message, "i4, which cannot store the sum; choose a codec for the changed matrices (--codec i8, say)"));
    assert_int_equal(access(in_folder("no.ndf"), F_OK), -1);
    assert_int_equal(merge(model, &adapter, 1, "t5", "no.ndf", &heard, &error), WHIT_ERROR_ARGUMENT);
    float *expected = run(model, options_of(WHIT_ACT_F32), &(whit_mount){first, 1}, 1, N_TOKENS);
    assert_ok(merge(model, &adapter, 1, "f32", "wide.ndf", &heard, &error), error);
    whit_model *wide = open_model("wide.ndf");
    float *found = run(wide, options_of(WHIT_ACT_F32), NULL, 0, N_TOKENS);
    assert_near(found, expected, 2e-5);
    free(found), free(expected);
    whit_adapter_close(first);
    whit_model_close(wide);
    whit_model_close(model);
}

/* f16 numbers, of weights or of scales, are at most 65,504. */
static void too_large_sums_are_refused(void **state)
{
    static const char *const codecs[] = {"f16", "i4"};
    (void)state;
    whit_error error;
    struct heard heard;
    whit_model *model = open_model("a.ndf");
    whit_adapter *first = open_adapter(model, "first.ndf");
    const whit_merge_adapter strong = {&first->weights, 1e7f};
    for (size_t i = 0; i < 2; i++) {
        whit_buf kept = {0};
        assert_ok(whit_write_file(in_folder("kept.ndf"), "before", 6, &error), error);
        assert_int_equal(merge(model, &strong, 1, codecs[i], "kept.ndf", &heard, &error), WHIT_ERROR_NUMERIC);
        assert_non_null(strstr(error.message, "too large for "));
        assert_non_null(strstr(error.message, codecs[i]));
        assert_ok(whit_read_file(in_folder("kept.ndf"), 100, &kept, &error), error);
        assert_int_equal(kept.size_bytes, 6);
        assert_memory_equal(kept.data, "before", 6);
        whit_buf_free(&kept);
    }
    assert_ok(merge(model, &strong, 1, NULL, "strong.ndf", &heard, &error), error);
    whit_adapter_close(first);
    whit_model_close(model);
}

static int make_files(void **state)
{
    whit_error error;
    if (make_folder(state)) return -1;
    make_model("a.ndf", 1);
    whit_model *model = open_model("a.ndf");
    const adapter_sample samples[] = {{.seed = 7, .rank = 5, .size = 0.2f},
                                      {.seed = 8, .rank = 18, .every_second = true, .size = 0.1f}};
    for (int i = 0; i < 2; i++) {
        whit_buf image = {0};
        const char *name = i ? "second.ndf" : "first.ndf";
        if (!adapter_sample_build(&samples[i], model->file, &image, &error) ||
            whit_ndf_write_loose(in_folder(name), WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error) !=
                WHIT_OK)
            return -1;
        whit_buf_free(&image);
    }
    whit_model_close(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_mounting),
        cmocka_unit_test(low_bits_are_refused),
        cmocka_unit_test(too_large_sums_are_refused),
    };
    return cmocka_run_group_tests_name("merge", tests, make_files, remove_folder);
}
