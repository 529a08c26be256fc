/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "cli/score.h"
#include "kernels/math.h"

/* Normalisation of a row of logits to probabilities: log p(i) = logits[i] - offset. */
typedef struct softmax {
    double offset;
    size_t top; /* index of the largest logit, the first one if several are equal */
} softmax;

static softmax softmax_of(const float *logits, size_t n_vocab)
{
    size_t top = 0;
    for (size_t i = 1; i < n_vocab; i++)
        if (logits[i] > logits[top]) top = i;
    double sum = 0;
    for (size_t i = 0; i < n_vocab; i++) sum += whit_exp_f64((double)logits[i] - (double)logits[top]);
    return (softmax){(double)logits[top] + whit_log_f64(sum), top};
}

bool cli_score_add(cli_score *score, const float *logits, const float *base_logits, size_t n_vocab, int32_t target)
{
    softmax model = softmax_of(logits, n_vocab);
    double nll = model.offset - (double)logits[target];
    if (base_logits) {
        if (score->n == score->capacity) {
            size_t capacity = score->capacity ? 2 * score->capacity : 1024;
            double *larger = realloc(score->divergences, capacity * sizeof *larger);
            if (!larger) return false;
            score->divergences = larger;
            score->capacity = capacity;
        }
        softmax base = softmax_of(base_logits, n_vocab);
        double divergence = 0;
        for (size_t i = 0; i < n_vocab; i++) {
            double log_p = (double)base_logits[i] - base.offset;
            double log_q = (double)logits[i] - model.offset;
            divergence += whit_exp_f64(log_p) * (log_p - log_q);
        }
        score->divergences[score->n] = divergence;
        score->base_sum += base.offset - (double)base_logits[target];
        score->n_same_top += base.top == model.top;
        double change = whit_exp_f64(-nll) - whit_exp_f64((double)base_logits[target] - base.offset);
        score->squared_change += change * change;
    }
    score->sum += nll;
    score->sum_squares += nll * nll;
    score->n_right += model.top == (size_t)target;
    score->n++;
    return true;
}

void cli_score_free(cli_score *score)
{
    free(score->divergences);
    *score = (cli_score){0};
}

double cli_quantile(const double *sorted, size_t n, double q)
{
    if (!n) return 0;
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n) return sorted[n - 1];
    double share = at - (double)below;
    return sorted[below] * (1 - share) + sorted[below + 1] * share;
}
