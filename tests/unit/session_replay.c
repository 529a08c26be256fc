/* SPDX-License-Identifier: MIT
 * Tests replays of sessions that computed more than their files contain: tokens that were removed, or positions
 * whose frequencies depend on a longer context. */
#include "test_folder.h"

#include <unistd.h>

#include "model/rope_scaling.h"
#include "random_model.h"
#include "runtime/model.h"

enum { N_IDS_MAX = 128 };

/* A file of one sequence, which computed n_had tokens and kept n_kept of them. */
typedef struct recorded {
    uint32_t n_had, n_kept;
    uint32_t n_again; /* tokens of a second turn, which another sequence computed; 0: no second turn */
} recorded;

static void feed(whit_session *session, uint32_t sequence, const int32_t *ids, uint32_t n)
{
    whit_error error;
    whit_step_token tokens[N_IDS_MAX];
    for (uint32_t i = 0; i < n; i++) tokens[i] = (whit_step_token){.sequence = sequence, .id = ids[i]};
    assert_ok(whit_session_step(session, tokens, n, &error), error);
}

/* Saves the first n_ids ids, which the sequence holds, as a turn. */
static void save_turn(whit_session_file *file, const int32_t *ids, uint32_t n_ids)
{
    whit_error error;
    whit_session_turn turn = whit_session_turn_default();
    turn.ids = ids;
    turn.n_ids = turn.n_given = n_ids;
    assert_ok(whit_session_save(file, &turn, &error), error);
}

/* Returns whether a file that is written in a context of n_ctx tokens is replayed with the same bits. */
static bool is_replayed(const whit_model *model, uint32_t n_ctx, recorded r)
{
    int32_t ids[N_IDS_MAX];
    whit_error error;
    whit_session *session;
    whit_session_file *file;
    whit_session_options options = whit_session_options_default();
    const char *path = in_folder("a");
    options.n_ctx_tokens = n_ctx;
    options.n_sequences = 2;
    options.n_threads = 1;
    assert_in_range(r.n_had, 1, N_IDS_MAX);
    for (uint32_t i = 0; i < r.n_had; i++) ids[i] = (int32_t)(i * 31 % 61);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_session_load(session, 0, path, "test", &file, &error), error);
    feed(session, 0, ids, r.n_had);
    assert_ok(whit_session_truncate(session, 0, r.n_kept, &error), error);
    assert_int_equal(whit_session_position(session, 0), r.n_kept);
    save_turn(file, ids, r.n_kept);
    if (r.n_again) {
        feed(session, 1, ids, r.n_again);
        assert_ok(whit_session_share(session, 1, 0, r.n_again, &error), error);
        save_turn(file, ids, r.n_again);
    }
    whit_session_file_close(file);
    whit_session_close(session);
    whit_session_replay replay = whit_session_replay_default();
    assert_ok(whit_session_replay_file(model, NULL, NULL, 0, path, &replay, &error), error);
    unlink(path);
    return replay.is_same && replay.n_turns == (r.n_again ? 2 : 1);
}

/* Calls `check` for each random model for which `suits` is true. Returns their number. */
static uint32_t check_models(bool (*suits)(const whit_config *), void (*check)(const whit_model *, const whit_config *))
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        char path[64];
        whit_error error;
        whit_config config;
        whit_ndf_writer *writer;
        whit_model *model;
        const whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
        if (suits(&config)) {
            assert_ok(whit_model_open(path, &options, &model, &error), error);
            check(model, &config);
            whit_model_close(model);
            n++;
        }
        whit_ndf_writer_close(writer);
    }
    return n;
}

/* ---- tokens taken back ----------------------------------------------------------------------- */

static bool is_hybrid(const whit_config *config)
{
    return config->conv_taps != 0;
}

static void check_cuts(const whit_model *model, const whit_config *config)
{
    static const recorded cases[] = {{32, 31, 0},  {40, 33, 0},  {71, 69, 0}, {24, 24, 0},
                                     {100, 93, 0}, {34, 34, 31}, {15, 9, 0}};
    (void)config;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!is_replayed(model, 256, cases[i])) fail_msg("case %zu: the replay has another tail", i);
}

/* In recurrent layers, the positions at which states are stored depend on all tokens that a sequence computed; a file
 * contains only those that were kept. */
static void replays_agree_about_tokens_taken_back(void **state)
{
    (void)state;
    assert_true(check_models(is_hybrid, check_cuts) >= 2);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static bool depends_on_context(const whit_config *config)
{
    return !whit_rope_same_frequencies(config, 1, config->n_ctx);
}

static void check_contexts(const whit_model *model, const whit_config *config)
{
    assert_true(is_replayed(model, 128, (recorded){.n_had = 70, .n_kept = 70}));
    assert_true(is_replayed(model, config->n_ctx, (recorded){.n_had = 70, .n_kept = 70}));
}

/* A short conversation in a long context must use the frequencies of the context, not of its own length. */
static void replays_take_the_context_of_the_file(void **state)
{
    (void)state;
    assert_true(check_models(depends_on_context, check_contexts) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_agree_about_tokens_taken_back),
        cmocka_unit_test(replays_take_the_context_of_the_file),
    };
    return cmocka_run_group_tests_name("session_replay", tests, make_folder, remove_folder);
}
