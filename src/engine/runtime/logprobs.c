/* SPDX-License-Identifier: MIT
 * Computes log-probabilities of tokens: the log softmax of logits, in double precision and token order, so that they
 * are the same on every machine. */
#include "base/fpenv.h"
#include "base/status.h"
#include "runtime/elementary.h"

/* Returns ln of the sum of e^logit; `greatest` is the greatest logit. The result is not finite if a logit is NaN or
 * +infinity. */
static double log_sum(const float *logits, uint32_t n, double greatest)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += whit_quick_exp((double)logits[i] - greatest);
    return sum - sum == 0 ? greatest + whit_quick_log(sum) : sum;
}

/* Finds the n greatest logits and writes them to `top`, greatest first, by insertion, because n is small. */
static void find_top(const float *logits, uint32_t n_vocab, uint32_t n, whit_logprob *top)
{
    uint32_t found = 0;
    for (uint32_t id = 0; id < n_vocab; id++) {
        if (found == n && !(logits[id] > top[n - 1].logprob)) continue;
        uint32_t at = found < n ? found++ : n - 1;
        for (; at > 0 && logits[id] > top[at - 1].logprob; at--) top[at] = top[at - 1];
        top[at] = (whit_logprob){(int32_t)id, logits[id]};
    }
}

whit_status whit_logprobs(const float *logits, uint32_t n_vocab, int32_t id, uint32_t n_top, whit_logprob *entries,
                          whit_error *error)
{
    if (!logits || !entries)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_logprobs: 'logits' or 'entries' is NULL");
    if (id < 0 || (uint32_t)id >= n_vocab || n_top > n_vocab)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "token %d, or the %u likeliest tokens, are not in a vocabulary of %u tokens", id, n_top,
                         n_vocab);
    whit_fpenv caller = whit_fpenv_enter();
    float greatest = logits[0];
    for (uint32_t i = 1; i < n_vocab; i++) greatest = logits[i] > greatest ? logits[i] : greatest;
    double all = log_sum(logits, n_vocab, (double)greatest);
    if (n_top) find_top(logits, n_vocab, n_top, entries + 1);
    entries[0] = (whit_logprob){id, (float)((double)logits[id] - all)};
    for (uint32_t i = 1; i <= n_top; i++) entries[i].logprob = (float)((double)entries[i].logprob - all);
    whit_fpenv_leave(caller);
    if (all - all == 0) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_NUMERIC,
                     "the logits are not finite: the model's weights are damaged, or an adapter is too strong");
}
