/* SPDX-License-Identifier: MIT
 * Tests random sequences of calls (session_play.h), and sessions in memory that another session used. WHIT_SEQUENCES
 * sets the number of sequences, WHIT_SEED the first seed. Each has its own seed, which a failure prints, so that
 * WHIT_SEQUENCES=1 repeats it. Every fourth has a model drawn from its seed (random_model.h). */
#include "test.h"

#include <inttypes.h>

#include "random_model.h"
#include "session_play.h"

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

#ifdef __SANITIZE_THREAD__
enum { N_SEQUENCES = 60 };
#else
enum { N_SEQUENCES = 400 };
#endif

/* On average a sequence of calls compares a row or more; when only a few are replayed, they may compare none. */
enum { FEW = 5 };
static void assert_enough_rows(const play_counts *counts, uint64_t n)
{
    if (n > FEW) assert_true(counts->n_rows >= n);
}

static void sessions_give_the_bits_of_single_tokens(void **state)
{
    (void)state;
    uint64_t first = number("WHIT_SEED", 1), n = number("WHIT_SEQUENCES", tests_are_brief() ? 12 : N_SEQUENCES);
    play_counts counts = {0};
    char why[512];
    print_message("seeds %" PRIu64 " to %" PRIu64 "\n", first, first + n - 1);
    for (uint64_t seed = first; seed < first + n; seed++) {
        play_source source = {.seed = seed};
        if (seed % 4 == 3) source.model = random_model_count() + (uint32_t)(seed / 16);
        if (!session_play(&source, &counts, why, sizeof why)) fail_msg("WHIT_SEED=%" PRIu64 ": %s", seed, why);
    }
    print_message("%" PRIu64 " steps of %" PRIu64 " tokens, %" PRIu64 " rows compared (%" PRIu64 " estimated), %" PRIu64
                  " refused, %" PRIu64 " shared, %" PRIu64 " cut (%" PRIu64 " further back), %" PRIu64
                  " mounted, %" PRIu64 " found again (%" PRIu64 " tokens)\n",
                  counts.n_steps, counts.n_tokens, counts.n_rows, counts.n_estimated, counts.n_refused, counts.n_shares,
                  counts.n_truncations, counts.n_back, counts.n_mounts, counts.n_reuses, counts.n_reused);
    assert_enough_rows(&counts, n);
    session_play_end();
}

/* Hybrids only: recurrent layers mixed with attention; two of them have a draft block. */
static void hybrids_give_the_bits_of_single_tokens(void **state)
{
    (void)state;
    const uint64_t first = number("WHIT_SEED", 1);
    const uint64_t n = (number("WHIT_SEQUENCES", tests_are_brief() ? 12 : N_SEQUENCES) + 1) / 2;
    play_counts counts = {0};
    char why[512];
    for (uint32_t i = 1; i < random_model_count(); i++) {
        whit_error error;
        whit_config config;
        whit_ndf_writer *writer;
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        whit_ndf_writer_close(writer);
        for (uint64_t seed = first; config.conv_taps && seed < first + n; seed++) {
            play_source source = {.seed = seed, .model = i};
            if (!session_play(&source, &counts, why, sizeof why)) fail_msg("WHIT_SEED=%" PRIu64 ": %s", seed, why);
        }
    }
    print_message("%" PRIu64 " rows compared, %" PRIu64 " cut (%" PRIu64 " further back), %" PRIu64
                  " found again (%" PRIu64 " tokens), %" PRIu64 " guessed, %" PRIu64 " times compared\n",
                  counts.n_rows, counts.n_truncations, counts.n_back, counts.n_reuses, counts.n_reused,
                  counts.n_guessed, counts.n_guesses_compared);
    assert_enough_rows(&counts, n);
    assert_true(n <= FEW || counts.n_guesses_compared > 0);
    session_play_end();
}

/* A model with a draft model that reads the model's keys and values. */
static void a_draft_model_changes_no_row(void **state)
{
    (void)state;
    const uint64_t first = number("WHIT_SEED", 1);
    const uint64_t n = (number("WHIT_SEQUENCES", tests_are_brief() ? 12 : N_SEQUENCES) + 1) / 2;
    play_counts counts = {0};
    char why[512];
    whit_error error;
    whit_config config = {0};
    uint32_t model = 0;
    for (; strcmp(config.family, "gemma4") != 0; model++) {
        whit_ndf_writer *writer;
        assert_ok(random_model_make(model, &writer, &config, &error), error);
        whit_ndf_writer_close(writer);
    }
    for (uint64_t seed = first; seed < first + n; seed++) {
        play_source source = {.seed = seed, .model = model - 1};
        if (!session_play(&source, &counts, why, sizeof why)) fail_msg("WHIT_SEED=%" PRIu64 ": %s", seed, why);
    }
    print_message("%" PRIu64 " rows compared, %" PRIu64 " tokens guessed, %" PRIu64 " times compared\n", counts.n_rows,
                  counts.n_guessed, counts.n_guesses_compared);
    assert_enough_rows(&counts, n);
    assert_true(n <= FEW || counts.n_guesses_compared > 0);
    session_play_end();
}

/* ---- memory that another session has left ---------------------------------------------------- */

/* An allocator for large blocks: a new block is filled with bytes of `fill`; a freed one is handed out again at the
 * same address with its old content. */
static struct used {
    void *block;
    size_t bytes;
    int fill;
} used;

static void *used_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    (void)user;
    size_t bytes = (size_bytes + align_bytes - 1) / align_bytes * align_bytes;
    void *block = used.block && used.bytes == bytes ? used.block : aligned_alloc(align_bytes, bytes);
    if (block == used.block)
        used.block = NULL;
    else if (block)
        memset(block, used.fill, bytes);
    return block;
}

static void used_free(void *user, void *memory, size_t size_bytes)
{
    (void)user;
    if (size_bytes < 65536) {
        free(memory);
        return;
    }
    free(used.block);
    used.block = memory;
    used.bytes = (size_bytes + 63) / 64 * 64;
}

/* Computes the logits of one token in a new session. */
static void run_one(const whit_model *model, int32_t id, float *logits)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 64;
    options.n_batch_tokens = 2;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    whit_step_token token = {.id = id, .want_logits = true};
    assert_ok(whit_session_step(session, &token, 1, &error), error);
    memcpy(logits, whit_session_logits(session, 0), whit_model_vocab_size(model) * sizeof *logits);
    whit_session_close(session);
}

/* A session must not use tables, marks or counts that an earlier session left in its memory. */
static void sessions_begin_anew_in_used_memory(void **state)
{
    (void)state;
    static const whit_allocator allocator = {used_alloc, used_free, NULL};
    enum { N_IDS = 20, N_VOCAB = 256 };
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_error error;
        whit_config config;
        whit_ndf_writer *writer;
        whit_model *model;
        char path[64];
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
        whit_model_options options = {.struct_bytes = sizeof options, .allocator = &allocator, .no_cache = true};
        assert_ok(whit_model_open(path, &options, &model, &error), error);
        static float clean[N_IDS][N_VOCAB], logits[N_VOCAB];
        assert_in_range(config.n_vocab, N_IDS, N_VOCAB);
        const int32_t n_ids = tests_are_brief() ? 3 : N_IDS;
        for (int32_t id = 0; id < n_ids; id++) {
            free(used.block);
            used = (struct used){.fill = id % 2 ? 0 : 0xFF};
            run_one(model, id, clean[id]);
        }
        for (int32_t id = n_ids; id-- > 0;) {
            run_one(model, id, logits);
            if (memcmp(logits, clean[id], config.n_vocab * sizeof *logits) != 0)
                fail_msg("model %u, token %d: other logits in used memory", i, id);
        }
        whit_model_close(model);
        whit_ndf_writer_close(writer);
        free(used.block);
        used = (struct used){0};
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_give_the_bits_of_single_tokens),
        cmocka_unit_test(hybrids_give_the_bits_of_single_tokens),
        cmocka_unit_test(a_draft_model_changes_no_row),
        cmocka_unit_test(sessions_begin_anew_in_used_memory),
    };
    return cmocka_run_group_tests_name("session_fuzz", tests, NULL, NULL);
}
