/* SPDX-License-Identifier: MIT
 * Shared by the tests that compare kernels with the generic ones: difficult inputs, buffers with guard bytes, and
 * equality of bits (two NaN are equal, because their payloads are not specified). */
#ifndef WHIT_TESTS_KERNELS_EQUAL_H
#define WHIT_TESTS_KERNELS_EQUAL_H

#include <math.h>

#include "kernels/kernels.h"
#include "kernels/matrix.h"

/* How random inputs are drawn. */
typedef enum input_mode {
    INPUT_UNIFORM, /* uniform in [-1, 1) */
    INPUT_WIDE,    /* exponents from -30 to 30 */
    INPUT_TIES,    /* multiples of one half, so that rounding to integers has ties */
    INPUT_EDGES,   /* zeros of both signs, subnormals, and large numbers among small ones */
    INPUT_SAME,    /* all of the same magnitude, so that every code saturates */
    INPUT_COUNT
} input_mode;

static inline float input_value(whit_rng *rng, input_mode mode)
{
    float uniform = (float)(whit_rng_uniform(rng) * 2 - 1);
    static const float edges[] = {0.0f, -0.0f, 1e-40f, -1e-42f, 1e9f, -1e9f, 0.5f, -127.0f, 88.5f, -87.5f};
    switch (mode) {
    case INPUT_WIDE: return ldexpf(uniform, (int)whit_rng_below(rng, 61) - 30);
    case INPUT_TIES: return (float)((int)whit_rng_below(rng, 509) - 254) * 0.5f;
    case INPUT_EDGES: return edges[whit_rng_below(rng, sizeof edges / sizeof *edges)];
    case INPUT_SAME: return uniform < 0 ? -2.5f : 2.5f;
    default: return uniform;
    }
}

/* n floats that begin `misalign` floats after a cache line's beginning, between canaries. */
typedef struct guarded_floats {
    float *data;
    size_t n, misalign;
} guarded_floats;

static inline guarded_floats floats_alloc(size_t n, size_t misalign)
{
    guarded_floats floats = {.n = n, .misalign = misalign};
    floats.data = (float *)(void *)guarded_alloc(n * sizeof(float), misalign * sizeof(float));
    return floats;
}
static inline guarded_floats floats_random(whit_rng *rng, size_t n, input_mode mode)
{
    guarded_floats floats = floats_alloc(n, whit_rng_below(rng, 16));
    for (size_t i = 0; i < n; i++) floats.data[i] = input_value(rng, mode);
    return floats;
}
static inline guarded_floats floats_copy(const guarded_floats *from)
{
    guarded_floats floats = floats_alloc(from->n, (from->misalign + 5) % 16);
    memcpy(floats.data, from->data, from->n * sizeof(float));
    return floats;
}
static inline void floats_free(guarded_floats *floats)
{
    guarded_check((const uint8_t *)floats->data, floats->n * sizeof(float));
    guarded_free((uint8_t *)floats->data, floats->misalign * sizeof(float));
}

static inline bool same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (whit_f32_bits(a[i]) != whit_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i]))) return false;
    return true;
}

/* Fails with the position of the first difference. */
static inline void assert_same_floats(const float *found, const float *generic, size_t n, const char *name,
                                      const char *what)
{
    if (same_floats(found, generic, n)) return;
    for (size_t i = 0; i < n; i++)
        if (!same_floats(found + i, generic + i, 1))
            fail_msg("%s, %s: element %zu of %zu is %a (%g), generic has %a (%g)", name, what, i, n, (double)found[i],
                     (double)found[i], (double)generic[i], (double)generic[i]);
}

/* Sets up kernels at the generic level, and at the highest level of this machine. */
static inline void both_levels(whit_kernels *generic, whit_kernels *machine)
{
    whit_cpu cpu;
    whit_error error;
    whit_cpu_detect(&cpu);
    assert_ok(whit_kernels_select(&cpu, "generic", generic, &error), error);
    assert_ok(whit_kernels_select(&cpu, getenv("WHIT_CPU"), machine, &error), error);
}

#endif
