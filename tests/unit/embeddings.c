/* SPDX-License-Identifier: MIT
 * Compares embeddings with the hidden states from which they are computed. */
#include "test.h"

#include <math.h>

#include "test_folder.h"
#include "tiny_model.h"

enum { N = 37 };

static whit_model *model;
static int32_t ids[N];

static whit_session *open_session(uint32_t n_logits, bool keep_hidden)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.keep_hidden = keep_hidden;
    options.n_logits = n_logits;
    options.n_threads = 1;
    options.n_ctx_tokens = 64;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

static void they_are_pooled_hidden_states(void **state)
{
    (void)state;
    whit_error error;
    uint32_t width = whit_model_embedding_size(model);
    whit_session *session = open_session(N, true);
    whit_step_token tokens[N];
    double *expected = calloc(3 * width, sizeof *expected);
    float *values = malloc(width * sizeof *values), *again = malloc(width * sizeof *again);
    for (int i = 0; i < N; i++) tokens[i] = (whit_step_token){.id = ids[i], .want_logits = true};
    assert_ok(whit_session_step(session, tokens, N, &error), error);
    for (int i = 0; i < N; i++)
        for (uint32_t k = 0; k < width; k++) {
            double h = whit_session_hidden(session, (size_t)i)[k];
            expected[WHIT_POOLING_MEAN * width + k] += h / N;
            if (i == 0) expected[WHIT_POOLING_CLS * width + k] = h;
            if (i == N - 1) expected[WHIT_POOLING_LAST * width + k] = h;
        }
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    for (int p = WHIT_POOLING_MEAN; p <= WHIT_POOLING_LAST; p++) {
        whit_embed_options options = whit_embed_options_default();
        options.pooling = (whit_pooling)p;
        options.not_normalised = true;
        assert_ok(whit_embed(session, ids, N, &options, values, &error), error);
        assert_int_equal(whit_session_position(session, 0), 0);
        double length = 0;
        for (uint32_t k = 0; k < width; k++) {
            assert_true(fabs((double)values[k] - expected[(uint32_t)p * width + k]) < 1e-5);
            length += expected[(uint32_t)p * width + k] * expected[(uint32_t)p * width + k];
        }
        options.not_normalised = false;
        assert_ok(whit_embed(session, ids, N, &options, values, &error), error);
        double one = 0;
        for (uint32_t k = 0; k < width; k++) {
            assert_true(fabs((double)values[k] - expected[(uint32_t)p * width + k] / sqrt(length)) < 1e-5);
            one += (double)values[k] * (double)values[k];
        }
        assert_true(fabs(one - 1) < 1e-5);
        /* The bits must not depend on how many tokens a step processes. */
        for (uint32_t n_logits = 1; n_logits <= 8; n_logits += 7) {
            whit_session *other = open_session(n_logits, true);
            assert_ok(whit_embed(other, ids, N, &options, again, &error), error);
            assert_memory_equal(again, values, width * sizeof *values);
            whit_session_close(other);
        }
    }
    whit_session_close(session);
    free(expected);
    free(values);
    free(again);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    whit_error error;
    float values[64];
    whit_session *plain = open_session(4, false), *session = open_session(4, true);
    whit_embed_options options = whit_embed_options_default();
    assert_int_equal(whit_embed(plain, ids, N, NULL, values, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_embed(session, ids, 0, NULL, values, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_embed(session, NULL, 3, NULL, values, &error), WHIT_ERROR_ARGUMENT);
    options.sequence = 1;
    assert_int_equal(whit_embed(session, ids, N, &options, values, &error), WHIT_ERROR_ARGUMENT);
    options.sequence = 0;
    options.pooling = (whit_pooling)4;
    assert_int_equal(whit_embed(session, ids, N, &options, values, &error), WHIT_ERROR_ARGUMENT);
    int32_t bad[2] = {5, -1}, many[65] = {0};
    assert_int_equal(whit_embed(session, bad, 2, NULL, values, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_session_position(session, 0), 0);
    assert_int_equal(whit_embed(session, many, 65, NULL, values, &error), WHIT_ERROR_LIMIT);
    whit_session_close(session);
    whit_session_close(plain);
}

static int set_up(void **state)
{
    if (make_folder(state) != 0) return -1;
    tiny_model tiny = tiny_model_default();
    if (!tiny_model_write(&tiny, in_folder("model.gguf"))) return -1;
    model = open_model("model.gguf");
    for (int i = 0; i < N; i++) ids[i] = 259 + i * 7 % 40;
    return 0;
}

static int tear_down(void **state)
{
    whit_model_close(model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_pooled_hidden_states),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("embeddings", tests, set_up, tear_down);
}
