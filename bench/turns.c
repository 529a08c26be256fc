/* SPDX-License-Identifier: MIT
 * Measures the turns of a conversation after a long prefix. The time to each turn's first token includes restoring the
 * prefix and recomputing tokens; it is compared with the time of a step that adds as many new tokens at the end of the
 * sequence.
 *
 *     bench_turns FILE.ndf [PREFIX] */
#include "rounds.h"

#include "base/clock.h"

#include <string.h>

enum { PREFIX = 2000, N_TURNS = 20, USER = 40, ANSWER = 20, LOST = 8, MARKS_MB = 800, IDS_MAX = 32768 };

static int32_t ids[IDS_MAX];

/* Feeds tokens [from, to) in steps of at most 512, with logits for the last token only. Returns milliseconds. */
static double feed_tokens(whit_session *session, uint32_t from, uint32_t to)
{
    static whit_step_token tokens[512];
    const uint64_t start = whit_now_ns();
    for (uint32_t at = from, n; at < to; at += n) {
        n = to - at < 512 ? to - at : 512;
        for (uint32_t i = 0; i < n; i++)
            tokens[i] = (whit_step_token){.id = ids[at + i], .want_logits = at + i == to - 1, .n_top = 1};
        must(whit_session_step(session, tokens, n, &error));
    }
    return (double)(whit_now_ns() - start) / 1e6;
}

int main(int argc, char **argv)
{
    double ratios[N_TURNS], first[N_TURNS], alone[N_TURNS];
    whit_model *model;
    whit_session *session;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_turns FILE.ndf [PREFIX]\n");
        return 2;
    }
    const uint32_t n_prefix = argc > 2 ? (uint32_t)atoi(argv[2]) : PREFIX;
    if (n_prefix < 1 || n_prefix > IDS_MAX - (N_TURNS + 2) * (USER + ANSWER)) return 2;
    must(whit_model_open(argv[1], NULL, &model, &error));
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = n_prefix + (N_TURNS + 2) * (USER + ANSWER);
    options.state_bytes = (uint64_t)MARKS_MB << 20;
    must(whit_session_open(model, &options, &session, &error));
    for (uint32_t i = 0; i < IDS_MAX; i++) ids[i] = (int32_t)(i * 7919u % 30000);
    uint32_t n = n_prefix, n_again_max = 0;
    feed_tokens(session, 0, n);
    must(whit_session_mark(session, 0, &error));
    for (int turn = 0; turn < N_TURNS; turn++) {
        uint32_t n_common = n, n_present;
        if (turn && turn % 3 == 0) { /* as if the template dropped the beginning of the last answer */
            n_common = n - ANSWER;
            memmove(ids + n_common, ids + n_common + LOST, (IDS_MAX - n_common - LOST) * sizeof *ids);
            n -= LOST;
        }
        n += USER;
        const uint64_t start = whit_now_ns();
        must(whit_session_reuse(session, 0, ids, n, &n_present, &error));
        first[turn] = (double)(whit_now_ns() - start) / 1e6 + feed_tokens(session, n_present, n);
        /* n_present may exceed n_common: the `alone` step of the turn before had the same ids as this turn, and may
         * have left a whole block and a checkpoint. */
        if (n_common > n_present + n_again_max) n_again_max = n_common - n_present;
        must(whit_session_mark(session, 0, &error));
        const uint32_t n_new = n - n_common;
        alone[turn] = feed_tokens(session, n, n + n_new); /* the same number of tokens at the end of the sequence */
        ratios[turn] = first[turn] / alone[turn];
        must(whit_session_reuse(session, 0, ids, n + 1, &n_present, &error));
        for (const uint32_t end = n + ANSWER; n < end; n_present = ++n) feed_tokens(session, n_present, n + 1);
        must(whit_session_mark(session, 0, &error));
    }
    const double ratio = median(ratios, N_TURNS); /* sorts `ratios`: its first and last items are the extremes */
    printf("prefix of %u tokens, %d turns: first token after %.1f ms, new tokens alone %.1f ms, ratio %.2f (%.2f to "
           "%.2f); at most %u tokens computed again\n",
           n_prefix, N_TURNS, median(first, N_TURNS), median(alone, N_TURNS), ratio, ratios[0], ratios[N_TURNS - 1],
           n_again_max);
    whit_session_close(session);
    whit_model_close(model);
    return 0;
}
