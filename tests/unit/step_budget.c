/* SPDX-License-Identifier: MIT
 * Tests the time budget of steps with simulated machines whose times are formulas: how many prompt tokens a step
 * gets, that neither prompts nor answers starve, and that no text depends on the budget. */
#include "test.h"

#include "runtime/session.h"
#include "tiny_model.h"

static char model_path[] = "/tmp/whit-budget-XXXXXX";
static whit_model *model;

/* ---- machines -------------------------------------------------------------------------------------- */

enum { MS = 1000000 };

/* A model of a machine: a step takes `fixed` ns plus the given ns for each column and each prompt token. */
struct machine {
    uint64_t fixed, column, prompt;
    uint32_t steep_from; /* pieces of fewer prompt tokens cost twice as much */
    uint32_t n_steps, disturbed_each;
    uint64_t deep; /* additional ns of a prompt token for each 1,024 positions before it */
};

static uint64_t time_step(void *user, uint32_t n_columns, uint32_t n_prompt, uint32_t depth)
{
    struct machine *m = user;
    uint64_t ns = m->fixed + n_columns * m->column + n_prompt * m->prompt * (n_prompt < m->steep_from ? 2 : 1);
    ns += n_prompt * m->deep * depth / 1024;
    m->n_steps++;
    return m->disturbed_each && m->n_steps % m->disturbed_each == 0 ? 20 * ns : ns;
}

static const struct machine machines[] = {
    {.fixed = 30 * MS, .column = MS, .prompt = 4 * MS},                       /* a large model */
    {.fixed = 8 * MS, .column = MS / 2, .prompt = MS},                        /* a small model */
    {.fixed = MS / 10, .column = MS / 20, .prompt = MS / 50},                 /* a tiny model */
    {.fixed = 20 * MS, .column = 2 * MS, .prompt = 2 * MS, .steep_from = 32}, /* small pieces cost more */
    {.fixed = 30 * MS, .column = MS, .prompt = 4 * MS, .disturbed_each = 7},  /* other programs disturb some steps */
};

/* ---- predictions ----------------------------------------------------------------------------------- */

static void one_disturbed_step_changes_nothing(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    assert_int_equal(whit_step_costs_columns(&costs, 3), 0);
    for (int i = 0; i < 4; i++) whit_step_costs_add(&costs, 3, 0, 0, 10 * MS);
    whit_step_costs_add(&costs, 3, 0, 0, 900 * MS);
    assert_int_equal(whit_step_costs_columns(&costs, 3), 10 * MS);
    for (int i = 0; i < 3; i++) whit_step_costs_add(&costs, 3, 0, 0, 20 * MS); /* the machine is slower now */
    assert_int_equal(whit_step_costs_columns(&costs, 3), 20 * MS);
}

static void unmeasured_columns_are_interpolated(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    whit_step_costs_add(&costs, 2, 0, 0, 10 * MS);
    whit_step_costs_add(&costs, 6, 0, 0, 18 * MS);
    assert_int_equal(whit_step_costs_columns(&costs, 1), 10 * MS); /* a single column takes at most the time of two */
    assert_int_equal(whit_step_costs_columns(&costs, 4), 14 * MS);
    assert_int_equal(whit_step_costs_columns(&costs, 8), 24 * MS); /* 3 ms a column on average */
    whit_step_costs_add(&costs, 0, 64, 0, 64 * MS / 4);
    /* each further column costs twice a prompt token */
    assert_int_equal(whit_step_costs_columns(&costs, 8), 18 * MS + 2 * 2 * (7 * MS / 16));
}

/* Feeds prompt pieces beside n_columns answers. Once the predictions have settled, no piece may exceed the budget by
 * more than a tenth, or be less than half of what the budget allows. */
static void settle_pieces(struct machine m, uint32_t n_columns, uint64_t budget)
{
    whit_step_costs costs = {0};
    struct machine calm = m;
    calm.disturbed_each = 0;
    uint32_t best = 1;
    while (best < 512 && time_step(&calm, n_columns, best + 1, 0) <= budget) best++;
    for (uint32_t i = 0; i < 5; i++) whit_step_costs_add(&costs, n_columns, 0, 0, time_step(&m, n_columns, 0, 0));
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t n = whit_step_costs_fit(&costs, n_columns, 0, budget, 512);
        assert_in_range(n, 1, 512);
        if (i >= 15 && time_step(&calm, n_columns, n, 0) > budget + budget / 10)
            fail_msg("step %u: %u prompt tokens take %.1f ms", i, n, (double)time_step(&calm, n_columns, n, 0) / MS);
        if (i >= 15 && n < best / 2) fail_msg("step %u: %u prompt tokens, %u would fit", i, n, best);
        whit_step_costs_add(&costs, n_columns, n, 0, time_step(&m, n_columns, n, 0));
    }
}

static void pieces_settle_at_the_budget(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (uint32_t n_columns = 1; n_columns <= 8; n_columns += 7)
            for (uint64_t budget = 60; budget <= 240; budget *= 2) settle_pieces(machines[i], n_columns, budget * MS);
}

/* A piece of 256 was measured while nothing else was generated: the first pieces beside answers must not exceed the
 * budget by much. */
static void the_first_piece_is_careful(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    struct machine m = machines[0];
    for (uint32_t i = 0; i < 3; i++) whit_step_costs_add(&costs, 0, 256, 0, time_step(&m, 0, 256, 0));
    for (uint32_t i = 0; i < 3; i++) whit_step_costs_add(&costs, 7, 0, 0, time_step(&m, 7, 0, 0));
    uint32_t n = whit_step_costs_fit(&costs, 7, 0, 100 * MS, 512);
    assert_in_range(n, 4, 16);
    assert_true(time_step(&m, 7, n, 0) <= 100 * MS);
}

/* Feeds a prompt from position `from` to `to` beside seven answers. Returns how many steps after the first n_first
 * exceed the budget by more than a tenth; pieces become the first and the last piece. */
static uint32_t feed_prompt(whit_step_costs *costs, struct machine *m, uint64_t budget, uint32_t from, uint32_t to,
                            uint32_t n_first, uint32_t pieces[2])
{
    uint32_t n_over = 0;
    for (uint32_t i = 0, n; from < to; i++, from += n) {
        n = whit_step_costs_fit(costs, 7, from, budget, 512);
        const uint64_t ns = time_step(m, 7, n, from + n / 2);
        n_over += i >= n_first && ns > budget + budget / 10;
        whit_step_costs_add(costs, 7, n, from + n / 2, ns);
        if (!i) pieces[0] = n;
        pieces[1] = n;
    }
    return n_over;
}

/* Times as measured for BitNet 2B4T on two cores of a Zen 4: 41 ms for seven answers; a prompt token takes 5 ms at the
 * beginning and 10 ms after 4,096 tokens. */
static void pieces_shrink_with_depth(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    struct machine m = {.fixed = 6 * MS, .column = 5 * MS, .prompt = 5 * MS, .deep = 5 * MS / 4};
    const uint64_t budget = 120 * MS;
    uint32_t pieces[2];
    for (uint32_t i = 0; i < 5; i++) whit_step_costs_add(&costs, 7, 0, 0, time_step(&m, 7, 0, 0));
    assert_int_equal(feed_prompt(&costs, &m, budget, 0, 4000, 2, pieces), 0);
    /* 79 ms remain for prompt tokens of 9.9 ms */
    assert_in_range(pieces[1], 6, 8);
    assert_int_equal(feed_prompt(&costs, &m, budget, 0, 300, 0, pieces), 0); /* a new prompt begins */
    assert_in_range(pieces[1], 12, 15);
    /* a prompt whose beginning is in the cache */
    assert_int_equal(feed_prompt(&costs, &m, budget, 3500, 4000, 0, pieces), 0);
    assert_in_range(pieces[0], 6, 8);
}

/* Every seventh step takes twenty times as long as the formula says; the growth with depth must still be learned. */
static void growth_ignores_disturbed_steps(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    struct machine m = {.fixed = 6 * MS, .column = 5 * MS, .prompt = 5 * MS, .deep = 5 * MS / 4, .disturbed_each = 7};
    uint32_t pieces[2];
    for (uint32_t i = 0; i < 5; i++) whit_step_costs_add(&costs, 7, 0, 0, time_step(&m, 7, 0, 0));
    feed_prompt(&costs, &m, 120 * MS, 0, 4000, 0, pieces);
    assert_in_range(pieces[1], 6, 8);
    feed_prompt(&costs, &m, 120 * MS, 0, 300, 0, pieces);
    feed_prompt(&costs, &m, 120 * MS, 3500, 3501, 0, pieces);
    assert_in_range(pieces[0], 6, 8);
}

static void prompts_get_a_fifth_of_slow_steps(void **state)
{
    (void)state;
    whit_step_costs costs = {0};
    /* a step takes 480 ms, the budget is 100 */
    struct machine m = {.fixed = 400 * MS, .column = 10 * MS, .prompt = 5 * MS};
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t n = whit_step_costs_fit(&costs, 8, 0, 100 * MS, 512);
        whit_step_costs_add(&costs, 8, i % 2 ? n : 0, 0, time_step(&m, 8, i % 2 ? n : 0, 0));
    }
    assert_int_equal(whit_step_costs_fit(&costs, 8, 0, 100 * MS, 512), 480 / 4 / 5);
}

/* ---- steps ----------------------------------------------------------------------------------------- */

enum { N_STREAMS = 7, N_LONG = 1500, N_SHORT = 40, N_ALL = N_STREAMS + 2, N_CTX = 1600 };

struct part {
    whit_sampler *sampler;
    whit_generation *generation;
    int32_t ids[N_CTX];
    size_t n_ids;
};

static void open_part(whit_session *session, uint32_t sequence, uint32_t n_prompt, uint32_t n_tokens, struct part *part)
{
    whit_error error;
    int32_t ids[N_LONG];
    whit_sampler_options sampling = whit_sampler_options_default();
    whit_generate_options options = whit_generate_options_default();
    sampling.seed = sequence;
    sampling.temperature = sequence % 2 ? 0 : 0.8f;
    for (uint32_t i = 0; i < n_prompt; i++) ids[i] = i ? (int32_t)(259 + (i * (sequence + 3) + i / 7) % 20) : TINY_BOS;
    options.sequence = sequence;
    options.n_tokens = n_tokens;
    options.ignore_end = true;
    assert_ok(whit_sampler_open(model, &sampling, &part->sampler, &error), error);
    assert_ok(whit_generation_open(session, part->sampler, ids, n_prompt, &options, &part->generation, &error), error);
}

static size_t n_ids_of(const struct part *part)
{
    size_t n;
    whit_generation_ids(part->generation, &n);
    return n;
}

static void close_part(struct part *part)
{
    const int32_t *ids = whit_generation_ids(part->generation, &part->n_ids);
    memcpy(part->ids, ids, part->n_ids * sizeof *ids);
    whit_generation_close(part->generation);
    whit_sampler_close(part->sampler);
}

/* Counts of a run of play_streams. */
struct counts {
    uint32_t n_steps, n_over, largest_piece;
    uint32_t n_long, n_short; /* steps until the long and the short prompt were computed */
};

/* Seven streams generate; a long prompt arrives, and ten steps later a short one. Every step must advance each stream
 * by a token and each prompt by at least one. */
static void play_streams(const struct machine *machine, uint64_t budget, struct part *parts, struct counts *counts)
{
    whit_error error;
    whit_session *session;
    struct machine m = *machine;
    whit_session_options options = whit_session_options_default();
    options.n_sequences = N_ALL;
    options.n_ctx_tokens = N_CTX;
    options.n_batch_tokens = 256;
    options.n_logits = N_ALL + 2;
    options.n_threads = 1;
    *counts = (struct counts){0};
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    session->costs.measure = time_step;
    session->costs.measure_user = &m;
    for (uint32_t i = 0; i < N_STREAMS; i++) open_part(session, i, 2 + i, 500, &parts[i]);
    whit_generation *all[N_ALL];
    size_t n = N_STREAMS, n_open = 1;
    for (uint32_t i = 0; i < N_STREAMS; i++) all[i] = parts[i].generation;
    while (n_open && counts->n_steps < 600) {
        size_t before[N_ALL];
        uint32_t fed[N_ALL];
        whit_step_report report = whit_step_report_default();
        if (counts->n_steps == 20) open_part(session, N_STREAMS, N_LONG, 8, &parts[n]);
        if (counts->n_steps == 30) open_part(session, N_STREAMS + 1, N_SHORT, 8, &parts[n]);
        if (counts->n_steps == 20 || counts->n_steps == 30) {
            all[n] = parts[n].generation;
            n++;
        }
        if (n == N_ALL) { /* the server lists the shorter prompt first */
            all[N_ALL - 2] = parts[N_ALL - 1].generation;
            all[N_ALL - 1] = parts[N_ALL - 2].generation;
        }
        for (size_t i = 0; i < n; i++)
            before[i] = n_ids_of(&parts[i]), fed[i] = whit_session_position(session, (uint32_t)i);
        assert_ok(whit_generations_step_within(session, all, n, budget, &report, &n_open, &error), error);
        for (size_t i = 0; i < n; i++) {
            bool in_prompt = fed[i] < (i < N_STREAMS ? 2 + i : i == N_STREAMS ? N_LONG : N_SHORT);
            if (whit_generation_finished(parts[i].generation)) continue;
            if (in_prompt) assert_true(whit_session_position(session, (uint32_t)i) > fed[i]);
            if (!in_prompt) assert_int_equal(n_ids_of(&parts[i]), before[i] + 1);
        }
        counts->n_steps++;
        if (counts->n_steps <= 20) continue;
        if (n_ids_of(&parts[N_STREAMS]) == N_LONG) counts->n_long++;
        if (n == N_ALL && n_ids_of(&parts[N_STREAMS + 1]) == N_SHORT) counts->n_short++;
        if (report.n_columns && report.taken_ns > budget + budget / 10) counts->n_over++;
        if (report.n_prompt_tokens > counts->largest_piece) counts->largest_piece = report.n_prompt_tokens;
    }
    assert_int_equal(n_open, 0);
    for (size_t i = 0; i < N_ALL; i++) close_part(&parts[i]);
    whit_session_close(session);
}

static void a_long_prompt_holds_no_stream(void **state)
{
    (void)state;
    struct part *free_parts = calloc(N_ALL, sizeof *free_parts), *parts = calloc(N_ALL, sizeof *parts);
    struct counts free_counts, counts;
    const struct machine *m = &machines[0]; /* seven streams alone take 37 ms, a prompt token 4 */
    play_streams(m, 0, free_parts, &free_counts);
    play_streams(m, 100 * MS, parts, &counts);
    assert_int_equal(free_counts.largest_piece, 256 - N_STREAMS);
    assert_in_range(counts.largest_piece, 15, 19);
    assert_true(counts.n_over <= 1); /* at most the first, when no prompt was measured */
    assert_in_range(counts.n_long, N_LONG / 18, 2 * N_LONG / 15);
    /* a quarter of the pieces at most is the long prompt's, so the short one does not wait for it */
    assert_true(counts.n_short <= 5);
    for (size_t i = 0; i < N_ALL; i++) {
        assert_int_equal(parts[i].n_ids, free_parts[i].n_ids);
        assert_memory_equal(parts[i].ids, free_parts[i].ids, parts[i].n_ids * sizeof *parts[i].ids);
    }
    free(free_parts);
    free(parts);
}

static void a_report_of_another_version_is_taken(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    struct part *part = calloc(1, sizeof *part);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 64;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    open_part(session, 0, 5, 3, part);
    whit_step_report report = whit_step_report_default();
    report.struct_bytes = offsetof(whit_step_report, taken_ns);
    report.taken_ns = 77;
    assert_ok(whit_generations_step_within(session, &part->generation, 1, 0, &report, NULL, &error), error);
    assert_int_equal(report.n_prompt_tokens, 5);
    assert_int_equal(report.taken_ns, 77);
    report.struct_bytes = 3;
    assert_int_equal(whit_generations_step_within(session, &part->generation, 1, 0, &report, NULL, &error),
                     WHIT_ERROR_ARGUMENT);
    close_part(part);
    free(part);
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
        cmocka_unit_test(one_disturbed_step_changes_nothing),
        cmocka_unit_test(unmeasured_columns_are_interpolated),
        cmocka_unit_test(pieces_settle_at_the_budget),
        cmocka_unit_test(the_first_piece_is_careful),
        cmocka_unit_test(pieces_shrink_with_depth),
        cmocka_unit_test(growth_ignores_disturbed_steps),
        cmocka_unit_test(prompts_get_a_fifth_of_slow_steps),
        cmocka_unit_test(a_long_prompt_holds_no_stream),
        cmocka_unit_test(a_report_of_another_version_is_taken),
    };
    return cmocka_run_group_tests_name("step_budget", tests, open_tiny, close_tiny);
}
