/* SPDX-License-Identifier: MIT
 * Compares a prompt for which every token's hidden state is computed with a prompt for which only the last token's is.
 * Families whose last layers share keys and values save time in the second case. Also measures the time of a longer
 * prompt until the logits of its first new token.
 *
 *     bench_rows FILE.ndf [ROUNDS] */
#include "rounds.h"

#include "base/clock.h"

enum { PROMPT_TOKENS = 512, LONG_TOKENS = 1000, ROUNDS_MAX = 101 };

/* Opens a session whose steps may each return up to n_wanted rows of logits or vectors. */
static whit_session *open_session(const whit_model *model, bool only_vectors, uint32_t n_wanted)
{
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = LONG_TOKENS;
    options.n_batch_tokens = PROMPT_TOKENS;
    options.n_logits = n_wanted;
    options.only_vectors = only_vectors;
    must(whit_session_open(model, &options, &session, &error));
    return session;
}

/* Returns the seconds that n tokens need in steps of PROMPT_TOKENS. all: every token's row is wanted; else only the
 * last. */
static double run_prompt(whit_session *session, uint32_t n, bool all)
{
    static whit_step_token tokens[LONG_TOKENS];
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (whit_step_token){.id = (int32_t)(i * 7919 % 30000), .want_logits = all || i == n - 1, .n_top = 1};
    const uint64_t start = whit_now_ns();
    for (uint32_t at = 0, k; at < n; at += k) {
        k = n - at < PROMPT_TOKENS ? n - at : PROMPT_TOKENS;
        must(whit_session_step(session, tokens + at, k, &error));
    }
    const uint64_t ns = whit_now_ns() - start;
    must(whit_session_truncate(session, 0, 0, &error));
    return (double)ns / 1e9;
}

int main(int argc, char **argv)
{
    static double all[ROUNDS_MAX], last[ROUNDS_MAX], ratios[ROUNDS_MAX], whole[ROUNDS_MAX];
    whit_model *model;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_rows FILE.ndf [ROUNDS]\n");
        return 2;
    }
    size_t n_rounds = argc > 2 ? (size_t)atoi(argv[2]) : 5;
    if (n_rounds < 1 || n_rounds > ROUNDS_MAX) n_rounds = 5;
    must(whit_model_open(argv[1], NULL, &model, &error));
    whit_session *vectors = open_session(model, true, PROMPT_TOKENS), *text = open_session(model, false, 1);
    for (int round = -1; round < (int)n_rounds; round++) { /* round -1 is not counted, because memory is new in it */
        const size_t r = round < 0 ? 0 : (size_t)round;
        all[r] = run_prompt(vectors, PROMPT_TOKENS, true);
        last[r] = run_prompt(vectors, PROMPT_TOKENS, false);
        ratios[r] = all[r] / last[r];
        whole[r] = run_prompt(text, LONG_TOKENS, false);
    }
    printf("%d tokens, all rows wanted: %.0f tokens/s, the last alone: %.0f tokens/s, ratio %.2f\n", PROMPT_TOKENS,
           PROMPT_TOKENS / median(all, n_rounds), PROMPT_TOKENS / median(last, n_rounds), median(ratios, n_rounds));
    printf("%d tokens to the first token's logits: %.3f s\n", LONG_TOKENS, median(whole, n_rounds));
    whit_session_close(vectors);
    whit_session_close(text);
    whit_model_close(model);
    return 0;
}
