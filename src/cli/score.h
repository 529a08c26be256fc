/* SPDX-License-Identifier: MIT
 * Computes the sums for perplexity: likelihoods of next tokens, and the divergence of one model from another.
 *
 * All sums are double, added in one order, with the engine's own exp and log, so that a figure is the same on every
 * machine. */
#ifndef WHIT_CLI_SCORE_H
#define WHIT_CLI_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_score {
    uint64_t n;              /* predictions scored */
    double sum, sum_squares; /* sums over negative log-likelihoods, nats */
    uint64_t n_right;        /* number of predictions whose likeliest token was right */
    /* Only with a base model: */
    double base_sum;
    double squared_change; /* summed squared change of the target tokens' probabilities */
    uint64_t n_same_top;
    double *divergences; /* (n) KL of the base from the model */
    size_t capacity;
} cli_score;

/* Scores the prediction of `target` by (n_vocab) logits, and, if base_logits is not NULL, the divergence KL(base ||
 * model) too. The result is false if memory runs out. */
bool cli_score_add(cli_score *score, const float *logits, const float *base_logits, size_t n_vocab, int32_t target);
void cli_score_free(cli_score *score);

/* Returns the q-quantile of n sorted numbers, linearly interpolated. */
double cli_quantile(const double *sorted, size_t n, double q);

#endif
