/* SPDX-License-Identifier: MIT
 * Computes confidence intervals, at 95 %, of the figures that verbs measure. */
#ifndef WHIT_CLI_INTERVAL_H
#define WHIT_CLI_INTERVAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct cli_interval {
    double value, low, high;
    bool is_known; /* false: `low` and `high` are unknown, for example with a single item */
} cli_interval;

/* Returns the mean of units, each a sum over `counts[i]` things (a window's sum over its tokens), and its interval as
 * if units were drawn independently: the ratio estimator's variance n / (n - 1) sum (x_i - mean c_i)^2 / (sum c_i)^2
 * (Cochran 1977, 6.3) times Student's t of n - 1 degrees. Units, not things, are counted, because neighbours within a
 * unit depend on each other. Differences of two subjects on the same units give the paired interval. */
cli_interval cli_interval_mean(const double *sums, const double *counts, size_t n);
/* Returns the share of n items with Wilson's interval (Wilson 1927), which stays within 0 and 1. */
cli_interval cli_interval_share(size_t n_right, size_t n);
/* Returns the quotient of two means of independent samples; its interval is normal on the logarithm's scale (the delta
 * method). It is known only if both means are positive. */
cli_interval cli_interval_quotient(cli_interval a, cli_interval b);
/* Returns exp of the value and of its bounds. */
cli_interval cli_interval_exp(cli_interval x);
/* Multiplies the value and both bounds by a factor. */
cli_interval cli_interval_scale(cli_interval x, double factor);
/* Returns half of the width, or -1 if it is not known. */
double cli_interval_half(cli_interval x);

/* Sets `key` to the value and `key`_95 to [low, high], or null if not known. */
void cli_interval_set(json_t *object, const char *key, cli_interval x);
/* Returns half of the width of the interval that cli_interval_set stored under this key; -1 if it is unknown. */
double cli_interval_read_half(const json_t *object, const char *key);

#endif
