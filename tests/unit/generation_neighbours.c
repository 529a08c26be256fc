/* SPDX-License-Identifier: MIT
 * Tests that generations in one session do not affect each other: logits that are not finite end only their own
 * answer, and prompts advance however many other generations run. */
#include "test.h"

#include "adapter_run.h"
#include "adapter_sample.h"
#include "format/ndf_append.h"

enum { N_PROMPT = 70, N_ANSWER = 40, N_TOP = 4, N_ALL = N_PROMPT + N_ANSWER };

static whit_model *model;
static whit_adapter *wild; /* an adapter whose products overflow */

struct answer {
    int32_t ids[N_ALL];
    whit_logprob logprobs[N_ANSWER * (1 + N_TOP)];
};

/* A greedy generation in one sequence of a session. */
struct part {
    whit_sampler *sampler;
    whit_generation *generation;
};

static whit_session *open_session(whit_kv_type kv, uint32_t window, uint32_t n_sequences, uint32_t n_batch)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_sequences = n_sequences;
    options.n_ctx_tokens = 192;
    options.n_batch_tokens = n_batch;
    options.n_logits = n_sequences + 2;
    options.n_threads = 2;
    options.kv = kv;
    options.n_kv_window = window;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

static void open_part(whit_session *session, uint32_t sequence, uint32_t which, struct part *part)
{
    whit_error error;
    int32_t ids[N_PROMPT];
    whit_generate_options options = whit_generate_options_default();
    for (uint32_t i = 0; i < N_PROMPT; i++) ids[i] = token_at(which, i);
    options.sequence = sequence;
    options.n_tokens = N_ANSWER;
    options.ignore_end = true;
    options.logprobs = true;
    options.n_top_logprobs = N_TOP;
    assert_ok(whit_sampler_open(model, NULL, &part->sampler, &error), error);
    assert_ok(whit_generation_open(session, part->sampler, ids, N_PROMPT, &options, &part->generation, &error), error);
}

static void close_part(struct part *part)
{
    whit_generation_close(part->generation);
    whit_sampler_close(part->sampler);
}

static void step_all(whit_session *session, const struct part *parts, size_t n)
{
    whit_error error;
    whit_generation *all[8];
    for (size_t i = 0; i < n; i++) all[i] = parts[i].generation;
    assert_ok(whit_generations_step(session, all, n, NULL, &error), error);
}

static void read_answer(const whit_generation *g, struct answer *answer)
{
    size_t n;
    assert_true(whit_generation_finished(g));
    assert_null(whit_generation_error(g));
    const int32_t *ids = whit_generation_ids(g, &n);
    assert_int_equal(n, N_ALL);
    memcpy(answer->ids, ids, sizeof answer->ids);
    for (size_t i = 0; i < N_ANSWER; i++)
        memcpy(answer->logprobs + i * (1 + N_TOP), whit_generation_logprobs(g, i),
               (1 + N_TOP) * sizeof *answer->logprobs);
}

static void answer_alone(whit_kv_type kv, uint32_t window, uint32_t which, struct answer *answer)
{
    whit_session *session = open_session(kv, window, 1, 512);
    struct part part;
    open_part(session, 0, which, &part);
    while (!whit_generation_finished(part.generation)) step_all(session, &part, 1);
    read_answer(part.generation, answer);
    close_part(&part);
    whit_session_close(session);
}

static void assert_damaged(const struct part *part)
{
    assert_true(whit_generation_finished(part->generation));
    assert_non_null(whit_generation_error(part->generation));
    assert_int_equal(whit_generation_error(part->generation)->status, WHIT_ERROR_NUMERIC);
    assert_null(strchr(whit_generation_error(part->generation)->message, '/')); /* the message names no path */
}

static void assert_answers(const struct part *part, const struct answer *expected)
{
    struct answer found;
    read_answer(part->generation, &found);
    assert_memory_equal(&found, expected, sizeof found);
}

/* Damages sequence 1 in its prompt or in the middle of its answer; after that it answers another prompt. The others
 * must be unaffected. */
static void damage_beside_others(whit_kv_type kv, uint32_t window, uint32_t n_batch, bool in_prompt,
                                 const struct answer expected[3])
{
    whit_error error;
    whit_session *session = open_session(kv, window, 3, n_batch);
    struct part parts[3];
    const whit_mount mount = {wild, 1};
    if (in_prompt) assert_ok(whit_session_mount(session, 1, &mount, 1, &error), error);
    for (uint32_t i = 0; i < 3; i++) open_part(session, i, i, &parts[i]);
    size_t n_ids = 0;
    while (!in_prompt && n_ids < N_PROMPT + 5) {
        step_all(session, parts, 3);
        whit_generation_ids(parts[1].generation, &n_ids);
    }
    if (!in_prompt) assert_ok(whit_session_mount(session, 1, &mount, 1, &error), error);
    while (!whit_generation_finished(parts[1].generation)) step_all(session, parts, 3);
    assert_damaged(&parts[1]);
    if (!in_prompt) { /* tokens before the damage remain */
        const int32_t *ids = whit_generation_ids(parts[1].generation, &n_ids);
        assert_memory_equal(ids, expected[1].ids, n_ids * sizeof *ids);
    }
    close_part(&parts[1]);
    assert_ok(whit_session_truncate(session, 1, 0, &error), error);
    assert_ok(whit_session_mount(session, 1, NULL, 0, &error), error);
    open_part(session, 1, 1, &parts[1]);
    while (!whit_generation_finished(parts[1].generation)) step_all(session, parts, 3);
    for (uint32_t i = 0; i < 3; i++)
        while (!whit_generation_finished(parts[i].generation)) step_all(session, parts, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_answers(&parts[i], &expected[i]);
        close_part(&parts[i]);
    }
    whit_session_close(session);
}

static void damage_stays_with_its_own(void **state)
{
    (void)state;
    struct answer *expected = malloc(3 * sizeof *expected);
    for (int kv = 0; kv < WHIT_KV_TYPES; kv++)
        for (uint32_t window = 0; window < 2; window++) {
            for (uint32_t i = 0; i < 3; i++) answer_alone((whit_kv_type)kv, window, i, &expected[i]);
            for (int run = 0; run < 4; run++)
                damage_beside_others((whit_kv_type)kv, window, run % 2 ? 7 : 512, run < 2, expected);
        }
    free(expected);
}

/* With as many generating sequences as a step has tokens, or more, a prompt must still advance by a token in every
 * call. */
static void prompts_advance_in_every_call(void **state)
{
    (void)state;
    for (uint32_t n_batch = 1; n_batch <= 4; n_batch++) {
        whit_session *session = open_session(WHIT_KV_F16, 0, 4, n_batch);
        struct part parts[4];
        size_t n_ids;
        for (uint32_t i = 0; i < 2; i++) open_part(session, i, i, &parts[i]);
        for (uint32_t i = 0; i < 2; i++) do {
                step_all(session, parts, 2);
                whit_generation_ids(parts[i].generation, &n_ids);
            } while (n_ids == N_PROMPT);
        for (uint32_t i = 2; i < 4; i++) open_part(session, i, i, &parts[i]);
        for (uint32_t call = 1; call <= 10; call++) {
            size_t n_before[2], n_after;
            for (int i = 0; i < 2; i++) whit_generation_ids(parts[i].generation, &n_before[i]);
            step_all(session, parts, 4);
            for (int i = 0; i < 2; i++) {
                whit_generation_ids(parts[i].generation, &n_after);
                assert_int_equal(n_after, n_before[i] + 1);
            }
            for (uint32_t i = 2; i < 4; i++) assert_true(whit_session_position(session, i) >= call);
        }
        for (int i = 0; i < 4; i++) close_part(&parts[i]);
        whit_session_close(session);
    }
}

static int set_up(void **state)
{
    whit_error error;
    whit_buf image = {0};
    if (make_folder(state) != 0) return -1;
    make_model("model.ndf", 1);
    model = open_model("model.ndf");
    assert_true(
        adapter_sample_build(&(adapter_sample){.seed = 7, .rank = 5, .size = 1e30f}, model->file, &image, &error));
    assert_ok(whit_ndf_write_loose(in_folder("wild.ndf"), WHIT_NDF_ADAPTER, "wild", image.data, image.size_bytes, NULL,
                                   &error),
              error);
    whit_buf_free(&image);
    wild = open_adapter(model, "wild.ndf");
    return 0;
}

static int tear_down(void **state)
{
    whit_adapter_close(wild);
    whit_model_close(model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_stays_with_its_own),
        cmocka_unit_test(prompts_advance_in_every_call),
    };
    return cmocka_run_group_tests_name("generation_neighbours", tests, set_up, tear_down);
}
