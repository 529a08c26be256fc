/* SPDX-License-Identifier: MIT
 * Sums the measures of a model's predictions: negative log-likelihoods, from which the perplexity follows, and the
 * divergence from another model.
 *
 * All sums are double and are added in the order of the predictions, and exp and log are the engine's own functions, so
 * that a figure is the same on every machine. */
#ifndef WHIT_CLI_SCORE_H
#define WHIT_CLI_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_score {
    uint64_t n;              /* number of scored predictions */
    double sum, sum_squares; /* sums of the negative log-likelihoods, in nats, and of their squares */
    uint64_t n_right;        /* number of predictions whose most likely token was the target */
    /* The members below are set only with a base model. base_sum: its negative log-likelihoods, summed; n_same_top:
     * predictions for which both models have the same most likely token. */
    double base_sum;
    double squared_change; /* sum of squared differences between the models' probabilities of the target */
    uint64_t n_same_top;
    double *divergences; /* (n) KL(base || model) of each prediction, in nats */
    size_t capacity;
} cli_score;

/* Scores a prediction, a row of n_vocab logits, against the token `target` that follows. If base_logits is not NULL,
 * also compares the prediction with that of the base model. Returns false if memory runs out. */
bool cli_score_add(cli_score *score, const float *logits, const float *base_logits, size_t n_vocab, int32_t target);
void cli_score_free(cli_score *score);

/* Returns the q-quantile, q in [0, 1], of n numbers in ascending order, linearly interpolated; 0 if n is 0. */
double cli_quantile(const double *sorted, size_t n, double q);

#endif
