/* SPDX-License-Identifier: MIT
 * Measures matrix products y = x W^T on one thread: SGEMM of OpenBLAS, and bfloat16 products summed in the order of the
 * instruction VDPBF16PS or TDPBF16PS.
 *
 *     bench_products [ROUNDS]
 *
 * A round measures every precision in turn, packing included, in CPU time. Prints the median rates, the median of the
 * rounds' quotients, and the relative difference between the results of bfloat16 and SGEMM. */
#include "rounds.h"

#include "base/clock.h"
#include "base/rng.h"
#include "linalg/blas.h"

#include <math.h>

enum { ROUNDS_MAX = 101 };

struct shape {
    size_t m, n, k;
};
static const struct shape shapes[] = {{2048, 256, 256},  {2048, 768, 256},   {2048, 960, 320},
                                      {512, 2048, 2048}, {2048, 2048, 2048}, {512, 5632, 2048}};

static float *random_floats(size_t n, uint64_t seed)
{
    whit_rng rng = {seed};
    float *x = aligned_alloc(64, whit_round_up(n * sizeof *x, 64));
    if (!x) exit(1);
    for (size_t i = 0; i < n; i++) x[i] = (float)(2 * whit_rng_uniform(&rng) - 1);
    return x;
}

/* Repeats the product for at least 50 ms of CPU time; returns multiply-adds per nanosecond. */
static double measure_rate(const whit_blas *blas, const whit_product *product)
{
    const uint64_t begin = whit_thread_cpu_ns();
    uint64_t end = begin;
    double n = 0;
    for (; end - begin < 50000000; end = whit_thread_cpu_ns(), n++) whit_blas_multiply(blas, 0, product);
    return n * (double)product->m * (double)product->n * (double)product->k / (double)(end - begin);
}

/* Returns the root mean square of x - y divided by that of y. */
static double relative_difference(const float *x, const float *y, size_t n)
{
    double difference = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        all += (double)y[i] * (double)y[i];
    }
    return sqrt(difference / all);
}

static void compare_precisions(const struct shape *shape, whit_precision precision, size_t n_rounds)
{
    const size_t n_out = shape->m * shape->n;
    const float *x = random_floats(shape->m * shape->k, 1), *w = random_floats(shape->n * shape->k, 2);
    float *exact = random_floats(n_out, 3), *rounded = random_floats(n_out, 3);
    double sgemm[ROUNDS_MAX], bf16[ROUNDS_MAX], quotient[ROUNDS_MAX];
    whit_blas blas[2];
    const size_t elems = whit_blas_elems(shape->n, shape->k);
    must(whit_blas_open(&blas[0], WHIT_PRECISION_F32, whit_loops_find(), 0, elems, 1, NULL, &error));
    must(whit_blas_open(&blas[1], precision, whit_loops_find(), 0, elems, 1, NULL, &error));
    const whit_product f32 = whit_product_packed(false, true, x, w, shape->m, shape->n, shape->k, exact);
    const whit_product half = whit_product_packed(false, true, x, w, shape->m, shape->n, shape->k, rounded);
    for (size_t i = 0; i < n_rounds; i++) {
        sgemm[i] = measure_rate(&blas[0], &f32);
        bf16[i] = measure_rate(&blas[1], &half);
        quotient[i] = bf16[i] / sgemm[i];
    }
    printf("%zu x %zu x %zu: SGEMM %.1f G, %s %.1f G multiply-adds/s, %.2f times, difference %.1e\n", shape->m,
           shape->n, shape->k, median(sgemm, n_rounds), whit_precision_name(precision), median(bf16, n_rounds),
           median(quotient, n_rounds), relative_difference(rounded, exact, n_out));
    for (size_t i = 0; i < 2; i++) whit_blas_close(&blas[i]);
    free((void *)x);
    free((void *)w);
    free(exact);
    free(rounded);
}

int main(int argc, char **argv)
{
    const int wanted = argc > 1 ? atoi(argv[1]) : 5;
    if (wanted < 1 || wanted > ROUNDS_MAX) {
        fprintf(stderr, "bench_products: from 1 to %d rounds\n", ROUNDS_MAX);
        return 1;
    }
    whit_precision precision = whit_precision_choose(WHIT_PRECISION_BF16);
    if (precision == WHIT_PRECISION_F32) {
        fprintf(stderr, "bench_products: this CPU has no instruction for bfloat16 that is faster than SGEMM\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        compare_precisions(&shapes[i], precision, (size_t)wanted);
    return 0;
}
