/* SPDX-License-Identifier: MIT
 * Tests that the logits have one hash for every type of KV cache: over CPU levels, threads, prompts cut into steps
 * and passes of 1 to 512 tokens, prefixes that are computed, kept, shared, marked and reused, and neighbours in the
 * batch. */
#include "test.h"

#include "tiny_model.h"

enum { N_TOKENS = 640, N_CTX = 704 };

static const struct {
    whit_kv_type kv;
    uint32_t window;
    uint64_t hash; /* hash of the reference run: generic level, one thread, one token per step */
} types[] = {
    {WHIT_KV_F16, 0, 0x32332eb7a8b868ea},    {WHIT_KV_F32, 0, 0x8e620902ae595514},
    {WHIT_KV_I8, 0, 0xa4a246394fe50e6d},     {WHIT_KV_K4V2, 0, 0xbc0aaaa71d1e1614},
    {WHIT_KV_K4V2, 1, 0x3e6f8f6647e5035c},   {WHIT_KV_K2V2, 0, 0x4de629ea53e589c1},
    {WHIT_KV_K2V2, 2, 0xc5bc2447fc42de56},   {WHIT_KV_BITMAP, 0, 0x05909a058e7babfb},
    {WHIT_KV_BITMAP, 1, 0x77d3653550ebe47f},
};

static char path[] = "/tmp/whit-hash-XXXXXX";
static whit_model *model;

static int set_up(void **state)
{
    (void)state;
    whit_error error;
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    tiny.n_embd = 128;
    tiny.n_heads = 2;
    tiny.n_kv_heads = 1;
    if (tiny_model_make(&tiny, path)) return -1;
    return whit_model_open(path, &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    whit_model_close(model);
    return unlink(path);
}

static int32_t token_at(uint32_t text, uint32_t i)
{
    return (int32_t)((i * 7919u + text * 104729u + i * i) % TINY_N_VOCAB);
}

static whit_session *open_session(size_t type, const char *cpu, uint32_t n_threads, uint32_t n_batch)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.kv = types[type].kv;
    options.n_kv_window = types[type].window;
    options.n_ctx_tokens = N_CTX;
    options.n_sequences = 3;
    options.n_logits = 520;
    options.n_threads = n_threads;
    options.n_batch_tokens = n_batch;
    options.cpu = cpu;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

/* Hash of each token's logits in the reference run, so that a run that begins at any token can be compared. */
static uint64_t rows[N_TOKENS];

static uint64_t hash_row(const float *row)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (uint32_t i = 0; i < TINY_N_VOCAB; i++) {
        uint32_t bits;
        memcpy(&bits, &row[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001B3u; /* FNV-1a over 32-bit words */
    }
    return hash;
}

/* Feeds the tokens of text 0 that a sequence lacks of its first n, `split` per step. With neighbour >= 0, each step
 * also feeds as many tokens of another text to sequence `neighbour`. Every row must have its hash in `rows`; with
 * rows_are_new the hashes are stored instead. */
static void feed(whit_session *session, uint32_t sequence, uint32_t n, uint32_t split, int neighbour, bool rows_are_new)
{
    whit_error error;
    static whit_step_token tokens[2 * N_TOKENS];
    for (uint32_t at = whit_session_position(session, sequence); at < n;) {
        uint32_t k = 0, n_own = 0;
        for (; n_own < split && at + n_own < n; n_own++) {
            tokens[k++] = (whit_step_token){.sequence = sequence, .id = token_at(0, at + n_own), .want_logits = true};
            if (neighbour >= 0 && whit_session_position(session, (uint32_t)neighbour) + n_own + 1 < N_CTX)
                tokens[k++] = (whit_step_token){.sequence = (uint32_t)neighbour, .id = token_at(5, at + n_own)};
        }
        assert_ok(whit_session_step(session, tokens, k, &error), error);
        for (uint32_t i = 0; i < n_own; i++) {
            const uint64_t hash = hash_row(whit_session_logits(session, i));
            if (rows_are_new)
                rows[at + i] = hash;
            else if (rows[at + i] != hash)
                fail_msg("position %u of %u, in steps of %u: another row", at + i, n, split);
        }
        at += n_own;
    }
}

/* Returns sequence `to` to position `at` by sharing, truncation and reuse, and continues from there each time. */
static void come_back(whit_session *session, uint32_t to, uint32_t at)
{
    whit_error error;
    uint32_t n_present;
    int32_t ids[N_TOKENS];
    for (uint32_t i = 0; i < N_TOKENS; i++) ids[i] = token_at(0, i);
    assert_ok(whit_session_share(session, 0, to, at, &error), error);
    feed(session, to, N_TOKENS, 65, -1, false);
    assert_ok(whit_session_truncate(session, to, at, &error), error);
    feed(session, to, N_TOKENS, 512, -1, false);
    assert_ok(whit_session_truncate(session, to, 0, &error), error);
    assert_ok(whit_session_reuse(session, to, ids, at + 1, &n_present, &error), error);
    feed(session, to, N_TOKENS, 63, -1, false);
}

static void one_hash_for_every_type(void **state)
{
    (void)state;
    static const char *const levels[] = {"avx2", "avx512", "amx", "neon", "dotprod", "i8mm", NULL};
    static const uint32_t splits[] = {1, 63, 64, 65, 512};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        whit_error error;
        whit_session *session = open_session(t, "generic", 1, 512);
        feed(session, 0, N_TOKENS, tests_are_brief() ? 64 : 1, -1, true);
        whit_session_close(session);
        uint64_t hash = 0xCBF29CE484222325u;
        for (uint32_t i = 0; i < N_TOKENS; i++) hash = (hash ^ rows[i]) * 0x100000001B3u;
        print_message("kv %d, window %u: %016llx\n", (int)types[t].kv, types[t].window, (unsigned long long)hash);
        assert_int_equal(hash, types[t].hash);
        if (tests_are_brief()) continue;
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
            session = open_session(t, levels[i], 1 + i % 3, 512);
            feed(session, 0, N_TOKENS, 512, -1, false);
            come_back(session, 1, 300);
            whit_session_close(session);
        }
        for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
            session = open_session(t, NULL, 2, i % 2 ? 512 : 100);
            feed(session, 0, N_TOKENS, splits[i], i % 2 ? 2 : -1, false);
            assert_ok(whit_session_mark(session, 0, &error), error);
            static const uint32_t places[] = {1, 64, 127, 513, 600};
            come_back(session, 1, places[i]);
            feed(session, 1, N_TOKENS, splits[i], 2, false);
            whit_session_close(session);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_hash_for_every_type),
    };
    return cmocka_run_group_tests_name("kv_one_hash", tests, set_up, tear_down);
}
