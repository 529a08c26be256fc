/* SPDX-License-Identifier: MIT
 * Tests sliding windows: positions that no query reads are not stored, except 128 more; a longer step back ends at
 * the longest prefix that is still stored. */
#include "test.h"

#include "changed_decoder.h"
#include "random_model.h"
#include "runtime/session.h"
#include "tiny_model.h"

enum { MODEL = 7, WINDOW = 100, N_CTX = 4096, LONG = 1500 };

static whit_ndf_writer *writer;
static whit_model *model;

static int set_up(void **state)
{
    (void)state;
    whit_config config;
    whit_error error;
    char path[64];
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (random_model_make(MODEL, &writer, &config, &error) != WHIT_OK || config.window != WINDOW) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
    return whit_model_open(path, &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    whit_model_close(model);
    whit_ndf_writer_close(writer);
    return 0;
}

static whit_session *open_session(uint32_t n_sequences, uint32_t n_batch)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_CTX;
    options.n_batch_tokens = n_batch;
    options.n_sequences = n_sequences;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

static int32_t id_at(uint32_t position, uint32_t text)
{
    return (int32_t)((position * 31 + position / 7 * text) % 64);
}

/* Feeds a sequence up to position n; returns the logits of the last token. */
static const float *feed(whit_session *session, uint32_t sequence, uint32_t n, uint32_t text)
{
    whit_error error;
    static whit_step_token tokens[N_CTX];
    uint32_t from = whit_session_position(session, sequence), k = 0;
    for (uint32_t i = from; i < n; i++)
        tokens[k++] = (whit_step_token){.sequence = sequence, .id = id_at(i, text), .want_logits = i + 1 == n};
    assert_ok(whit_session_step(session, tokens, k, &error), error);
    return whit_session_logits(session, 0);
}

static void memory_is_that_of_the_window(void **state)
{
    (void)state;
    whit_error error;
    size_t short_bytes, long_bytes, whole_bytes;
    whit_session_options options = whit_session_options_default();
    options.n_batch_tokens = 64;
    options.n_threads = 1;
    options.n_ctx_tokens = 1024;
    assert_ok(whit_session_predict_bytes(model, &options, NULL, 0, &short_bytes, &error), error);
    options.n_ctx_tokens = 65536;
    assert_ok(whit_session_predict_bytes(model, &options, NULL, 0, &long_bytes, &error), error);
    options.n_ctx_tokens = 1024;
    options.n_batch_tokens = 1024; /* a pass as long as the context needs all keys of the context */
    assert_ok(whit_session_predict_bytes(model, &options, NULL, 0, &whole_bytes, &error), error);
    assert_true(long_bytes - short_bytes <= (65536 - 1024) * (sizeof(int32_t) + 1)); /* token ids and tables */
    whit_session *session = open_session(1, 64);
    const whit_kv_class *class = &session->kv.classes[0];
    assert_int_equal(session->kv.n_classes, 1);
    assert_true(class->pool.n_blocks * WHIT_KV_BLOCK_TOKENS <= WINDOW + 128 + 64 + 3 * WHIT_KV_BLOCK_TOKENS);
    feed(session, 0, LONG, 1);
    uint32_t n_used = 0;
    for (uint32_t b = 0; b < class->pool.n_blocks; b++) n_used += class->pool.references[b] > 0;
    assert_true(n_used * WHIT_KV_BLOCK_TOKENS <= WINDOW + 128 + 2 * WHIT_KV_BLOCK_TOKENS);
    whit_session_close(session);
}

/* The bits must equal those of a session whose passes are so long that it keeps every token. */
static void bits_are_those_of_the_whole(void **state)
{
    (void)state;
    whit_session *ring = open_session(1, 16), *whole = open_session(1, N_CTX);
    assert_false(ring->kv.classes[0].keeps_all);
    assert_true(whole->kv.classes[0].keeps_all);
    size_t bytes = whit_model_vocab_size(model) * sizeof(float);
    for (uint32_t n = 1; n <= LONG; n += 1 + n / 3)
        assert_memory_equal(feed(ring, 0, n, 1), feed(whole, 0, n, 1), bytes);
    whit_session_close(ring);
    whit_session_close(whole);
}

static void steps_back_end_where_they_may(void **state)
{
    (void)state;
    whit_error error;
    whit_session *ring = open_session(3, 16), *whole = open_session(1, N_CTX);
    size_t bytes = whit_model_vocab_size(model) * sizeof(float);
    feed(ring, 0, LONG, 1);
    /* 128 is the promised distance; the text then continues differently */
    for (uint32_t back = 1; back <= 128; back += 9) {
        assert_ok(whit_session_share(ring, 0, 1, LONG - back, &error), error);
        assert_int_equal(whit_session_position(ring, 1), LONG - back);
        assert_ok(whit_session_truncate(whole, 0, 0, &error), error);
        feed(whole, 0, LONG - back, 1);
        assert_memory_equal(feed(ring, 1, LONG + 5, 2), feed(whole, 0, LONG + 5, 2), bytes);
    }
    assert_ok(whit_session_truncate(ring, 0, LONG - 128, &error), error);
    assert_int_equal(whit_session_position(ring, 0), LONG - 128);
    feed(ring, 0, LONG, 1);
    /* When the sequence cannot return that far, it stops earlier, and the caller feeds tokens from there. */
    assert_ok(whit_session_truncate(ring, 0, 700, &error), error);
    assert_true(whit_session_position(ring, 0) < 700);
    assert_ok(whit_session_truncate(whole, 0, 0, &error), error);
    assert_memory_equal(feed(ring, 0, 720, 1), feed(whole, 0, 720, 1), bytes);
    assert_ok(whit_session_share(ring, 1, 2, 300, &error), error);
    assert_true(whit_session_position(ring, 2) < 300);
    assert_ok(whit_session_truncate(whole, 0, 0, &error), error);
    assert_memory_equal(feed(ring, 2, 300, 1), feed(whole, 0, 300, 1), bytes);
    whit_session_close(ring);
    whit_session_close(whole);
}

/* The blocks of a beginning can be reused although the window has dropped older ones: only those that later queries
 * read are needed. */
static void beginnings_are_found(void **state)
{
    (void)state;
    whit_error error;
    uint32_t n_present;
    int32_t ids[LONG];
    whit_session *ring = open_session(2, 64), *whole = open_session(1, N_CTX);
    size_t bytes = whit_model_vocab_size(model) * sizeof(float);
    for (uint32_t i = 0; i < LONG; i++) ids[i] = id_at(i, 1);
    feed(ring, 0, LONG, 1);
    assert_ok(whit_session_reuse(ring, 1, ids, LONG, &n_present, &error), error);
    assert_int_equal(n_present, (LONG - 1) / 64 * 64);
    assert_memory_equal(feed(ring, 1, LONG + 9, 1), feed(whole, 0, LONG + 9, 1), bytes);
    whit_session_close(ring);
    whit_session_close(whole);
}

static void too_many_windows_are_refused(void **state)
{
    (void)state;
    for (uint32_t n = 8; n <= 9; n++) { /* layers, each with another window */
        char path[] = "/tmp/whit-windows-XXXXXX";
        whit_error error;
        whit_model *many;
        whit_session *session;
        tiny_model tiny = tiny_model_default();
        tiny.n_layers = n;
        whit_model_options options = {.struct_bytes = sizeof options,
                                      .no_cache = true,
                                      .family_program = changed_decoder("size, kind(l, \"window\"),", "size, 10 + l,")};
        assert_int_equal(tiny_model_make(&tiny, path), 0);
        assert_ok(whit_model_open(path, &options, &many, &error), error);
        if (n == 8) {
            assert_ok(whit_session_open(many, NULL, &session, &error), error);
            whit_session_close(session);
        } else {
            assert_int_equal(whit_session_open(many, NULL, &session, &error), WHIT_ERROR_UNSUPPORTED);
            assert_non_null(strstr(error.message, "more than 8 kinds of attention"));
        }
        whit_model_close(many);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_that_of_the_window),  cmocka_unit_test(bits_are_those_of_the_whole),
        cmocka_unit_test(steps_back_end_where_they_may), cmocka_unit_test(beginnings_are_found),
        cmocka_unit_test(too_many_windows_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
