/* SPDX-License-Identifier: MIT
 * Tests that guessing tokens from earlier text changes only the speed: text, end and cached tokens are the same,
 * greedy and sampled. */
#include "test.h"

#include "random_model.h"
#include "runtime/draft.h"
#include "runtime/session.h"
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
    assert_int_equal(whit_draft_guess(&draft, 3, ids, NULL), 3); /* 1 2 3 occurs twice, 2 3 also later */
    assert_int_equal(ids[0], 7);
    assert_int_equal(ids[2], 2);
    whit_draft_push(&draft, 4);
    assert_int_equal(whit_draft_guess(&draft, 3, ids, NULL), 0);
    whit_draft_close(&draft);
}

static uint32_t logits_for(uint32_t n_draft)
{
    return 1 + (n_draft == WHIT_DRAFT_BY_COST ? WHIT_DRAFT_BY_COST_MAX : n_draft);
}

/* More columns take no more time, so guesses are fed whenever they may be right. */
static uint64_t time_step(void *user, uint32_t n_columns, uint32_t n_prompt, uint32_t depth)
{
    (void)user, (void)n_columns, (void)n_prompt, (void)depth;
    return 1000000;
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

static whit_kv_type kv_of_generate = WHIT_KV_F16; /* packed caches close blocks as early as they may */

static struct made generate(const whit_model *model, float temperature, uint32_t n_draft, uint32_t n_tokens,
                            const char *stop)
{
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    struct made made = {.n = 0};
    /* A prompt that repeats itself, so that guesses by lookup are possible. */
    int32_t ids[60];
    for (int i = 0; i < 60; i++) ids[i] = i ? 259 + i % 12 : TINY_BOS;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 160;
    options.kv = kv_of_generate;
    options.n_kv_window = 0;
    options.n_threads = 1;
    options.n_logits = logits_for(n_draft);
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = temperature;
    sampling.top_k = 3;
    sampling.seed = 42;
    sampling.repeat_penalty = 1.1f;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    session->costs.measure = time_step;
    assert_ok(whit_sampler_open(model, &sampling, &sampler, &error), error);
    whit_generate_options how = whit_generate_options_default();
    how.n_tokens = n_tokens;
    how.n_draft_tokens = n_draft;
    how.ignore_end = true;
    how.on_text = collect;
    how.user = &made;
    how.stop = &stop;
    how.n_stop = stop != NULL;
    whit_generate_result result = whit_generate_result_default();
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
    static const uint32_t drafts[] = {1, 2, 5, 15, 31, WHIT_DRAFT_BY_COST};
    static const float temperatures[] = {0, 0.7f};
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(model_path, &options, &model, &error), error);
    for (int t = 0; t < 2 * 5; t++)
        for (uint32_t n_tokens = 1; n_tokens <= 100; n_tokens += 33) {
            kv_of_generate = (whit_kv_type)(t / 2);
            struct made plain = generate(model, temperatures[t % 2], 0, n_tokens, NULL);
            assert_int_equal(plain.position, 60 + n_tokens - 1);
            char stop[4] = {0};
            if (plain.n > 20) memcpy(stop, plain.text + plain.n / 2, 3);
            struct made stopped = generate(model, temperatures[t % 2], 0, n_tokens, stop[0] ? stop : NULL);
            for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
                struct made guessed = generate(model, temperatures[t % 2], drafts[d], n_tokens, NULL);
                assert_memory_equal(&guessed, &plain, sizeof plain);
                guessed = generate(model, temperatures[t % 2], drafts[d], n_tokens, stop[0] ? stop : NULL);
                assert_memory_equal(&guessed, &stopped, sizeof stopped);
            }
        }
    kv_of_generate = WHIT_KV_F16;
    whit_model_close(model);
}

/* ---- recurrent layers ------------------------------------------------------------------------ */

enum { N_PROMPT = 60, N_MADE = 90 };

static void generate_ids(const whit_model *model, float temperature, uint32_t n_draft, int32_t ids[N_PROMPT + N_MADE])
{
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 160;
    options.n_threads = 1;
    options.n_logits = logits_for(n_draft);
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = temperature;
    sampling.top_k = 2;
    sampling.seed = 7;
    whit_generate_options how = whit_generate_options_default();
    how.n_tokens = N_MADE;
    how.n_draft_tokens = n_draft;
    how.ignore_end = true;
    for (int i = 0; i < N_PROMPT; i++) ids[i] = i % 12;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    session->costs.measure = time_step;
    assert_ok(whit_sampler_open(model, &sampling, &sampler, &error), error);
    assert_ok(whit_generate(session, sampler, ids, N_PROMPT, &how, NULL, &error), error);
    assert_int_equal(whit_session_position(session, 0), N_PROMPT + N_MADE - 1);
    memcpy(ids, whit_session_tokens_of(session, 0), (N_PROMPT + N_MADE - 1) * sizeof *ids);
    whit_sampler_close(sampler);
    whit_session_close(session);
}

static void guesses_change_no_state(void **state)
{
    (void)state;
    static const uint32_t drafts[] = {1, 4, 7, 31, WHIT_DRAFT_BY_COST};
    uint32_t n_hybrids = 0;
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_error error;
        whit_config config;
        whit_ndf_writer *writer;
        whit_model *model;
        char path[64];
        assert_ok(random_model_make(i, &writer, &config, &error), error);
        snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
        whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        if (config.conv_taps) {
            n_hybrids++;
            assert_ok(whit_model_open(path, &options, &model, &error), error);
            for (int t = 0; t < 2; t++) {
                int32_t plain[N_PROMPT + N_MADE] = {0}, guessed[N_PROMPT + N_MADE] = {0};
                generate_ids(model, (float)t, 0, plain);
                for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
                    generate_ids(model, (float)t, drafts[d], guessed);
                    assert_memory_equal(guessed, plain, sizeof plain);
                }
            }
            whit_model_close(model);
        }
        whit_ndf_writer_close(writer);
    }
    assert_true(n_hybrids >= 2);
}

/* ---- the built-in model ---------------------------------------------------------------------- */

/* Generates greedily after a prompt with batches of n_batch tokens. Returns the text's bytes. */
static size_t tell(const whit_model *model, const char *prompt, uint32_t n_batch, uint32_t n_draft, char text[4096])
{
    enum { N_IDS = 200, N_TOKENS = 32 };
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    int32_t ids[N_IDS];
    size_t n_ids;
    struct made made = {.n = 0};
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_IDS + N_TOKENS;
    options.n_batch_tokens = n_batch;
    options.n_threads = 1;
    options.n_logits = logits_for(n_draft);
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = 0;
    whit_generate_options how = whit_generate_options_default();
    how.n_tokens = N_TOKENS;
    how.n_draft_tokens = n_draft;
    how.on_text = collect;
    how.user = &made;
    assert_ok(whit_tokenize(model, prompt, strlen(prompt), true, true, ids, N_IDS, &n_ids, &error), error);
    assert_in_range(n_ids, 1, N_IDS);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    session->costs.measure = time_step;
    assert_ok(whit_sampler_open(model, &sampling, &sampler, &error), error);
    assert_ok(whit_generate(session, sampler, ids, n_ids, &how, NULL, &error), error);
    whit_sampler_close(sampler);
    whit_session_close(session);
    memcpy(text, made.text, made.n);
    return made.n;
}

/* Writes prompt i, which repeats itself so that guesses are possible. */
static void write_prompt(unsigned i, char *out, size_t out_bytes)
{
    static const char *const who[] = {"cat", "fox", "little girl", "old man", "dragon", "boy", "bear", "bird"};
    static const char *const where[] = {"in a forest", "by the sea", "in a small house", "on a hill", "in the park"};
    static const char *const what[] = {"find a friend", "fly", "eat cake", "see the moon", "sing a song"};
    const char *a = who[i % 8], *b = where[i / 8 % 5], *c = what[i / 40 % 5];
    snprintf(out, out_bytes, "Once upon a time there was a %s. The %s lived %s. The %s wanted to %s. So the %s", a, a,
             b, a, c, a);
}

/* Every batch size from 1 to 512 with 200 prompts; a tenth of the prompts unless WHIT_PROMPTS is set. */
static void batches_of_any_size_change_no_text(void **state)
{
    (void)state;
    static const uint32_t drafts[] = {8, 31, 3, WHIT_DRAFT_BY_COST, 1};
    const char *wanted = getenv("WHIT_PROMPTS");
    unsigned n_prompts = wanted ? (unsigned)atoi(wanted) : tests_are_brief() ? 2 : 20;
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(WHIT_SOURCE_DIR "/tools/tales/tales.ndf", &options, &model, &error), error);
    for (unsigned i = 0, next = 0; i < n_prompts; i++) {
        static char prompt[512], plain[4096], guessed[4096];
        write_prompt(i * (200 / n_prompts ? 200 / n_prompts : 1), prompt, sizeof prompt);
        size_t n = tell(model, prompt, 512, 0, plain);
        assert_true(n > 0);
        for (unsigned k = 0; k < 4; k++) {
            uint32_t n_batch = k == 0 ? 1 + i % 8 : 1 + next++ * 7 % 512, n_draft = drafts[(i + k) % 5];
            if (tell(model, prompt, n_batch, n_draft, guessed) != n || memcmp(guessed, plain, n) != 0)
                fail_msg("-ub %u --spec %u: another text after '%s'", n_batch, n_draft, prompt);
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
        cmocka_unit_test(guesses_change_no_state),
        cmocka_unit_test(batches_of_any_size_change_no_text),
    };
    return cmocka_run_group_tests_name("speculation", tests, make_model, remove_model);
}
