/* SPDX-License-Identifier: MIT
 * Tests generations that share steps: each gives the same text as alone, and an error in one does not affect the
 * others. */
#include "test.h"

#include "adapter_run.h"
#include "adapter_sample.h"
#include "failing_memory.h"
#include "format/ndf_append.h"

#include <pthread.h>

enum { N = 8, LOG_BYTES = 1 << 14, N_CTX = 192 };

static whit_model *model;
static whit_adapter *adapters[2];

/* ---- logs of generations --------------------------------------------------------------------- */

/* All events in order, as bytes: ids, text, log-probabilities, the end. */
struct log {
    uint8_t bytes[LOG_BYTES];
    size_t n;
    whit_finish finish;
    uint32_t n_prompt, n_generated, position;
};

static void note(struct log *log, char kind, const void *bytes, size_t n)
{
    assert_true(log->n + n + 1 + sizeof n <= LOG_BYTES);
    log->bytes[log->n++] = (uint8_t)kind;
    memcpy(log->bytes + log->n, &n, sizeof n);
    memcpy(log->bytes + log->n + sizeof n, bytes, n);
    log->n += sizeof n + n;
}

static bool on_text(void *user, const char *text, size_t n)
{
    note(user, 'x', text, n);
    return true;
}

static bool on_token(void *user, int32_t id)
{
    note(user, 'i', &id, sizeof id);
    return true;
}

/* A sampling stage that depends on all earlier tokens: it bans ids by a hash of them, and ends the text after
 * `last`. */
struct hash_stage {
    uint64_t hash;
    uint32_t n, last, n_applied;
};

static whit_status hash_apply(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    struct hash_stage *stage = user;
    (void)error;
    stage->n_applied++;
    for (uint32_t id = 0; id < n_vocab; id++)
        if ((stage->hash ^ id * 2654435761u) % 3 == 0) logits[id] = -INFINITY;
    return WHIT_OK;
}

static whit_status hash_accept(void *user, int32_t id, bool *end, whit_error *error)
{
    struct hash_stage *stage = user;
    (void)error;
    stage->hash = (stage->hash + (uint64_t)id + 1) * 6364136223846793005u;
    *end = ++stage->n == stage->last;
    return WHIT_OK;
}

/* The prompt and options of one of eight generations. */
struct way {
    int32_t ids[160];
    size_t n_ids;
    whit_sampler_options sampling;
    whit_generate_options options;
    const char *stops[2];
    struct hash_stage hash;
    whit_stage stage;
    const whit_stage *stages[1];
    whit_mount mounts[2];
    size_t n_mounts;
    whit_sampler *sampler;
    struct log log;
};

static void make_way(struct way *way, uint32_t k)
{
    whit_error error;
    static const uint32_t lengths[N] = {1, 40, 9, 150, 33, 70, 2, 25};
    static const float temperatures[N] = {0, 0.9f, 1.4f, 0, 0.7f, 1, 2, 0.8f};
    *way = (struct way){.n_ids = lengths[k], .sampling = whit_sampler_options_default()};
    for (uint32_t i = 0; i < lengths[k]; i++) way->ids[i] = i ? (int32_t)(259 + (i + k) % (7 + k)) : TINY_BOS;
    way->sampling.temperature = temperatures[k];
    way->sampling.seed = k;
    way->sampling.top_k = k == 2 ? 0 : 5;
    way->sampling.repeat_penalty = k == 4 ? 1.3f : 1;
    way->sampling.dry_multiplier = k == 5 ? 0.8f : 0;
    way->sampling.mirostat = k == 6 ? 2 : 0;
    way->options = whit_generate_options_default();
    way->options.n_tokens = k == 3 ? 42 : 30 + 11 * k;
    way->options.ignore_end = k % 3 != 0;
    way->options.n_draft_tokens = k % 2 ? 1 + 2 * k : 0;
    way->options.on_text = on_text;
    way->options.on_token = on_token;
    way->options.user = &way->log;
    way->options.logprobs = k == 1 || k == 7;
    way->options.n_top_logprobs = k;
    way->stops[0] = k == 0 ? "the" : "zz";
    way->stops[1] = k == 1 ? "Cv" : k == 5 ? "theand" : "e."; /* both occur in the outputs of these two */
    way->options.stop = way->stops;
    way->options.n_stop = k % 4 ? 1 + k % 2 : 2;
    if (k == 2 || k == 7) {
        way->stage = whit_stage_default();
        way->stage.user = &way->hash;
        way->stage.apply = hash_apply;
        way->stage.accept = hash_accept;
        way->hash.last = k == 7 ? 19 : 0;
        way->stages[0] = &way->stage;
        way->options.stages = way->stages;
        way->options.n_stages = 1;
    }
    if (k == 1 || k == 5) way->mounts[way->n_mounts++] = (whit_mount){adapters[0], 1};
    if (k == 5 || k == 6) way->mounts[way->n_mounts++] = (whit_mount){adapters[1], 0.5f};
    assert_ok(whit_sampler_open(model, &way->sampling, &way->sampler, &error), error);
}

static void end_log(struct log *log, const whit_generation *g, const whit_session *session, uint32_t sequence)
{
    whit_generate_result result = whit_generate_result_default();
    whit_generation_result(g, &result);
    log->finish = result.finish;
    log->n_prompt = result.n_prompt_tokens;
    log->n_generated = result.n_generated_tokens;
    log->position = whit_session_position(session, sequence);
}

static void note_logprobs(struct way *way, const whit_generation *g)
{
    const whit_logprob *entries;
    for (size_t i = 0; (entries = whit_generation_logprobs(g, i)); i++)
        note(&way->log, 'p', entries, (1 + way->options.n_top_logprobs) * sizeof *entries);
}

static whit_session *open_session(uint32_t n_sequences, uint32_t n_batch, uint32_t n_logits)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_sequences = n_sequences;
    options.n_ctx_tokens = N_CTX;
    options.n_batch_tokens = n_batch;
    options.n_logits = n_logits;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

/* Generates by whit_generate; if log-probabilities are wanted, steps a generation by hand. */
static void run_alone(struct log *log, uint32_t k)
{
    whit_error error;
    struct way *way = malloc(sizeof *way);
    make_way(way, k);
    whit_session *session = open_session(1, 512, 1 + way->options.n_draft_tokens);
    assert_ok(whit_session_mount(session, 0, way->mounts, way->n_mounts, &error), error);
    if (!way->options.logprobs) {
        whit_generate_result result = whit_generate_result_default();
        assert_ok(whit_generate(session, way->sampler, way->ids, way->n_ids, &way->options, &result, &error), error);
        way->log.finish = result.finish;
        way->log.n_prompt = result.n_prompt_tokens;
        way->log.n_generated = result.n_generated_tokens;
        way->log.position = whit_session_position(session, 0);
    } else {
        whit_generation *g;
        assert_ok(whit_generation_open(session, way->sampler, way->ids, way->n_ids, &way->options, &g, &error), error);
        while (!whit_generation_finished(g)) {
            whit_step_token tokens[64];
            size_t n;
            assert_ok(whit_generation_tokens(g, tokens, 64, 32, &n, &error), error);
            assert_ok(whit_session_step(session, tokens, n, &error), error);
            assert_ok(whit_generation_accept(g, 0, &error), error);
        }
        note_logprobs(way, g);
        end_log(&way->log, g, session, 0);
        whit_generation_close(g);
    }
    if (way->options.n_stages) assert_int_equal(way->hash.n, way->log.n_generated);
    *log = way->log;
    whit_sampler_close(way->sampler);
    whit_session_close(session);
    free(way);
}

/* Runs all generations in one session; if `staggered`, some begin later than others. */
static void run_together(struct log *logs, uint32_t n_batch, uint32_t n_logits, bool staggered)
{
    whit_error error;
    whit_session *session = open_session(N, n_batch, n_logits);
    whit_generation *all[N] = {0};
    struct way *ways = malloc(N * sizeof *ways);
    size_t n = 0, n_open = 1, n_steps = 0;
    for (; n < N || n_open; n_steps++) {
        while (n < N && (!staggered || n_steps / 5 >= n)) {
            make_way(&ways[n], (uint32_t)n);
            ways[n].options.sequence = (uint32_t)((n * 3 + 1) % N);
            assert_ok(whit_session_mount(session, ways[n].options.sequence, ways[n].mounts, ways[n].n_mounts, &error),
                      error);
            assert_ok(whit_generation_open(session, ways[n].sampler, ways[n].ids, ways[n].n_ids, &ways[n].options,
                                           &all[n], &error),
                      error);
            n++;
        }
        assert_ok(whit_generations_step(session, all, n, &n_open, &error), error);
        assert_true(n_steps < 2000);
    }
    for (uint32_t k = 0; k < N; k++) {
        assert_null(whit_generation_error(all[k]));
        note_logprobs(&ways[k], all[k]);
        end_log(&ways[k].log, all[k], session, ways[k].options.sequence);
        logs[k] = ways[k].log;
        whit_generation_close(all[k]);
        whit_sampler_close(ways[k].sampler);
    }
    whit_session_close(session);
    free(ways);
}

static struct log alone[N];

static void assert_alike(const struct log *logs)
{
    for (uint32_t k = 0; k < N; k++) {
        if (logs[k].n != alone[k].n || memcmp(logs[k].bytes, alone[k].bytes, alone[k].n) != 0)
            fail_msg("generation %u says something else among others", k);
        assert_int_equal(logs[k].finish, alone[k].finish);
        assert_int_equal(logs[k].n_prompt, alone[k].n_prompt);
        assert_int_equal(logs[k].n_generated, alone[k].n_generated);
        assert_int_equal(logs[k].position, alone[k].position);
    }
}

static void eight_together_say_what_each_says_alone(void **state)
{
    (void)state;
    static const struct {
        uint32_t n_batch, n_logits;
        bool staggered;
    } sessions[] = {{512, 64, false}, {512, 8, true}, {7, 3, false}, {64, 1, true}};
    struct log *logs = malloc(N * sizeof *logs);
    bool stopped = false, ended = false;
    for (uint32_t k = 0; k < N; k++) {
        stopped |= alone[k].finish == WHIT_FINISH_STOP;
        ended |= alone[k].finish == WHIT_FINISH_END;
        assert_true(alone[k].n_generated > 0);
    }
    assert_true(stopped && ended); /* otherwise no stop text or no end was tested */
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) {
        run_together(logs, sessions[i].n_batch, sessions[i].n_logits, sessions[i].staggered);
        assert_alike(logs);
    }
    free(logs);
}

/* Two sequences want logits and a step has room for one: each must still get its own in every call. */
static void prompts_are_not_starved_of_logits(void **state)
{
    (void)state;
    static const int32_t ids[] = {TINY_BOS, 260, 270};
    whit_error error;
    for (int all_logits = 0; all_logits < 2; all_logits++) {
        whit_session *session = open_session(2, 512, 1);
        whit_sampler *samplers[2];
        whit_generation *both[2];
        size_t n_ids = all_logits ? 3 : 1, n;
        for (uint32_t i = 0; i < 2; i++) {
            whit_generate_options options = whit_generate_options_default();
            options.sequence = i;
            options.n_tokens = 50;
            options.ignore_end = true;
            options.logprobs = options.prompt_logprobs = i && all_logits;
            assert_ok(whit_sampler_open(model, NULL, &samplers[i], &error), error);
            assert_ok(whit_generation_open(session, samplers[i], ids, i ? n_ids : 1, &options, &both[i], &error),
                      error);
            if (i == 0) assert_ok(whit_generations_step(session, both, 1, NULL, &error), error);
        }
        for (size_t i = 0; i < n_ids; i++) assert_ok(whit_generations_step(session, both, 2, NULL, &error), error);
        whit_generation_ids(both[0], &n);
        assert_int_equal(n, 1 + 1 + n_ids);
        whit_generation_ids(both[1], &n);
        assert_int_equal(n, n_ids + 1);
        for (int i = 0; i < 2; i++) {
            whit_generation_close(both[i]);
            whit_sampler_close(samplers[i]);
        }
        whit_session_close(session);
    }
}

static void *run_thread(void *logs)
{
    run_together(logs, 96, 16, true);
    return NULL;
}

static void so_do_two_threads(void **state)
{
    (void)state;
    pthread_t threads[2];
    struct log *logs = malloc(2 * N * sizeof *logs);
    for (int t = 0; t < 2; t++) assert_int_equal(pthread_create(&threads[t], NULL, run_thread, logs + t * N), 0);
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    assert_alike(logs);
    assert_alike(logs + N);
    free(logs);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static void guesses_go_through_stages(void **state)
{
    (void)state;
    whit_error error;
    struct way *way = malloc(sizeof *way);
    int32_t expected[N_CTX];
    size_t n_expected = 0;
    for (uint32_t n_draft = 0; n_draft <= 12; n_draft += 4) {
        make_way(way, 3);
        struct hash_stage hash = {.last = 35};
        way->stage = whit_stage_default();
        way->stage.user = &hash;
        way->stage.apply = hash_apply;
        way->stage.accept = hash_accept;
        way->stages[0] = &way->stage;
        way->options.stages = way->stages;
        way->options.n_stages = 1;
        way->options.n_draft_tokens = n_draft;
        way->options.n_stop = 0;
        way->options.ignore_end = true;
        whit_session *session = open_session(1, 512, 16);
        whit_generation *g;
        assert_ok(whit_generation_open(session, way->sampler, way->ids, way->n_ids, &way->options, &g, &error), error);
        size_t n_open = 1, n;
        while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
        const int32_t *ids = whit_generation_ids(g, &n);
        if (!n_draft) {
            n_expected = n;
            memcpy(expected, ids, n * sizeof *ids);
            assert_int_equal(n, 150 + 35);
        }
        assert_int_equal(n, n_expected);
        assert_memory_equal(ids, expected, n * sizeof *ids);
        assert_int_equal(hash.n, 35);
        assert_int_equal(hash.n_applied, 35); /* the stage only sees tokens that were picked */
        whit_generation_close(g);
        whit_session_close(session);
        whit_sampler_close(way->sampler);
    }
    free(way);
}

static whit_status refuse(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    (void)logits;
    (void)n_vocab;
    if (--*(int *)user) return WHIT_OK;
    if (error) snprintf(error->message, sizeof error->message, "no rule allows more");
    return WHIT_ERROR_LIMIT;
}

static void what_fails_in_one_stays_there(void **state)
{
    (void)state;
    whit_error error;
    struct way *ways = malloc(3 * sizeof *ways);
    whit_session *session = open_session(3, 512, 16);
    whit_generation *all[3];
    int n_left = 10;
    static const uint32_t which[3] = {0, 1, 4};
    for (uint32_t i = 0; i < 3; i++) {
        make_way(&ways[i], which[i]);
        ways[i].options.sequence = i;
        if (i == 1) {
            ways[i].stage = whit_stage_default();
            ways[i].stage.user = &n_left;
            ways[i].stage.apply = refuse;
            ways[i].stages[0] = &ways[i].stage;
            ways[i].options.stages = ways[i].stages;
            ways[i].options.n_stages = 1;
        }
        assert_ok(whit_generation_open(session, ways[i].sampler, ways[i].ids, ways[i].n_ids, &ways[i].options, &all[i],
                                       &error),
                  error);
    }
    size_t n_open = 1;
    while (n_open) assert_ok(whit_generations_step(session, all, 3, &n_open, &error), error);
    assert_non_null(whit_generation_error(all[1]));
    assert_string_equal(whit_generation_error(all[1])->message, "no rule allows more");
    assert_int_equal(whit_generation_error(all[1])->status, WHIT_ERROR_LIMIT);
    end_log(&ways[1].log, all[1], session, 1);
    assert_int_equal(ways[1].log.finish, WHIT_FINISH_FAILED);
    assert_int_equal(ways[1].log.n_generated, 9);
    assert_int_equal(ways[1].log.position, ways[1].n_ids + 9);
    for (uint32_t i = 0; i < 3; i += 2) {
        assert_null(whit_generation_error(all[i]));
        assert_int_equal(ways[i].log.n, alone[which[i]].n);
        assert_memory_equal(ways[i].log.bytes, alone[which[i]].bytes, ways[i].log.n);
    }
    for (int i = 0; i < 3; i++) {
        whit_generation_close(all[i]);
        whit_sampler_close(ways[i].sampler);
    }
    whit_session_close(session);
    free(ways);
}

static void a_run_ends_by_time_or_with_all(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session = open_session(1, 512, 4);
    whit_generate_options options = whit_generate_options_default();
    whit_sampler *sampler;
    whit_generation *g;
    int32_t ids[8], expected[8 + 20];
    options.ignore_end = true;
    options.n_tokens = 20;
    for (int i = 0; i < 8; i++) ids[i] = 265 + i;
    for (int is_run = 0; is_run < 2; is_run++) {
        size_t n_open = 1, n, n_steps = 0;
        assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
        assert_ok(whit_session_truncate(session, 0, 0, &error), error);
        assert_ok(whit_generation_open(session, sampler, ids, 8, &options, &g, &error), error);
        while (n_open) {
            const uint64_t time_ns = n_steps == 1 ? UINT64_MAX : 0;
            if (is_run)
                assert_ok(whit_generations_run(session, &g, 1, time_ns, &n_open, &error), error);
            else
                assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
            n_steps++;
        }
        assert_int_equal(n_steps, is_run ? 2 : 20);
        const int32_t *all = whit_generation_ids(g, &n);
        assert_int_equal(n, 8 + 20);
        if (is_run)
            assert_memory_equal(all, expected, sizeof expected);
        else
            memcpy(expected, all, sizeof expected);
        whit_generation_close(g);
        whit_sampler_close(sampler);
    }
    whit_session_close(session);
}

static void a_full_context_and_a_moved_sequence_are_said(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session = open_session(1, 512, 4);
    whit_sampler *sampler;
    whit_generation *g;
    whit_generate_options options = whit_generate_options_default();
    int32_t ids[N_CTX + 1];
    size_t n_open = 1, n;
    for (int i = 0; i <= N_CTX; i++) ids[i] = 265;
    assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
    options.ignore_end = true;
    assert_int_equal(whit_generation_open(session, sampler, ids, N_CTX + 1, &options, &g, &error), WHIT_ERROR_LIMIT);
    assert_null(g);
    assert_ok(whit_generation_open(session, sampler, ids, N_CTX - 3, &options, &g, &error), error);
    while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
    assert_int_equal(whit_generation_error(g)->status, WHIT_ERROR_LIMIT);
    whit_generation_ids(g, &n);
    assert_int_equal(n, N_CTX + 1); /* the last token was picked, but has no room */
    whit_generation_close(g);
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);

    assert_ok(whit_generation_open(session, sampler, ids, 8, &options, &g, &error), error);
    assert_ok(whit_generations_step(session, &g, 1, NULL, &error), error);
    assert_ok(whit_session_truncate(session, 0, 3, &error), error);
    assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
    assert_int_equal(n_open, 0);
    assert_int_equal(whit_generation_error(g)->status, WHIT_ERROR_ARGUMENT);
    whit_generation_close(g);
    whit_sampler_close(sampler);
    whit_session_close(session);
}

/* ---- nothing is lost ------------------------------------------------------------------------- */

static volatile bool cancelled;

struct counted {
    char text[4096];
    size_t n, n_tokens, cancel_at;
};

static bool count_text(void *user, const char *text, size_t n)
{
    struct counted *counted = user;
    assert_true(counted->n + n <= sizeof counted->text);
    memcpy(counted->text + counted->n, text, n);
    counted->n += n;
    return true;
}

static bool count_token(void *user, int32_t id)
{
    struct counted *counted = user;
    (void)id;
    if (++counted->n_tokens == counted->cancel_at) cancelled = true;
    return true;
}

static whit_status run_cancelled(struct counted *counted, uint32_t n_tokens, const char *stop, size_t cancel_at)
{
    static const int32_t ids[] = {TINY_BOS, 260, 270, 280};
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    *counted = (struct counted){.cancel_at = cancel_at};
    cancelled = false;
    whit_session_options session_options = whit_session_options_default();
    session_options.n_threads = 1;
    session_options.cancel = &cancelled;
    whit_generate_options options = whit_generate_options_default();
    options.n_tokens = n_tokens;
    options.ignore_end = true;
    options.on_text = count_text;
    options.on_token = count_token;
    options.user = counted;
    options.stop = &stop;
    options.n_stop = stop != NULL;
    assert_ok(whit_session_open(model, &session_options, &session, &error), error);
    assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
    whit_generate_result result = whit_generate_result_default();
    whit_status status = whit_generate(session, sampler, ids, 4, &options, &result, &error);
    if (status != WHIT_OK) assert_int_equal(result.finish, WHIT_FINISH_CANCELLED);
    whit_sampler_close(sampler);
    whit_session_close(session);
    return status;
}

static void text_held_back_is_given_out_where_a_step_fails(void **state)
{
    (void)state;
    struct counted plain, cut;
    char stop[16] = {0};
    assert_int_equal(run_cancelled(&plain, 20, NULL, 0), WHIT_OK);
    assert_true(plain.n > 4);
    /* the last token may begin the stop text, so its text is held back until the end */
    memcpy(stop, plain.text + plain.n - 4, 4);
    strcpy(stop + 4, "never");
    assert_int_equal(run_cancelled(&cut, 200, stop, 20), WHIT_ERROR_CANCELLED);
    assert_int_equal(cut.n, plain.n);
    assert_memory_equal(cut.text, plain.text, plain.n);
}

/* Text that nobody reads accumulates until memory is exhausted; then guessed tokens must be removed, too. */
static void no_memory_leaves_the_sequence_as_the_output_says(void **state)
{
    (void)state;
    whit_error error;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .no_cache = true, .allocator = &allocator};
    whit_model *own;
    whit_session *session;
    whit_sampler *sampler;
    whit_generation *g;
    assert_ok(whit_model_open(in_folder("model.ndf"), &model_options, &own, &error), error);
    whit_session_options session_options = whit_session_options_default();
    session_options.n_ctx_tokens = 8192;
    session_options.n_threads = 1;
    session_options.n_logits = 8;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = 0;
    whit_generate_options options = whit_generate_options_default();
    options.n_tokens = 8000;
    options.n_draft_tokens = 7;
    options.ignore_end = true;
    static const int32_t ids[] = {TINY_BOS, 260, 270, 280};
    assert_ok(whit_session_open(own, &session_options, &session, &error), error);
    assert_ok(whit_sampler_open(own, &sampling, &sampler, &error), error);
    assert_ok(whit_generation_open(session, sampler, ids, 4, &options, &g, &error), error);
    failing.n_left = 0;
    size_t n_open = 1, n_ids, n_text;
    while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
    assert_int_equal(whit_generation_error(g)->status, WHIT_ERROR_MEMORY);
    whit_generation_ids(g, &n_ids);
    assert_true(n_ids > 500);
    assert_int_equal(whit_session_position(session, 0), n_ids - 1); /* the last token was not fed */
    whit_generation_text(g, &n_text);
    assert_true(n_text > 4000);
    failing.n_left = LONG_MAX;
    whit_generation_close(g);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(own);
    assert_int_equal(failing.n_live, 0);
}

static void opening_may_fail_anywhere(void **state)
{
    (void)state;
    whit_error error;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options model_options = {
        .struct_bytes = sizeof model_options, .no_cache = true, .allocator = &allocator};
    whit_model *own;
    whit_session *session;
    whit_sampler *sampler;
    whit_generation *g;
    assert_ok(whit_model_open(in_folder("model.ndf"), &model_options, &own, &error), error);
    assert_ok(whit_session_open(own, NULL, &session, &error), error);
    assert_ok(whit_sampler_open(own, NULL, &sampler, &error), error);
    struct way *way = malloc(sizeof *way);
    make_way(way, 7);
    long before = failing.n_live;
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        failing.n_left = n;
        status = whit_generation_open(session, sampler, way->ids, way->n_ids, &way->options, &g, &error);
        if (status != WHIT_OK) {
            assert_int_equal(status, WHIT_ERROR_MEMORY);
            assert_null(g);
            assert_int_equal(failing.n_live, before);
        }
        assert_true(n < 100);
    }
    failing.n_left = LONG_MAX;
    whit_generation_close(g);
    const char *absent = NULL;
    way->options.stop = &absent;
    way->options.n_stop = 1;
    assert_int_equal(whit_generation_open(session, sampler, way->ids, way->n_ids, &way->options, &g, &error),
                     WHIT_ERROR_ARGUMENT);
    way->options.n_stop = 0;
    way->ids[1] = -1;
    assert_int_equal(whit_generation_open(session, sampler, way->ids, way->n_ids, &way->options, &g, &error),
                     WHIT_ERROR_ARGUMENT);
    whit_sampler_close(way->sampler);
    free(way);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(own);
    assert_int_equal(failing.n_live, 0);
}

/* ---- log-probabilities ----------------------------------------------------------------------- */

static void logprobs_are_those_of_a_softmax(void **state)
{
    (void)state;
    static const float logits[] = {0, 1, 3, -2, 3};
    whit_logprob entries[4];
    whit_error error;
    assert_ok(whit_logprobs(logits, 5, 1, 3, entries, &error), error);
    double sum = 0; /* the sum of exp, as in the definition */
    for (int i = 0; i < 5; i++) sum += exp(logits[i]);
    assert_int_equal(entries[0].id, 1);
    assert_int_equal(entries[1].id, 2);
    assert_int_equal(entries[2].id, 4);
    assert_int_equal(entries[3].id, 1);
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)entries[i].logprob - ((double)logits[entries[i].id] - log(sum))) < 1e-6);
    assert_int_equal(whit_logprobs(logits, 5, 5, 0, entries, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_logprobs(logits, 5, 0, 6, entries, &error), WHIT_ERROR_ARGUMENT);
    static const float bad[] = {0, NAN};
    assert_int_equal(whit_logprobs(bad, 2, 0, 0, entries, &error), WHIT_ERROR_NUMERIC);
}

/* Every token of a prompt gets its log-probability from the logits before it, however the prompt is split into
 * steps. */
static void a_prompt_has_logprobs_too(void **state)
{
    (void)state;
    enum { N_IDS = 40, N_TOP = 2 };
    whit_error error;
    whit_session *session = open_session(1, 512, N_IDS);
    whit_logprob expected[N_IDS][1 + N_TOP], first_pick[1 + N_TOP] = {{0}};
    whit_step_token tokens[N_IDS];
    uint32_t n_vocab = whit_model_vocab_size(model);
    int32_t ids[N_IDS];
    for (int i = 0; i < N_IDS; i++) {
        ids[i] = 259 + i * 11 % 45;
        tokens[i] = (whit_step_token){.id = ids[i], .want_logits = true};
    }
    assert_ok(whit_session_step(session, tokens, N_IDS, &error), error);
    for (size_t i = 1; i < N_IDS; i++)
        assert_ok(whit_logprobs(whit_session_logits(session, i - 1), n_vocab, ids[i], N_TOP, expected[i], &error),
                  error);
    whit_session_close(session);
    for (uint32_t n_logits = 1; n_logits <= N_IDS; n_logits += 13) {
        whit_sampler *sampler;
        whit_generation *g;
        size_t n_open = 1;
        session = open_session(1, 512, n_logits);
        whit_generate_options options = whit_generate_options_default();
        options.n_tokens = 2;
        options.ignore_end = true;
        options.logprobs = options.prompt_logprobs = true;
        options.n_top_logprobs = N_TOP;
        assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
        assert_ok(whit_generation_open(session, sampler, ids, N_IDS, &options, &g, &error), error);
        while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
        assert_null(whit_generation_error(g));
        assert_null(whit_generation_prompt_logprobs(g, 0));
        assert_null(whit_generation_prompt_logprobs(g, N_IDS));
        for (size_t i = 1; i < N_IDS; i++)
            assert_memory_equal(whit_generation_prompt_logprobs(g, i), expected[i], sizeof expected[i]);
        if (n_logits > 1) assert_memory_equal(whit_generation_logprobs(g, 0), first_pick, sizeof first_pick);
        memcpy(first_pick, whit_generation_logprobs(g, 0), sizeof first_pick);
        whit_generation_close(g);
        whit_sampler_close(sampler);
        whit_session_close(session);
    }
}

static void further_end_tokens_end(void **state)
{
    (void)state;
    whit_error error;
    struct way *way = malloc(sizeof *way);
    make_way(way, 3); /* greedy sampling */
    way->options.n_stop = 0;
    int32_t picked[2];
    for (int run = 0; run < 2; run++) {
        whit_session *session = open_session(1, 512, 32);
        whit_generation *g;
        size_t n_open = 1, n;
        way->options.on_token = NULL;
        way->options.on_text = NULL;
        way->options.ignore_end = false;
        way->options.n_draft_tokens = 5;
        assert_ok(whit_generation_open(session, way->sampler, way->ids, way->n_ids, &way->options, &g, &error), error);
        while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
        const int32_t *ids = whit_generation_ids(g, &n);
        if (!run) {
            assert_true(n > way->n_ids + 2);
            memcpy(picked, ids + way->n_ids, sizeof picked);
            assert_int_not_equal(picked[0], picked[1]);
            way->options.end_ids = &picked[1];
            way->options.n_end_ids = 1;
        } else {
            whit_generate_result result = whit_generate_result_default();
            whit_generation_result(g, &result);
            assert_int_equal(n, way->n_ids + 1);
            assert_int_equal(result.finish, WHIT_FINISH_END);
        }
        whit_generation_close(g);
        whit_session_close(session);
        whit_sampler_reset(way->sampler);
    }
    whit_sampler_close(way->sampler);
    free(way);
}

/* ---- the group ------------------------------------------------------------------------------- */

static void make_adapter(const char *name, const adapter_sample *sample, whit_adapter **adapter)
{
    whit_error error;
    whit_buf image = {0};
    assert_true(adapter_sample_build(sample, model->file, &image, &error));
    assert_ok(whit_ndf_write_loose(in_folder(name), WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error),
              error);
    whit_buf_free(&image);
    assert_ok(whit_adapter_open(model, in_folder(name), adapter, &error), error);
}

static int set_up(void **state)
{
    if (make_folder(state) != 0) return -1;
    make_model("model.ndf", 1);
    model = open_model("model.ndf");
    make_adapter("first.ndf", &(adapter_sample){.seed = 7, .rank = 5, .size = 0.2f}, &adapters[0]);
    make_adapter("second.ndf", &(adapter_sample){.seed = 8, .rank = 18, .every_second = true, .size = 0.1f},
                 &adapters[1]);
    for (uint32_t k = 0; k < N; k++) run_alone(&alone[k], k);
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < 2; i++) whit_adapter_close(adapters[i]);
    whit_model_close(model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_together_say_what_each_says_alone),
        cmocka_unit_test(so_do_two_threads),
        cmocka_unit_test(prompts_are_not_starved_of_logits),
        cmocka_unit_test(guesses_go_through_stages),
        cmocka_unit_test(what_fails_in_one_stays_there),
        cmocka_unit_test(a_run_ends_by_time_or_with_all),
        cmocka_unit_test(a_full_context_and_a_moved_sequence_are_said),
        cmocka_unit_test(text_held_back_is_given_out_where_a_step_fails),
        cmocka_unit_test(no_memory_leaves_the_sequence_as_the_output_says),
        cmocka_unit_test(opening_may_fail_anywhere),
        cmocka_unit_test(logprobs_are_those_of_a_softmax),
        cmocka_unit_test(a_prompt_has_logprobs_too),
        cmocka_unit_test(further_end_tokens_end),
    };
    return cmocka_run_group_tests_name("generation", tests, set_up, tear_down);
}
