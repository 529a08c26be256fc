/* SPDX-License-Identifier: MIT
 * Tests that one model and one set of tokens have one hash: over CPU levels, threads, batch splits, fusion, cached
 * and shared prefixes, neighbours in the batch, and the caller's floating-point environment. The hash of a reference
 * run is stated here, so that a compiler or machine with other results is noticed. */
#include "test.h"

#include <fenv.h>

#include "tiny_model.h"

#define N_TOKENS 300 /* more than one group of KV blocks */

/* two models: with heads of 16 dimensions, and of 64, which are whole AMX tiles */
enum { NARROW_HEADS, WIDE_HEADS, N_MODELS };

static const struct {
    int model;
    whit_kv_type kv;
    whit_act_type act;
    uint64_t hash; /* hash of the reference run */
} settings[] = {
    {NARROW_HEADS, WHIT_KV_F32, WHIT_ACT_F32, 0xd6cc9f4379579fc5},
    {NARROW_HEADS, WHIT_KV_F16, WHIT_ACT_I8, 0x3ada002367552df6},
    {NARROW_HEADS, WHIT_KV_I8, WHIT_ACT_I8, 0xb511cfa79a2ad70c},
    {WIDE_HEADS, WHIT_KV_F16, WHIT_ACT_I8, 0xffc23d56b673c793},
    {WIDE_HEADS, WHIT_KV_I8, WHIT_ACT_I8, 0x016c154d094ad922},
    {NARROW_HEADS, WHIT_KV_K4V2, WHIT_ACT_I8, 0x7ec3dfa490342ace},
    {NARROW_HEADS, WHIT_KV_K2V2, WHIT_ACT_F32, 0xe058012331200db2},
    {WIDE_HEADS, WHIT_KV_K4V2, WHIT_ACT_I8, 0x0e7ed1084c6b8091},
    {WIDE_HEADS, WHIT_KV_K2V2, WHIT_ACT_I8, 0x61b32b7f91f76f94},
    {NARROW_HEADS, WHIT_KV_BITMAP, WHIT_ACT_F32, 0xe71ab3082ca15be6},
    {WIDE_HEADS, WHIT_KV_BITMAP, WHIT_ACT_I8, 0xdd87297924566836},
};

static size_t n_settings(void)
{
    return tests_are_brief() ? 1 : sizeof settings / sizeof settings[0];
}

static char model_paths[N_MODELS][32] = {"/tmp/whit-same-XXXXXX", "/tmp/whit-same-XXXXXX"};

static whit_model *open_model(int which)
{
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(model_paths[which], &options, &model, &error), error);
    return model;
}

static int32_t token_at(uint32_t sequence, uint32_t i)
{
    return (int32_t)((i * 7919u + sequence * 104729u + i * i) % TINY_N_VOCAB);
}

static uint64_t hash_row(uint64_t hash, const float *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &row[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001B3u; /* FNV-1a over 32-bit words */
    }
    return hash;
}

/* Feeds tokens [begin, end) of text `which` to `sequence`, `split` per step. Returns `hash` extended over all
 * logits. */
static uint64_t feed(whit_session *session, uint32_t n_vocab, uint32_t sequence, uint32_t which, uint32_t begin,
                     uint32_t end, uint32_t split, uint64_t hash)
{
    whit_error error;
    whit_step_token tokens[N_TOKENS];
    for (uint32_t i = begin; i < end;) {
        uint32_t n = 0;
        for (; n < split && i < end; n++, i++)
            tokens[n] = (whit_step_token){.sequence = sequence, .id = token_at(which, i), .want_logits = true};
        assert_ok(whit_session_step(session, tokens, n, &error), error);
        for (uint32_t k = 0; k < n; k++) hash = hash_row(hash, whit_session_logits(session, k), n_vocab);
    }
    return hash;
}

static whit_session_options options_of(size_t setting)
{
    whit_session_options options = whit_session_options_default();
    options.kv = settings[setting].kv;
    options.act = settings[setting].act;
    options.n_kv_window = 0; /* packed caches close blocks as early as possible */
    options.n_ctx_tokens = 512;
    options.n_logits = N_TOKENS;
    options.n_threads = 1;
    return options;
}

static uint64_t run(const whit_model *model, whit_session_options options, uint32_t split)
{
    whit_error error;
    whit_session *session;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    uint64_t hash = feed(session, whit_model_vocab_size(model), 0, 0, 0, N_TOKENS, split, 0xCBF29CE484222325u);
    whit_session_close(session);
    return hash;
}

static void one_hash_over_everything(void **state)
{
    (void)state;
    static const char *const levels[] = {"generic", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm"};
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        whit_model *model = open_model(settings[s].model);
        whit_session_options options = options_of(s);
        const uint64_t expected = settings[s].hash;
        if (tests_are_brief()) {
            options.n_threads = 2;
            assert_int_equal(run(model, options, 64), expected);
            whit_model_close(model);
            continue;
        }
        options.cpu = "generic";
        uint64_t found = run(model, options, N_TOKENS);
        print_message("model %d kv %d act %d: %016llx\n", settings[s].model, settings[s].kv, settings[s].act,
                      (unsigned long long)found);
        assert_int_equal(found, expected);
        options.cpu = NULL;
        static const uint32_t splits[] = {1, 7, 31, 63, 64, 65};
        for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
            assert_int_equal(run(model, options, splits[i]), expected);
        for (uint32_t threads = 1; threads <= 3; threads++) {
            options.n_threads = threads;
            assert_int_equal(run(model, options, N_TOKENS), expected);
        }
        options.n_batch_tokens = 13;
        assert_int_equal(run(model, options, N_TOKENS), expected);
        options.no_fuse = true;
        assert_int_equal(run(model, options, N_TOKENS), expected);
        options = options_of(s);
        for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
            options.cpu = levels[l];
            assert_int_equal(run(model, options, 64), expected);
        }
        whit_model_close(model);
    }
}

static void neighbours_and_prefixes_change_nothing(void **state)
{
    (void)state;
    enum { N_SEQUENCES = 3 };
    whit_error error;
    for (size_t s = 0; s < n_settings(); s++) {
        whit_model *model = open_model(settings[s].model);
        uint32_t n_vocab = whit_model_vocab_size(model);
        whit_session_options options = options_of(s);
        uint64_t alone[N_SEQUENCES], together[N_SEQUENCES];
        whit_session *session;
        for (uint32_t q = 0; q < N_SEQUENCES; q++) {
            assert_ok(whit_session_open(model, &options, &session, &error), error);
            alone[q] = feed(session, n_vocab, 0, q, 0, N_TOKENS, N_TOKENS, 1);
            whit_session_close(session);
            together[q] = 1;
        }
        options.n_sequences = N_SEQUENCES;
        assert_ok(whit_session_open(model, &options, &session, &error), error);
        /* interleaved sequences at different positions, several tokens of each per step */
        uint32_t at[N_SEQUENCES] = {0};
        at[1] = 20;
        at[2] = 70;
        for (uint32_t q = 1; q < N_SEQUENCES; q++)
            together[q] = feed(session, n_vocab, q, q, 0, at[q], 11, together[q]);
        while (at[0] < N_TOKENS || at[1] < N_TOKENS || at[2] < N_TOKENS) {
            whit_step_token tokens[8];
            uint32_t n = 0;
            for (uint32_t k = 0; k < 6; k++) {
                uint32_t q = (k * 2 + at[0]) % N_SEQUENCES;
                if (at[q] < N_TOKENS)
                    tokens[n++] = (whit_step_token){.sequence = q, .id = token_at(q, at[q]++), .want_logits = true};
            }
            if (n == 0) continue;
            assert_ok(whit_session_step(session, tokens, n, &error), error);
            for (uint32_t k = 0; k < n; k++)
                together[tokens[k].sequence] =
                    hash_row(together[tokens[k].sequence], whit_session_logits(session, k), n_vocab);
        }
        for (uint32_t q = 0; q < N_SEQUENCES; q++) assert_int_equal(together[q], alone[q]);

        /* One prefix is kept by truncation, another shared from a neighbour; both sequences are then continued
         * separately. */
        assert_ok(whit_session_truncate(session, 1, 100, &error), error);
        assert_ok(whit_session_share(session, 1, 0, 90, &error), error);
        uint64_t kept = feed(session, n_vocab, 1, 1, 100, N_TOKENS, 7, 1);
        uint64_t shared = feed(session, n_vocab, 0, 1, 90, N_TOKENS, 9, 1);
        assert_ok(whit_session_truncate(session, 2, 0, &error), error);
        (void)feed(session, n_vocab, 2, 1, 0, 90, 90, 1);
        assert_int_equal(feed(session, n_vocab, 2, 1, 90, N_TOKENS, N_TOKENS, 1), shared);
        assert_ok(whit_session_truncate(session, 2, 100, &error), error);
        assert_int_equal(feed(session, n_vocab, 2, 1, 100, N_TOKENS, N_TOKENS, 1), kept);
        whit_session_close(session);
        whit_model_close(model);
    }
}

static void set_flush_to_zero(bool on)
{
#if defined(__x86_64__)
    unsigned state = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? state | 0x8040 : state & ~0x8040u);
#elif defined(__aarch64__)
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    state = on ? state | 1u << 24 : state & ~(UINT64_C(1) << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
#else
    (void)on;
#endif
}

static void the_callers_environment_changes_nothing(void **state)
{
    (void)state;
    whit_model *model = open_model(settings[1].model);
    whit_session_options options = options_of(1);
    options.n_threads = 2;
    uint64_t expected = run(model, options, 64);
    fesetround(FE_DOWNWARD);
    set_flush_to_zero(true);
    uint64_t found = run(model, options, 64);
    int mode = fegetround();
    set_flush_to_zero(false);
    fesetround(FE_TONEAREST);
    assert_int_equal(found, expected);
    assert_int_equal(mode, FE_DOWNWARD); /* the caller's rounding mode is restored */
    whit_model_close(model);
}

static int make_models(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    if (tiny_model_make(&tiny, model_paths[NARROW_HEADS])) return -1;
    tiny.n_embd = 128;
    tiny.n_heads = 2;
    tiny.n_kv_heads = 1;
    return tiny_model_make(&tiny, model_paths[WIDE_HEADS]);
}

static int remove_models(void **state)
{
    (void)state;
    return unlink(model_paths[NARROW_HEADS]) | unlink(model_paths[WIDE_HEADS]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_hash_over_everything),
        cmocka_unit_test(neighbours_and_prefixes_change_nothing),
        cmocka_unit_test(the_callers_environment_changes_nothing),
    };
    return cmocka_run_group_tests_name("reproducible", tests, make_models, remove_models);
}
