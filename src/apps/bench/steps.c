/* SPDX-License-Identifier: MIT
 * Runs the steps of a test, which are the same in a worker's process and on several ranks. */
#include "bench/bench.h"

#include <stdlib.h>

whit_status bench_steps_open(const bench_test *test, const whit_model *model, const whit_model *drafter,
                             bench_steps *steps, whit_error *error)
{
    *steps = (bench_steps){.test = test, .rng = {1}};
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = test->depth + test->n_tokens;
    options.n_batch_tokens = test->n_batch_tokens > test->columns ? test->n_batch_tokens : test->columns;
    options.n_sequences = test->columns;
    options.n_threads = test->n_threads;
    options.kv = test->kv;
    options.act = test->act;
    options.cpu = test->cpu;
    options.exact_head = test->exact_head;
    options.cancel = test->stop;
    if (test->draft) {
        options.n_logits = 1 + test->n_guesses_max;
        options.n_ctx_tokens += options.n_logits;
    }
    steps->tokens = malloc(options.n_batch_tokens * sizeof *steps->tokens);
    if (!steps->tokens) return whit_fail_memory(error, "the tokens", options.n_batch_tokens);
    return whit_session_open_drafting(model, &options, drafter, &steps->session, error);
}

int32_t bench_steps_id(bench_steps *steps)
{
    return (int32_t)whit_rng_below(&steps->rng, whit_model_vocab_size(steps->session->model));
}

whit_status bench_steps_pass(bench_steps *steps, uint32_t n, bool wants, whit_error *error)
{
    const bool is_decode = steps->test->is_decode;
    for (uint32_t i = 0; i < n; i++)
        steps->tokens[i] = (whit_step_token){.sequence = is_decode ? i : 0,
                                             .want_logits = wants && (is_decode || i + 1 == n),
                                             .n_top = 1,
                                             .id = bench_steps_id(steps)};
    return whit_session_step(steps->session, steps->tokens, n, error);
}

whit_status bench_steps_fill(bench_steps *steps, whit_error *error)
{
    const bench_test *t = steps->test;
    for (uint32_t s = 0; s < t->columns; s++)
        for (uint32_t at = whit_session_position(steps->session, s); at < t->depth;) {
            uint32_t n = t->depth - at < t->n_batch_tokens ? t->depth - at : t->n_batch_tokens;
            for (uint32_t i = 0; i < n; i++)
                steps->tokens[i] = (whit_step_token){.sequence = s, .id = bench_steps_id(steps)};
            WHIT_TRY(whit_session_step(steps->session, steps->tokens, n, error));
            at += n;
        }
    return WHIT_OK;
}

whit_status bench_steps_forget(bench_steps *steps, whit_error *error)
{
    for (uint32_t s = 0; s < steps->test->columns; s++)
        WHIT_TRY(whit_session_truncate(steps->session, s, steps->test->depth, error));
    return bench_steps_fill(steps, error); /* computes the positions again that sliding windows have dropped */
}

void bench_steps_close(bench_steps *steps)
{
    whit_session_close(steps->session);
    free(steps->tokens);
    *steps = (bench_steps){0};
}
