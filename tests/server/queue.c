/* SPDX-License-Identifier: MIT
 * Tests requests that wait for a slot: one whose client left, and one whose time is over, stop waiting, whatever the
 * request in the slot does. */
#include "test_folder.h"

#include "base/clock.h"
#include "server/engine.h"
#include "tiny_model.h"

enum { WAIT_MS = 100, LATE_NS = 400000000 };
#define GIVE_UP_NS 120000000000u /* a test that hangs fails after this time */

static whit_job *make_job(const char *program)
{
    static const int32_t ids[] = {TINY_BOS, 260, 261};
    whit_job *job = whit_job_open();
    whit_error error;
    assert_non_null(job);
    job->ids = malloc(sizeof ids);
    assert_non_null(job->ids);
    memcpy(job->ids, ids, sizeof ids);
    job->n_ids = sizeof ids / sizeof *ids;
    job->sampling = whit_sampler_options_default();
    job->n_tokens = 90000;
    job->ignore_end = true;
    if (program) assert_ok(whit_program_open("program", program, strlen(program), NULL, &job->program, &error), error);
    return job;
}

static void submit(whit_engine *engine, whit_job *job)
{
    whit_error error;
    assert_ok(whit_engine_submit(engine, &job, 1, &error), error);
}

static void wait_for(whit_engine *engine, const bool *what)
{
    const uint64_t until_ns =
        /* each step of the engine ends a wait, so the time is limited and not the number of waits */
        whit_now_ns() + GIVE_UP_NS;
    whit_engine_lock(engine);
    while (!*what && whit_now_ns() < until_ns) whit_engine_wait(engine, WAIT_MS);
    bool came = *what;
    whit_engine_unlock(engine);
    assert_true(came);
}

static void waiting_ends(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    assert_true(tiny_model_write(&tiny, in_folder("model.gguf")));
    whit_model *model = open_model("model.gguf");
    whit_engine_options options = {.n_slots = 1, .n_threads = 1, .n_ctx_tokens = 100000, .n_queue = 8};
    whit_engine *engine;
    whit_error error;
    assert_ok(whit_engine_open(model, &options, &engine, &error), error);
    /* takes at least a millisecond per token, so that the job occupies the slot until the end of the test */
    whit_job *first = make_job("let x = 1\nfor i in 0..20000 { x = x * x + i }\nstate[0] = float(x)");
    whit_job *late = make_job(NULL), *left = make_job(NULL), *patient = make_job(NULL);
    submit(engine, first);
    wait_for(engine, &first->started);
    late->deadline_ns = whit_now_ns() + 1;
    submit(engine, late);
    submit(engine, left);
    submit(engine, patient);
    atomic_store(&left->cancelled, true);
    wait_for(engine, &late->finished);
    wait_for(engine, &left->finished);
    whit_engine_counts counts;
    whit_engine_count(engine, &counts);
    assert_false(first->finished);
    assert_int_equal(counts.n_queued, 1);
    assert_int_equal(counts.n_busy, 1);
    assert_int_equal(late->error.status, WHIT_ERROR_LIMIT);
    assert_int_equal(late->finish, WHIT_FINISH_FAILED);
    assert_int_equal(left->finish, WHIT_FINISH_CANCELLED);
    assert_false(late->started || left->started || patient->started);
    atomic_store(&first->cancelled, true);
    wait_for(engine, &first->finished);
    wait_for(engine, &patient->started);
    atomic_store(&patient->cancelled, true);
    wait_for(engine, &patient->finished);
    whit_job *last = make_job(NULL); /* the queue must still be intact */
    last->n_tokens = 2;
    submit(engine, last);
    wait_for(engine, &last->finished);
    assert_int_equal(last->finish, WHIT_FINISH_LENGTH);
    whit_engine_close(engine);
    whit_job *all[] = {first, late, left, patient, last};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) whit_job_close(all[i]);
    whit_model_close(model);
}

/* Answers whose client has left are counted as cancelled. An answer that its deadline ended is not counted, and is
 * marked as late. */
static void deadlines_are_no_departures(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    assert_true(tiny_model_write(&tiny, in_folder("model.gguf")));
    whit_model *model = open_model("model.gguf");
    whit_engine_options options = {.n_slots = 2, .n_threads = 1, .n_ctx_tokens = 100000, .n_queue = 8};
    whit_engine *engine;
    whit_engine_counts counts;
    whit_error error;
    assert_ok(whit_engine_open(model, &options, &engine, &error), error);
    static const char slow[] = "let x = 1\nfor i in 0..20000 { x = x * x + i }\nstate[0] = float(x)";
    whit_job *late = NULL, *left = make_job(slow);
    submit(engine, left);
    for (uint64_t wait_ns = LATE_NS; !late || !late->started;
         wait_ns *= 2) { /* repeated with a later deadline, because a loaded machine may start the job too late */
        if (late) whit_job_close(late);
        late = make_job(slow);
        late->deadline_ns = whit_now_ns() + wait_ns;
        submit(engine, late);
        wait_for(engine, &late->finished);
    }
    whit_engine_count(engine, &counts);
    assert_int_equal(late->finish, WHIT_FINISH_CANCELLED);
    assert_true(late->is_late);
    assert_int_equal(counts.n_cancelled, 0);
    atomic_store(&left->cancelled, true);
    wait_for(engine, &left->finished);
    whit_engine_count(engine, &counts);
    assert_int_equal(left->finish, WHIT_FINISH_CANCELLED);
    assert_false(left->is_late);
    assert_int_equal(counts.n_cancelled, 1);
    whit_engine_close(engine);
    whit_job_close(late);
    whit_job_close(left);
    whit_model_close(model);
}

/* The answers of a request are submitted together: if one is too many for the queue, none is accepted. */
static void a_request_is_taken_whole(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    assert_true(tiny_model_write(&tiny, in_folder("model.gguf")));
    whit_model *model = open_model("model.gguf");
    whit_engine_options options = {.n_slots = 1, .n_threads = 1, .n_ctx_tokens = 1000, .n_queue = 1};
    whit_engine *engine;
    whit_engine_counts counts;
    whit_error error;
    whit_job *jobs[3];
    for (size_t i = 0; i < 3; i++) {
        jobs[i] = make_job(NULL);
        jobs[i]->n_tokens = 2;
    }
    assert_ok(whit_engine_open(model, &options, &engine, &error), error);
    assert_true(whit_engine_is_full(engine, 3));
    assert_int_equal(whit_engine_submit(engine, jobs, 3, &error), WHIT_ERROR_LIMIT);
    whit_engine_count(engine, &counts);
    assert_int_equal(counts.n_queued + counts.n_busy + counts.n_requests, 0);
    assert_ok(whit_engine_submit(engine, jobs, 2, &error), error);
    for (size_t i = 0; i < 2; i++) wait_for(engine, &jobs[i]->finished);
    assert_false(jobs[2]->finished);
    whit_engine_close(engine);
    for (size_t i = 0; i < 3; i++) whit_job_close(jobs[i]);
    whit_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waiting_ends), cmocka_unit_test(deadlines_are_no_departures),
                                       cmocka_unit_test(a_request_is_taken_whole)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
