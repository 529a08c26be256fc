/* SPDX-License-Identifier: MIT
 * Defines the error check and the median that the measurements in rounds share. */
#ifndef WHIT_BENCH_ROUNDS_H
#define WHIT_BENCH_ROUNDS_H

#include "whit.h"

#include <stdio.h>
#include <stdlib.h>

/* error of the last call that failed */
static whit_error error;

/* Prints `error` and ends the program unless status is WHIT_OK. */
static void must(whit_status status)
{
    if (status == WHIT_OK) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts n values and returns their median, the upper one if n is even. */
static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_values);
    return values[n / 2];
}

#endif
