/* SPDX-License-Identifier: MIT
 * Tests that the screened head chooses as the full head does: the largest logits have the same bits, and the others
 * are below them. It uses a random head, and a trained one if it is installed. */
#include "test.h"

#include <unistd.h>

#include "model/convert.h"
#include "tiny_model.h"

enum { N_TOKENS = 40, N_TOP = 40, MAX_COLUMNS = 20 };

static char model_path[] = "/tmp/whit-head-XXXXXX";

static void convert(const char *source_path)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    whit_convert_options options = {.head = "i8s"};
    assert_ok(whit_source_open(source_path, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(model_path, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

static whit_session *open_session(const whit_model *model, bool exact, uint32_t n_threads)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.exact_head = exact;
    options.n_threads = n_threads;
    options.n_sequences = MAX_COLUMNS;
    options.n_logits = MAX_COLUMNS;
    options.n_ctx_tokens = N_TOKENS;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Checks that `found` has the k largest values of `exact` with the same bits, and that all other values are below
 * them. */
static void check_top(const float *exact, const float *found, uint32_t n, uint32_t k, float *sorted)
{
    memcpy(sorted, exact, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, descending);
    float least = sorted[k - 1];
    for (uint32_t i = 0; i < n; i++)
        if (exact[i] >= least)
            assert_memory_equal(&exact[i], &found[i], sizeof *exact);
        else
            assert_true(found[i] < least);
}

static void compare(uint32_t n_columns, uint32_t n_top, uint32_t n_threads)
{
    whit_error error;
    whit_model *model;
    assert_ok(whit_model_open(model_path, NULL, &model, &error), error);
    uint32_t n_vocab = whit_model_vocab_size(model), n_different = 0;
    whit_session *exact = open_session(model, true, 1), *screened = open_session(model, false, n_threads);
    float *sorted = malloc(n_vocab * sizeof *sorted);
    assert_non_null(sorted);
    whit_rng rng = {n_columns};
    for (uint32_t i = 0; i < N_TOKENS; i++) {
        whit_step_token tokens[MAX_COLUMNS];
        for (uint32_t c = 0; c < n_columns; c++)
            tokens[c] = (whit_step_token){
                .sequence = c, .want_logits = true, .n_top = n_top, .id = (int32_t)whit_rng_below(&rng, n_vocab)};
        assert_ok(whit_session_step(exact, tokens, n_columns, &error), error);
        assert_ok(whit_session_step(screened, tokens, n_columns, &error), error);
        for (uint32_t c = 0; c < n_columns; c++) {
            const float *right = whit_session_logits(exact, c), *found = whit_session_logits(screened, c);
            check_top(right, found, n_vocab, n_top, sorted);
            n_different += memcmp(right, found, n_vocab * sizeof *right) != 0;
        }
    }
    /* every machine screens few columns; 20 columns only machines with AMX */
    assert_true(n_different > 0 || n_columns > 8);
    free(sorted);
    whit_session_close(exact);
    whit_session_close(screened);
    whit_model_close(model);
}

static void check_model(void)
{
    compare(1, 1, 1);
    compare(1, N_TOP, 2);
    compare(4, 1, 2);
    compare(3, N_TOP, 1);
    compare(MAX_COLUMNS, 1, 2);
}

static void random_head(void **state)
{
    (void)state;
    char gguf[] = "/tmp/whit-head-gguf-XXXXXX";
    tiny_model tiny = tiny_model_default();
    assert_int_equal(tiny_model_make(&tiny, gguf), 0);
    convert(gguf);
    unlink(gguf);
    check_model();
}

static void trained_head(void **state)
{
    (void)state;
    convert(shared_path("models/prose-6M/prose-6M-f16.gguf"));
    check_model();
}

static int make_file(void **state)
{
    (void)state;
    return close(mkstemp(model_path));
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(model_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_head), cmocka_unit_test(trained_head)};
    return cmocka_run_group_tests_name("screened_head", tests, make_file, remove_file);
}
