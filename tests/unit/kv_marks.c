/* SPDX-License-Identifier: MIT
 * Tests that packed caches return to marks exactly, by truncation, sharing and reuse, with the bits of a session
 * that computes everything; and, for every type of cache, that many sequences can share one prompt. */
#include "test_folder.h"

#include "runtime/session.h"
#include "tiny_model.h"

enum { N_CTX = 1200, PROMPT = 2000 };

static whit_model *model;

static int set_up(void **state)
{
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    whit_error error;
    if (make_folder(state) || !tiny_model_write(&tiny, in_folder("a.gguf"))) return -1;
    return whit_model_open(in_folder("a.gguf"), &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    whit_model_close(model);
    return remove_folder(state);
}

static whit_session *open_session(whit_kv_type kv, uint32_t window, uint32_t n_sequences, uint32_t n_ctx,
                                  uint32_t n_marks)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.kv = kv;
    options.n_kv_window = window;
    options.n_ctx_tokens = n_ctx;
    options.n_sequences = n_sequences;
    options.n_marks = n_marks;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

/* Returns the token at `position` of a text; all texts are equal up to position `parts`. */
static int32_t id_at(uint32_t position, uint32_t text, uint32_t parts)
{
    return 259 + (int32_t)((position * 31u + (position < parts ? 0 : text * 7u) + position / 5 % 3) % TINY_N_PIECES);
}

static uint64_t n_fed;

/* Feeds a sequence up to position n; returns the logits of the last token. */
static const float *feed(whit_session *session, uint32_t sequence, uint32_t n, uint32_t text, uint32_t parts)
{
    whit_error error;
    static whit_step_token tokens[PROMPT + 100];
    uint32_t k = 0;
    for (uint32_t i = whit_session_position(session, sequence); i < n; i++)
        tokens[k++] = (whit_step_token){.sequence = sequence, .id = id_at(i, text, parts), .want_logits = i + 1 == n};
    n_fed += k;
    assert_ok(whit_session_step(session, tokens, k, &error), error);
    return whit_session_logits(session, 0);
}

static void expect_same(whit_session *session, uint32_t sequence, uint32_t n, uint32_t text, uint32_t parts,
                        whit_session *plain)
{
    whit_error error;
    const float *logits = feed(session, sequence, n, text, parts);
    assert_ok(whit_session_truncate(plain, 0, 0, &error), error);
    assert_memory_equal(logits, feed(plain, 0, n, text, parts), whit_model_vocab_size(model) * sizeof *logits);
}

static void goes_back_to_marks(void **state)
{
    (void)state;
    whit_error error;
    static const uint32_t places[] = {1, 17, 63, 64, 65, 80, 81, 300, 512, 575, 640};
    for (int t = 0; t < 6; t++) {
        const whit_kv_type kv = (whit_kv_type)(WHIT_KV_K4V2 + t % 3);
        const uint32_t window = (uint32_t)t / 3;
        whit_session *session = open_session(kv, window, 3, N_CTX, 4), *plain = open_session(kv, window, 1, N_CTX, 0);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const uint32_t at = places[i];
            if (tests_are_brief() && i % 3 != (size_t)t % 3) continue;
            assert_ok(whit_session_truncate(session, 0, 0, &error), error);
            feed(session, 0, at, 0, 0);
            assert_ok(whit_session_mark(session, 0, &error), error);
            feed(session, 0, 1000, 0, 0);
            /* Sharing must reach a mark that the first sequence also uses, and also one position before the mark. */
            assert_ok(whit_session_share(session, 0, 1, at, &error), error);
            assert_int_equal(whit_session_position(session, 1), at);
            expect_same(session, 1, at + 100, 1, at, plain);
            assert_ok(whit_session_share(session, 0, 2, at - 1, &error), error);
            assert_int_equal(whit_session_position(session, 2), at - 1);
            expect_same(session, 2, at + 30, 2, at - 1, plain);
            /* Truncation to a position after the mark may return to the mark. */
            assert_ok(whit_session_truncate(session, 0, at + 15, &error), error);
            /* the end of a block may be reached instead */
            assert_in_range(whit_session_position(session, 0), at, at + 15);
            expect_same(session, 0, at + 200, 0, 0, plain);
            /* Reuse must reach a mark that no sequence uses any more. */
            int32_t ids[N_CTX];
            uint32_t n_present;
            for (uint32_t q = 0; q < 3; q++) assert_ok(whit_session_truncate(session, q, 0, &error), error);
            for (uint32_t j = 0; j < N_CTX; j++) ids[j] = id_at(j, 1, at);
            assert_ok(whit_session_reuse(session, 2, ids, at + 9, &n_present, &error), error);
            assert_true(n_present >= at);
            expect_same(session, 2, at + 130, 1, at, plain);
            assert_ok(whit_session_truncate(session, 2, 0, &error), error);
        }
        whit_session_close(session);
        whit_session_close(plain);
    }
}

static void marks_what_was_asked_for_in_vain(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session = open_session(WHIT_KV_K4V2, 1, 2, N_CTX, 2);
    whit_session *plain = open_session(WHIT_KV_K4V2, 1, 1, N_CTX, 0);
    feed(session, 0, 1000, 0, 0);
    assert_ok(whit_session_truncate(session, 0, 500, &error), error);
    assert_true(whit_session_position(session, 0) < 500); /* there is no mark */
    feed(session, 0, 1000, 0, 0);                         /* in passes that do not end at 500 */
    assert_ok(whit_session_share(session, 0, 1, 500, &error), error);
    assert_int_equal(whit_session_position(session, 1), 500);
    expect_same(session, 1, 700, 2, 500, plain);
    /* New marks replace unused ones; a mark that was used remains while others were not. */
    for (uint32_t i = 0; i < 4; i++) {
        feed(session, 1, 710 + 100 * i, 2, 500);
        assert_ok(whit_session_mark(session, 1, &error), error);
    }
    assert_ok(whit_session_truncate(session, 1, 500, &error), error);
    assert_int_equal(whit_session_position(session, 1), 500);
    expect_same(session, 1, 1000, 3, 500, plain);
    whit_session_close(session);
    whit_session_close(plain);
}

/* A text that differs from a marked one before the mark resumes there exactly, also within the first block, whose sinks
 * the mark has. */
static void beginnings_of_marks_are_reused(void **state)
{
    (void)state;
    static const uint32_t cuts[] = {2, 30, 63, 64, 79};
    enum { MARK = 80, N = 200 };
    whit_error error;
    for (int t = 0; t < 6; t++) {
        const whit_kv_type kv = (whit_kv_type)(WHIT_KV_K4V2 + t % 3);
        const uint32_t window = (uint32_t)t / 3;
        whit_session *session = open_session(kv, window, 2, N_CTX, 4), *plain = open_session(kv, window, 1, N_CTX, 0);
        feed(session, 0, MARK, 0, 0);
        assert_ok(whit_session_mark(session, 0, &error), error);
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            int32_t ids[N];
            uint32_t n_present;
            for (uint32_t j = 0; j < N; j++) ids[j] = id_at(j, 1, cuts[i]);
            assert_ok(whit_session_truncate(session, 1, 0, &error), error);
            assert_ok(whit_session_reuse(session, 1, ids, N, &n_present, &error), error);
            assert_int_equal(n_present, cuts[i]);
            expect_same(session, 1, N, 1, cuts[i], plain);
        }
        whit_session_close(session);
        whit_session_close(plain);
    }
}

static void no_marks_no_way_back(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session = open_session(WHIT_KV_K2V2, 0, 1, N_CTX, 0);
    feed(session, 0, 300, 1, 0);
    assert_ok(whit_session_mark(session, 0, &error), error);
    feed(session, 0, 900, 1, 0);
    assert_ok(whit_session_truncate(session, 0, 853, &error), error); /* 47 positions back */
    assert_int_equal(whit_session_position(session, 0), 853);
    assert_ok(whit_session_truncate(session, 0, 300, &error), error);
    assert_true(whit_session_position(session, 0) < 300);
    whit_session_close(session);
}

/* The second client with the same system message must resume at that message's end, although no client asked for that
 * position before. */
static void ends_of_messages_are_marked(void **state)
{
    (void)state;
    enum { SYSTEM = 301, N = SYSTEM + 100 };
    whit_error error;
    int32_t ids[N], end = 0;
    uint32_t n_present;
    whit_session *session = open_session(WHIT_KV_K4V2, 0, 2, N_CTX, 4);
    while (!whit_model_is_end(model, end)) assert_true((size_t)++end < whit_model_vocab_size(model));
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t at = 0; at < N; at++) {
            ids[at] = id_at(at, i, SYSTEM + 3);
            if (at + 1 == SYSTEM)
                ids[at] = end;
            else
                assert_false(whit_model_is_end(model, ids[at]));
        }
        assert_ok(whit_session_reuse(session, i, ids, N, &n_present, &error), error);
        if (i) assert_int_equal(n_present, SYSTEM);
        whit_step_token tokens[N];
        for (uint32_t at = n_present; at < N; at++)
            tokens[at - n_present] = (whit_step_token){.sequence = i, .id = ids[at]};
        assert_ok(whit_session_step(session, tokens, N - n_present, &error), error);
    }
    whit_session_close(session);
}

/* A prompt of 2,000 tokens is computed and stored once; each of eight sequences has only its own tokens in addition. */
static void one_prompt_serves_eight(void **state)
{
    (void)state;
    enum { N_SEQUENCES = 8, N = PROMPT + 20, N_BLOCKS = PROMPT / 64 };
    whit_error error;
    static const whit_kv_type types[] = {WHIT_KV_F16,  WHIT_KV_F32,  WHIT_KV_I8,
                                         WHIT_KV_K4V2, WHIT_KV_K2V2, WHIT_KV_BITMAP};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        whit_session *session = open_session(types[t], 1, N_SEQUENCES, N, 4);
        whit_session *plain = open_session(types[t], 1, 1, N, 0);
        feed(session, 0, PROMPT, 0, PROMPT);
        assert_ok(whit_session_mark(session, 0, &error), error);
        n_fed = 0;
        feed(session, 0, N, 8, PROMPT); /* sequence 0 is longer than the shared part */
        for (uint32_t q = 1; q < N_SEQUENCES; q++) {
            assert_ok(whit_session_share(session, 0, q, PROMPT, &error), error);
            assert_int_equal(whit_session_position(session, q), PROMPT);
            feed(session, q, N, q, PROMPT);
        }
        assert_int_equal(n_fed, N_SEQUENCES * (N - PROMPT));
        for (uint32_t q = 0; q < N_SEQUENCES; q += 3) {
            assert_ok(whit_session_truncate(session, q, N - 1, &error), error);
            expect_same(session, q, N, q ? q : 8, PROMPT, plain);
        }
        uint64_t bytes = 0, bytes_of_one = 0;
        for (uint32_t c = 0; c < session->kv.n_classes; c++) {
            const whit_kv_class *class = &session->kv.classes[c];
            uint32_t n_used = 0;
            for (uint32_t b = 0; b < class->pool.n_blocks; b++) n_used += class->pool.references[b] > 0;
            if (class->role == WHIT_KV_ROLE_LAYERS) assert_int_equal(n_used, N_BLOCKS + N_SEQUENCES);
            if (class->role == WHIT_KV_ROLE_OPEN) assert_true(n_used <= 3 * N_SEQUENCES);
            bytes += n_used * (uint64_t) class->pool.block_bytes;
            if (class->role == WHIT_KV_ROLE_LAYERS) bytes_of_one += (N_BLOCKS + 1) * (uint64_t) class->pool.block_bytes;
        }
        print_message("kv %d: %llu bytes for eight, %llu for one prompt's blocks\n", (int)types[t],
                      (unsigned long long)bytes, (unsigned long long)bytes_of_one);
        whit_session_close(session);
        whit_session_close(plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_back_to_marks),
        cmocka_unit_test(marks_what_was_asked_for_in_vain),
        cmocka_unit_test(beginnings_of_marks_are_reused),
        cmocka_unit_test(no_marks_no_way_back),
        cmocka_unit_test(ends_of_messages_are_marked),
        cmocka_unit_test(one_prompt_serves_eight),
    };
    return cmocka_run_group_tests_name("kv_marks", tests, set_up, tear_down);
}
