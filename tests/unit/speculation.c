/* SPDX-License-Identifier: MIT
 * Guessing tokens from the text before changes nothing but the speed: the same text, the same end,
 * the same tokens left in the cache, greedy and sampled. */
#include "test.h"

#include "runtime/draft.h"
#include "tiny_model.h"

static char model_path[] = "/tmp/whit-spec-XXXXXX";

static void the_latest_longest_match_is_followed(void **state)
{
    (void)state;
    static const int32_t text[] = {1, 2, 3, 9, 9, 1, 2, 3, 7, 5, 2, 3, 8, 1, 2, 3};
    whit_error error;
    whit_draft draft;
    int32_t ids[WHIT_DRAFT_MAX];
    assert_ok(whit_draft_open(32, NULL, &draft, &error), error);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) whit_draft_push(&draft, text[i]);
    assert_int_equal(whit_draft_guess(&draft, 3, ids), 3); /* 1 2 3 stood twice, 2 3 later */
    assert_int_equal(ids[0], 7);
    assert_int_equal(ids[2], 2);
    whit_draft_push(&draft, 4);
    assert_int_equal(whit_draft_guess(&draft, 3, ids), 0);
    whit_draft_close(&draft);
}

struct made {
    char text[4096];
    size_t n;
    uint32_t n_tokens, position;
    whit_finish finish;
};

static bool collect(void *user, const char *text, size_t n)
{
    struct made *made = user;
    if (made->n + n <= sizeof made->text) memcpy(made->text + made->n, text, n);
    made->n += n;
    return true;
}

static struct made generate(const whit_model *model, float temperature, uint32_t n_draft, uint32_t n_tokens,
                            const char *stop)
{
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    struct made made = {.n = 0};
    /* A prompt that repeats itself, so that there is something to look up. */
    int32_t ids[60];
    for (int i = 0; i < 60; i++) ids[i] = i ? 259 + i % 12 : TINY_BOS;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 160;
    options.n_threads = 1;
    options.n_logits = n_draft + 1;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = temperature;
    sampling.top_k = 3;
    sampling.seed = 42;
    sampling.repeat_penalty = 1.1f;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_sampler_open(model, &sampling, &sampler, &error), error);
    whit_generate_options how = whit_generate_options_default();
    how.n_tokens = n_tokens;
    how.n_draft_tokens = n_draft;
    how.ignore_end = true;
    how.on_text = collect;
    how.user = &made;
    how.stop = &stop;
    how.n_stop = stop != NULL;
    whit_generate_result result;
    assert_ok(whit_generate(session, sampler, ids, 60, &how, &result, &error), error);
    made.n_tokens = result.n_generated_tokens;
    made.finish = result.finish;
    made.position = whit_session_position(session, 0);
    whit_sampler_close(sampler);
    whit_session_close(session);
    return made;
}

static void guesses_change_nothing(void **state)
{
    (void)state;
    static const uint32_t drafts[] = {1, 2, 5, 15, 31};
    static const float temperatures[] = {0, 0.7f};
    whit_error error;
    whit_model *model;
    whit_model_options options = {.no_cache = true};
    assert_ok(whit_model_open(model_path, &options, &model, &error), error);
    for (int t = 0; t < 2; t++)
        for (uint32_t n_tokens = 1; n_tokens <= 100; n_tokens += 33) {
            struct made plain = generate(model, temperatures[t], 0, n_tokens, NULL);
            assert_int_equal(plain.position, 60 + n_tokens - 1);
            char stop[4] = {0};
            if (plain.n > 20) memcpy(stop, plain.text + plain.n / 2, 3);
            struct made stopped = generate(model, temperatures[t], 0, n_tokens, stop[0] ? stop : NULL);
            for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
                struct made guessed = generate(model, temperatures[t], drafts[d], n_tokens, NULL);
                assert_memory_equal(&guessed, &plain, sizeof plain);
                guessed = generate(model, temperatures[t], drafts[d], n_tokens, stop[0] ? stop : NULL);
                assert_memory_equal(&guessed, &stopped, sizeof stopped);
            }
        }
    whit_model_close(model);
}

static int make_model(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    return tiny_model_make(&tiny, model_path);
}

static int remove_model(void **state)
{
    (void)state;
    return unlink(model_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_longest_match_is_followed),
        cmocka_unit_test(guesses_change_nothing),
    };
    return cmocka_run_group_tests_name("speculation", tests, make_model, remove_model);
}
