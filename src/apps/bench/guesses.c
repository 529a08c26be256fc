/* SPDX-License-Identifier: MIT
 * Measures speculative decoding, in which guessed tokens are verified together. The model generates its likeliest text
 * after random tokens, since guesses can only be right if the text follows from the model. */
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "runtime/generation.h"
#include "whit/steps.h"

whit_status bench_draft_open(const bench_test *test, const whit_model *model, whit_model **opened,
                             const whit_model **drafter, whit_error *error)
{
    *opened = NULL;
    *drafter = strcmp(test->draft, "mtp") == 0 ? model : NULL;
    if (*drafter || strcmp(test->draft, "none") == 0) return WHIT_OK;
    WHIT_TRY(whit_model_open(test->draft, NULL, opened, error));
    *drafter = *opened;
    return WHIT_OK;
}

/* Runs the generation to its end. Adds the time, steps, guesses, multiply-adds, and the bytes that the model's own
 * passes read (not those of a draft model) to the sample. */
static whit_status generate(whit_session *session, whit_generation *g, const bench_count *count, bench_sample *sample,
                            whit_error *error)
{
    for (size_t n_open = 1; n_open;) {
        whit_step_report report = whit_step_report_default();
        const uint64_t from_ns = whit_now_ns();
        WHIT_TRY(whit_generations_step_within(session, &g, 1, 0, &report, &n_open, error));
        sample->seconds += (double)(whit_now_ns() - from_ns) * 1e-9;
        const double n_rows = report.n_columns + report.n_prompt_tokens;
        sample->steps++;
        sample->n_guessed += report.n_guessed;
        sample->n_right += report.n_guessed_right;
        sample->bytes += count->pass_bytes + n_rows * count->row_bytes +
            bench_cache_bytes(count->kv, (double)whit_session_position(session, 0));
        sample->macs += n_rows * count->layer_macs;
        sample->all_macs += n_rows * (count->layer_macs + count->head_macs);
    }
    return WHIT_OK;
}

whit_status bench_draft_round(whit_session *session, const bench_test *test, const bench_count *count, int32_t last,
                              bench_sample *sample, whit_error *error)
{
    const uint32_t depth = whit_session_position(session, 0);
    whit_sampler *sampler = NULL;
    whit_generation *g = NULL;
    whit_sampler_options sampling = whit_sampler_options_default();
    whit_generate_options options = whit_generate_options_default();
    int32_t *ids = malloc((depth + 1) * sizeof *ids);
    if (!ids) return whit_fail_memory(error, "the tokens", depth + 1);
    memcpy(ids, whit_session_tokens_of(session, 0), depth * sizeof *ids);
    ids[depth] = last;
    sampling.temperature = 0;
    options.n_present = depth;
    options.n_tokens = test->n_tokens;
    options.n_draft_tokens = test->n_guesses;
    options.ignore_end = true;
    whit_status status = whit_sampler_open(session->model, &sampling, &sampler, error);
    if (status == WHIT_OK) status = whit_generation_open(session, sampler, ids, depth + 1, &options, &g, error);
    if (status == WHIT_OK) status = generate(session, g, count, sample, error);
    sample->tokens += test->n_tokens;
    whit_generation_close(g);
    whit_sampler_close(sampler);
    free(ids);
    return status;
}
