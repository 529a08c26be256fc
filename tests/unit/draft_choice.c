/* SPDX-License-Identifier: MIT
 * Tests the number of guesses chosen by cost, with scripted guesses of which 0, 50, 80 and 100 % are right, on
 * simulated machines with cheap or expensive columns. Steps are counted, and the text must always be the same. */
#include "test.h"

#include "runtime/generation.h"
#include "tiny_model.h"

static char model_path[] = "/tmp/whit-choice-XXXXXX";
static whit_model *model;

enum { ONE_NS = 1000000, N_PROMPT = 12, N_MADE = 400 };

static const uint32_t percents[] = {0, 50, 80, 100};
/* cost of a further column in a step, in percent of a step with one column */
static const uint32_t slopes[] = {2, 10, 30, 100};

static uint64_t step_ns(uint32_t n_columns, uint32_t slope)
{
    return ONE_NS + (uint64_t)(n_columns - 1) * ONE_NS * slope / 100;
}

/* Returns whether the guess at a position is right. */
static bool is_right(size_t position, uint32_t percent)
{
    uint32_t hash = (uint32_t)position * 2654435761u;
    hash ^= hash >> 15;
    return hash * 2246822519u / 256 % 100 < percent;
}

/* ---- the choice alone ------------------------------------------------------------------------------ */

struct play {
    uint64_t ns;
    uint32_t n_steps, n_guessed, n_right;
};

/* time of the draft model for a guess, in percent of a step; 0: guesses are looked up */
static uint32_t guess_share;

/* Chooses the number of guesses for a step; *made_ns gets the time that making them took. */
static uint32_t choose_guesses(const whit_draft_account *account, whit_step_costs *costs, const whit_draft_odds *odds,
                               uint64_t *made_ns)
{
    *made_ns = 0;
    if (!guess_share)
        return whit_draft_choose(account, costs, whit_draft_odds_of(odds, WHIT_DRAFT_MATCH_MAX), WHIT_DRAFT_BY_COST_MAX,
                                 0);
    uint64_t guess_ns = whit_step_costs_guess(costs);
    if (!guess_ns) guess_ns = whit_step_costs_columns(costs, 1) / 2 + 1;
    const float share = whit_draft_odds_of(odds, WHIT_DRAFT_MATCH_MODEL);
    const uint32_t n = whit_draft_choose(account, costs, share, WHIT_DRAFT_BY_COST_MAX, guess_ns);
    *made_ns = (uint64_t)n * ONE_NS * guess_share / 100;
    whit_step_costs_add_guesses(costs, n, *made_ns);
    return n;
}

/* Plays n_tokens of generation; `percent_of` returns the percentage of right guesses at a position. */
static struct play play_text(uint32_t n_tokens, uint32_t (*percent_of)(size_t), uint32_t slope, whit_step_costs *costs,
                             whit_draft_account *account)
{
    struct play play = {0};
    whit_draft_odds odds = {.n = 0};
    for (size_t at = 0; at < n_tokens;) {
        int32_t ids[WHIT_DRAFT_BY_COST_MAX];
        uint32_t n_right = 0;
        uint64_t made_ns;
        for (uint32_t i = 0; i < WHIT_DRAFT_BY_COST_MAX; i++)
            ids[i] = is_right(at + i, percent_of(at + i)) ? (int32_t)(at + i) : -1;
        if (!guess_share) whit_draft_odds_watch(&odds, ids, WHIT_DRAFT_BY_COST_MAX, WHIT_DRAFT_MATCH_MAX);
        const uint32_t k = choose_guesses(account, costs, &odds, &made_ns);
        if (guess_share) whit_draft_odds_watch(&odds, ids, k, WHIT_DRAFT_MATCH_MODEL);
        while (n_right < k && ids[n_right] >= 0) n_right++;
        for (uint32_t i = 0; i <= n_right; i++) whit_draft_odds_see(&odds, (int32_t)(at + i));
        const uint64_t ns = step_ns(1 + k, slope);
        whit_step_costs_add(costs, 1 + k, 0, 0, ns);
        whit_draft_book(account, costs, k, n_right, made_ns);
        at += 1 + n_right;
        play.ns += ns + made_ns;
        play.n_steps++;
        play.n_guessed += k;
        play.n_right += n_right;
    }
    return play;
}

static uint32_t percent_now;
static uint32_t constant_percent(size_t position)
{
    (void)position;
    return percent_now;
}

/* 150 tokens with right guesses, then 150 with wrong ones, and so on. */
static uint32_t changing_percent(size_t position)
{
    return position / 150 % 2 ? 0 : 100;
}

static void guesses_never_cost_more_than_three_percent(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof slopes / sizeof *slopes; s++)
        for (size_t p = 0; p < sizeof percents / sizeof *percents; p++) {
            whit_step_costs costs = {0};
            whit_draft_account account = {0};
            percent_now = percents[p];
            struct play play = play_text(N_MADE, constant_percent, slopes[s], &costs, &account);
            double speed = (double)N_MADE * ONE_NS / (double)play.ns;
            if (speed < 0.97) fail_msg("%u %% right, a column %u %%: %.3f", percents[p], slopes[s], speed);
            /* the odds are learned without feeding guesses */
            if (percents[p] == 0) assert_int_equal(play.n_guessed, 0);
            if (percents[p] == 100 && slopes[s] <= 10 && speed < 3)
                fail_msg("all right, a column %u %%: %.2f", slopes[s], speed);
            if (percents[p] == 80 && slopes[s] <= 10 && speed < 1.8)
                fail_msg("80 %% right, a column %u %%: %.2f", slopes[s], speed);
            if (slopes[s] == 100) assert_true(play.n_guessed <= 3 * 3); /* three trials of three guesses */
        }
}

/* Guesses that take time to make must be used if they pay for that time, and must never cost more than 3 %. */
static void guesses_of_a_model_pay_for_themselves(void **state)
{
    (void)state;
    enum { N_TOKENS = 4000 };
    static const uint32_t shares[] = {5, 15, 40, 100};
    for (size_t g = 0; g < sizeof shares / sizeof *shares; g++)
        for (size_t s = 0; s < sizeof slopes / sizeof *slopes; s++)
            for (size_t p = 0; p < sizeof percents / sizeof *percents; p++) {
                whit_step_costs costs = {0};
                whit_draft_account account = {0};
                percent_now = percents[p];
                guess_share = shares[g];
                const struct play play = play_text(N_TOKENS, constant_percent, slopes[s], &costs, &account);
                const double speed = (double)N_TOKENS * ONE_NS / (double)play.ns;
                guess_share = 0;
                if (speed < 0.97)
                    fail_msg("%u %% right, a column %u %%, a guess %u %%: %.3f", percents[p], slopes[s], shares[g],
                             speed);
                if (percents[p] == 80 && slopes[s] <= 10 && shares[g] == 5) assert_true(speed > 2);
                if (percents[p] == 80 && slopes[s] <= 10 && shares[g] == 15) assert_true(speed > 1.5);
                if (percents[p] == 100 && slopes[s] <= 10 && shares[g] == 40) assert_true(speed > 1.7);
            }
}

static void guesses_stop_where_the_text_stops_repeating(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    whit_draft_account account = {0};
    struct play play = play_text(1500, changing_percent, 5, &costs, &account);
    assert_true(play.ns < 1500ull * ONE_NS * 2 / 3); /* half of the text is at least three times as fast */
}

/* A width that becomes expensive must be given up, and used again once it is cheap. */
static void a_changed_machine_is_noticed(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    whit_draft_account account = {0};
    percent_now = 90;
    assert_true(play_text(400, constant_percent, 3, &costs, &account).n_steps < 250);
    struct play dear = play_text(2000, constant_percent, 120, &costs, &account);
    assert_true((double)dear.ns <= 2000.0 * ONE_NS / 0.97);
    struct play cheap = play_text(8000, constant_percent, 3, &costs, &account);
    assert_true(cheap.n_steps < 6000);
}

/* A single disturbed measurement of a width must not switch it off for long. */
static void a_disturbed_trial_is_repeated(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    whit_draft_account account = {0};
    whit_step_costs_add(&costs, 4, 0, 0, 50 * ONE_NS);
    percent_now = 100;
    assert_true(play_text(4000, constant_percent, 3, &costs, &account).n_steps < 3000);
}

/* ---- generations ----------------------------------------------------------------------------------- */

struct script {
    int32_t truth[N_PROMPT + N_MADE];
    uint32_t percent;
};

static uint32_t guess_scripted(void *user, size_t n_tokens, uint32_t n_most, int32_t *ids)
{
    const struct script *script = user;
    uint32_t n = 0;
    for (; n < n_most && n_tokens + n < N_PROMPT + N_MADE; n++)
        ids[n] = script->truth[n_tokens + n] ^ !is_right(n_tokens + n, script->percent);
    return n;
}

struct machine {
    uint32_t slope, n_steps, widest;
    uint64_t ns;
};

static uint64_t time_step(void *user, uint32_t n_columns, uint32_t n_prompt, uint32_t depth)
{
    struct machine *m = user;
    (void)depth;
    m->n_steps += n_columns != 0;
    if (n_columns > m->widest) m->widest = n_columns;
    uint64_t ns = step_ns(n_columns ? n_columns : 1, m->slope) + (uint64_t)n_prompt * ONE_NS / 4;
    m->ns += ns;
    return ns;
}

static whit_session *open_session(struct machine *m)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_PROMPT + N_MADE;
    options.n_sequences = 2;
    options.n_logits = 2 + WHIT_DRAFT_BY_COST_MAX;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    session->costs.measure = time_step;
    session->costs.measure_user = m;
    return session;
}

static whit_generation *open_generation(whit_session *session, uint32_t sequence, float temperature, uint32_t n_draft,
                                        struct script *script, whit_sampler **sampler)
{
    whit_error error;
    whit_generation *g;
    int32_t ids[N_PROMPT];
    whit_sampler_options sampling = whit_sampler_options_default();
    whit_generate_options options = whit_generate_options_default();
    sampling.temperature = temperature;
    sampling.seed = 5;
    options.sequence = sequence;
    options.n_tokens = N_MADE - 1;
    options.n_draft_tokens = n_draft;
    options.ignore_end = true;
    for (int32_t i = 0; i < N_PROMPT; i++) ids[i] = i ? 259 + i : TINY_BOS;
    assert_ok(whit_sampler_open(model, &sampling, sampler, &error), error);
    assert_ok(whit_generation_open(session, *sampler, ids, N_PROMPT, &options, &g, &error), error);
    if (script) {
        g->all.script = guess_scripted;
        g->all.script_user = script;
    }
    return g;
}

/* Generates the text with scripted guesses, or by single steps if n_draft is 0, and compares it with the script. */
static struct machine make_text(float temperature, uint32_t n_draft, uint32_t slope, struct script *script)
{
    whit_error error;
    whit_sampler *sampler;
    struct machine m = {.slope = slope};
    whit_session *session = open_session(&m);
    whit_generation *g = open_generation(session, 0, temperature, n_draft, n_draft ? script : NULL, &sampler);
    size_t n, n_open = 1;
    while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
    const int32_t *ids = whit_generation_ids(g, &n);
    assert_int_equal(n, N_PROMPT + N_MADE - 1);
    if (n_draft)
        assert_memory_equal(ids, script->truth, n * sizeof *ids);
    else
        memcpy(script->truth, ids, n * sizeof *ids);
    whit_generation_close(g);
    whit_sampler_close(sampler);
    whit_session_close(session);
    return m;
}

static void scripted_guesses_change_no_text(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct script script = {.percent = 0};
        const float temperature = t ? 0.9f : 0;
        const struct machine plain = make_text(temperature, 0, 5, &script);
        const uint32_t n_plain = plain.n_steps;
        for (size_t p = 0; p < sizeof percents / sizeof *percents; p++) {
            script.percent = percents[p];
            struct machine cheap = make_text(temperature, WHIT_DRAFT_BY_COST, 5, &script);
            struct machine dear = make_text(temperature, WHIT_DRAFT_BY_COST, 100, &script);
            assert_true((double)dear.ns <= (double)plain.ns / 0.97);
            if (percents[p] == 0) assert_int_equal(cheap.n_steps, n_plain);
            if (percents[p] == 80) assert_true(cheap.n_steps * 2 < n_plain);
            if (percents[p] == 100) assert_true(cheap.n_steps * 4 < n_plain);
        }
    }
}

/* While another sequence generates or processes a prompt, steps contain no guesses. */
static void nobody_guesses_beside_others(void **state)
{
    (void)state;
    whit_error error;
    struct script script = {.percent = 100};
    struct machine m = {.slope = 5};
    whit_sampler *samplers[2];
    make_text(0, 0, 5, &script);
    whit_session *session = open_session(&m);
    whit_generation *both[2];
    for (uint32_t i = 0; i < 2; i++)
        both[i] = open_generation(session, i, 0, WHIT_DRAFT_BY_COST, &script, &samplers[i]);
    for (uint32_t i = 0; i < 30; i++) assert_ok(whit_generations_step(session, both, 1, NULL, &error), error);
    assert_int_equal(m.widest, 1 + WHIT_DRAFT_BY_COST_MAX);
    m.widest = 0;
    for (uint32_t i = 0; i < 20; i++) assert_ok(whit_generations_step(session, both, 2, NULL, &error), error);
    assert_int_equal(m.widest, 2);
    for (uint32_t i = 0; i < 2; i++) {
        whit_generation_close(both[i]);
        whit_sampler_close(samplers[i]);
    }
    whit_session_close(session);
}

static int open_tiny(void **state)
{
    (void)state;
    whit_error error;
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (tiny_model_make(&tiny, model_path) != 0) return -1;
    return whit_model_open(model_path, &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int close_tiny(void **state)
{
    (void)state;
    whit_model_close(model);
    return unlink(model_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_never_cost_more_than_three_percent),
        cmocka_unit_test(guesses_of_a_model_pay_for_themselves),
        cmocka_unit_test(guesses_stop_where_the_text_stops_repeating),
        cmocka_unit_test(a_changed_machine_is_noticed),
        cmocka_unit_test(a_disturbed_trial_is_repeated),
        cmocka_unit_test(scripted_guesses_change_no_text),
        cmocka_unit_test(nobody_guesses_beside_others),
    };
    return cmocka_run_group_tests_name("draft_choice", tests, open_tiny, close_tiny);
}
