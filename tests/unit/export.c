/* SPDX-License-Identifier: MIT
 * What is exported as GGUF is the model when it comes back, every weight and every number of its configuration, or it
 * is refused: random models, in the types that hold them and as floats. */
#include "kernels/codec.h"
#include "model/export_gguf.h"
#include "random_model.h"
#include "runtime/model.h"
#include "test.h"
#include "test_folder.h"

static void compare_configs(const whit_config *a, const whit_config *b, uint32_t i)
{
    whit_config_number x, y;
    assert_string_equal(a->family, b->family);
    for (size_t k = 0; whit_config_number_at(a, k, &x); k++) {
        assert_true(whit_config_number_at(b, k, &y));
        bool same = x.is_float ? (float)x.f == (float)y.f : x.i == y.i;
        if (!same) fail_msg("model %u, a %s: another %s comes back", i, a->family, x.key);
    }
}

static void compare_weights(const whit_model *a, const whit_model *b, uint32_t i)
{
    for (uint32_t t = 0; t < a->weights.n_tensors; t++) {
        const char *name = whit_ndf_tensor_name(a->file, t);
        int64_t found = whit_ndf_find(b->file, name);
        if (found < 0) fail_msg("model %u: tensor '%s' does not come back", i, name);
        const whit_tensor *x = &a->weights.tensors[t], *y = &b->weights.tensors[found];
        uint32_t n = x->type.n_cols;
        if (x->type.layout != WHIT_LAYOUT_TILE16) continue;
        assert_true(y->type.n_rows == x->type.n_rows && y->type.n_cols == n);
        float *p = malloc(2 * n * sizeof *p), *q = p + n;
        assert_non_null(p);
        for (int32_t row = 0; row < (int32_t)x->type.n_rows; row++) {
            whit_codec_get_rows(x, &row, 1, p, n);
            whit_codec_get_rows(y, &row, 1, q, n);
            for (uint32_t k = 0; k < n; k++)
                if (p[k] != q[k]) fail_msg("model %u: tensor '%s', row %d, column %u", i, name, row, k);
        }
        free(p);
    }
}

/* True where it can be exported. */
static bool comes_back(uint32_t i, const char *coded)
{
    whit_ndf_writer *writer;
    whit_error error;
    whit_source source;
    char path[64];
    whit_status status = random_model_open_source(i, &writer, path, &source, &error);
    if (status == WHIT_OK) {
        const whit_export_options options = {.coded = coded, .floats = "f32", .no_tokenizer = true};
        status = whit_export_gguf(&source, &options, in_folder("out.gguf"), &error);
        whit_source_close(&source);
    }
    if (status == WHIT_OK) {
        whit_model *a, *b;
        whit_model_options open = whit_model_options_default();
        open.no_cache = true;
        assert_ok(whit_model_open(path, NULL, &a, &error), error);
        assert_ok(whit_model_open(in_folder("out.gguf"), &open, &b, &error), error);
        compare_configs(&a->config, &b->config, i);
        compare_weights(a, b, i);
        whit_model_close(a);
        whit_model_close(b);
    } else {
        assert_int_equal(status, WHIT_ERROR_UNSUPPORTED);
    }
    whit_ndf_writer_close(writer);
    return status == WHIT_OK;
}

static void exports_are_the_model_or_refused(void **state)
{
    uint32_t n_exported = 0, n = random_model_count() + (tests_are_brief() ? 10 : 150);
    (void)state;
    for (uint32_t i = 0; i < n; i++) n_exported += comes_back(i, NULL) + comes_back(i, "f32");
    print_message("%u exported\n", n_exported);
    assert_true(n_exported >= n / 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exports_are_the_model_or_refused)};
    return cmocka_run_group_tests_name("export", tests, make_folder, remove_folder);
}
