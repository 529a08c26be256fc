/* SPDX-License-Identifier: MIT */
#include "cli/interval.h"

#include <math.h>
#include <stdio.h>

/* 97.5 % quantile of the normal distribution */
static const double Z = 1.959963984540054;

/* Returns the 97.5 % quantile of Student's t distribution: from a table for up to ten degrees of freedom, otherwise by
 * the expansion in 1 / degrees (Abramowitz, Stegun 1964, 26.7.5), whose error is below 1e-4. */
static double student_quantile(size_t degrees)
{
    static const double few[] = {0,       12.7062, 4.30265, 3.18245, 2.77645, 2.57058,
                                 2.44691, 2.36462, 2.30600, 2.26216, 2.22814};
    if (degrees < sizeof few / sizeof *few) return few[degrees];
    const double n = (double)degrees, z2 = Z * Z;
    return Z *
        (1 + (z2 + 1) / (4 * n) + ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
         (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n));
}

cli_interval cli_interval_mean(const double *sums, const double *counts, size_t n)
{
    double sum = 0, count = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += sums[i], count += counts[i];
    const double mean = count > 0 ? sum / count : 0;
    if (n < 2 || count <= 0) return (cli_interval){mean, mean, mean, false};
    for (size_t i = 0; i < n; i++) {
        const double rest = sums[i] - mean * counts[i];
        squares += rest * rest;
    }
    const double half = student_quantile(n - 1) * sqrt((double)n / (double)(n - 1) * squares) / count;
    return (cli_interval){mean, mean - half, mean + half, true};
}

cli_interval cli_interval_share(size_t n_right, size_t n)
{
    if (!n) return (cli_interval){0};
    const double count = (double)n, p = (double)n_right / count, z2 = Z * Z;
    const double centre = (p + z2 / (2 * count)) / (1 + z2 / count);
    const double half = Z / (1 + z2 / count) * sqrt(p * (1 - p) / count + z2 / (4 * count * count));
    cli_interval share = {p, centre - half, centre + half, true};
    if (!n_right) share.low = 0;
    if (n_right == n) share.high = 1;
    return share;
}

cli_interval cli_interval_quotient(cli_interval a, cli_interval b)
{
    cli_interval x = {0};
    if (!(a.value > 0) || !(b.value > 0)) return x;
    x.value = x.low = x.high = a.value / b.value;
    if (!a.is_known || !b.is_known) return x;
    const double share_a = cli_interval_half(a) / a.value, share_b = cli_interval_half(b) / b.value;
    const double width = exp(sqrt(share_a * share_a + share_b * share_b));
    x.low = x.value / width;
    x.high = x.value * width;
    x.is_known = true;
    return x;
}

cli_interval cli_interval_exp(cli_interval x)
{
    return (cli_interval){exp(x.value), exp(x.low), exp(x.high), x.is_known};
}

cli_interval cli_interval_scale(cli_interval x, double factor)
{
    return (cli_interval){x.value * factor, x.low * factor, x.high * factor, x.is_known};
}

double cli_interval_half(cli_interval x)
{
    return x.is_known ? (x.high - x.low) / 2 : -1;
}

void cli_interval_set(json_t *object, const char *key, cli_interval x)
{
    char name[64];
    snprintf(name, sizeof name, "%s_95", key);
    json_object_set_new(object, key, json_real(x.value));
    json_object_set_new(object, name, x.is_known ? json_pack("[f, f]", x.low, x.high) : json_null());
}

double cli_interval_read_half(const json_t *object, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "%s_95", key);
    const json_t *pair = json_object_get(object, name);
    if (!json_is_array(pair)) return -1;
    return (json_number_value(json_array_get(pair, 1)) - json_number_value(json_array_get(pair, 0))) / 2;
}
