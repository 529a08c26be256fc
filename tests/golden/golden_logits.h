/* SPDX-License-Identifier: MIT
 * Reads logits of golden files, and measures how far other logits are from them. */
#ifndef WHIT_TESTS_GOLDEN_LOGITS_H
#define WHIT_TESTS_GOLDEN_LOGITS_H

#include "test.h"

#include <math.h>

/* Returns the first n numbers of a file of float32 values; the caller frees them. */
static inline float *read_floats(const char *folder, const char *name, size_t n)
{
    char path[4096];
    float *values = malloc(n * sizeof *values);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_true(values && file);
    assert_int_equal(fread(values, sizeof *values, n, file), n);
    fclose(file);
    return values;
}

static inline double log_sum_exp(const float *x, uint32_t n)
{
    double max = x[0], sum = 0;
    for (uint32_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    for (uint32_t i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

/* Asserts that the largest difference and the mean KL(golden || logits) of (n_rows, n_vocab) logits are within their
 * limits. */
static inline void compare_logits(const float *golden, const float *logits, uint32_t n_rows, uint32_t n_vocab,
                                  double max_abs, double mean_kl, const char *what)
{
    double worst = 0, kl = 0;
    for (uint32_t t = 0; t < n_rows; t++) {
        const float *p = golden + (size_t)t * n_vocab, *q = logits + (size_t)t * n_vocab;
        double p_total = log_sum_exp(p, n_vocab), q_total = log_sum_exp(q, n_vocab);
        for (uint32_t i = 0; i < n_vocab; i++) {
            worst = fmax(worst, fabs((double)p[i] - q[i]));
            kl += exp(p[i] - p_total) * ((p[i] - p_total) - (q[i] - q_total));
        }
    }
    kl /= n_rows;
    print_message("%s: worst %.3g of %.3g, KL %.3g of %.3g\n", what, worst, max_abs, kl, mean_kl);
    assert_true(max_abs > 0 && worst <= max_abs);
    assert_true(mean_kl > 0 && kl <= mean_kl);
}

#endif
