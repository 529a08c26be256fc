/* SPDX-License-Identifier: MIT
 * The parts that measurements of several rounds share. */
#ifndef WHIT_BENCH_ROUNDS_H
#define WHIT_BENCH_ROUNDS_H

#include "whit.h"

#include <stdio.h>
#include <stdlib.h>

/* The error of the last call that failed. */
static whit_error error;

/* Ends the program where a call has failed. */
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

/* Returns the median of n values, of an even number the upper one; sorts them. */
static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_values);
    return values[n / 2];
}

#endif
