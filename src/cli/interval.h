/* SPDX-License-Identifier: MIT
 * Computes 95 % confidence intervals for measured figures. */
#ifndef WHIT_CLI_INTERVAL_H
#define WHIT_CLI_INTERVAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct cli_interval {
    double value, low, high;
    bool is_known; /* false: `low` and `high` could not be computed, for example from a single item */
} cli_interval;

/* Returns the mean per item over n units, where unit i has the sum sums[i] over counts[i] items (such as a window's sum
 * over its tokens), and its interval. The units are assumed to be independent; the items within a unit may depend on
 * each other. The variance is that of the ratio estimator, n / (n - 1) sum (x_i - mean c_i)^2 / (sum c_i)^2 (Cochran
 * 1977, 6.3); its root is multiplied by Student's t for n - 1 degrees. For the differences of two models on the same
 * units this gives the paired interval. */
cli_interval cli_interval_mean(const double *sums, const double *counts, size_t n);
/* Returns the share n_right / n with Wilson's interval (Wilson 1927), which stays between 0 and 1. If n is 0, the value
 * is 0 and the interval unknown. */
cli_interval cli_interval_share(size_t n_right, size_t n);
/* Returns the quotient a / b of two means of independent samples. Its interval is computed by the delta method, on the
 * logarithm's scale; it is known only if both means are positive and both intervals are known. If a mean is not
 * positive, the value is 0. */
cli_interval cli_interval_quotient(cli_interval a, cli_interval b);
/* Applies exp to the value and both bounds. */
cli_interval cli_interval_exp(cli_interval x);
/* Multiplies the value and both bounds by a factor. */
cli_interval cli_interval_scale(cli_interval x, double factor);
/* Returns half of the interval's width; -1 if the interval is unknown. */
double cli_interval_half(cli_interval x);

/* Sets `key` to the value, and `key`_95 to [low, high] or, if the interval is unknown, to null. */
void cli_interval_set(json_t *object, const char *key, cli_interval x);
/* Returns half of the width of an interval that cli_interval_set has stored; -1 if it is unknown. */
double cli_interval_read_half(const json_t *object, const char *key);

#endif
