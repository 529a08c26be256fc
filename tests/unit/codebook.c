/* SPDX-License-Identifier: MIT
 * Compares the choice of codebook entries with a search of all entries and all signs. */
#include "compress/codebook.h"

#include "base/rng.h"
#include "kernels/codec_table.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static double cost_of(const float *w, const float *weights, float scale, const int8_t *codes)
{
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        double miss = (double)w[i] - (double)scale * codes[i];
        sum += (double)weights[i] * miss * miss;
    }
    return sum;
}

/* Returns the lowest cost of an entry over all signs that the type allows. */
static double best_signs(const whit_codec_info *info, bool is_even, uint16_t entry, const float *w,
                         const float *weights, float scale)
{
    double least = DBL_MAX;
    for (unsigned signs = 0; signs < 256; signs++) {
        int8_t codes[8];
        if (is_even && __builtin_parity(signs)) continue;
        for (int i = 0; i < 8; i++) {
            int level = info->levels[entry >> 2 * i & 3];
            codes[i] = (int8_t)(signs >> i & 1 ? -level : level);
        }
        double cost = cost_of(w, weights, scale, codes);
        if (cost < least) least = cost;
    }
    return least;
}

static uint16_t entry_of(const whit_codec_info *info, const int8_t *codes)
{
    unsigned entry = 0;
    for (int i = 0; i < 8; i++)
        for (unsigned l = 0; l < 3; l++)
            if (info->levels[l] == abs(codes[i])) entry |= l << 2 * i;
    return (uint16_t)entry;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void choices_are_the_best(void **state)
{
    (void)state;
    static const whit_codec codecs[] = {WHIT_CODEC_X8, WHIT_CODEC_X9, WHIT_CODEC_X10};
    whit_rng rng = {20261128};
    for (int round = 0; round < 30; round++) {
        const whit_codec codec = codecs[round % 3];
        const whit_codec_info *info = &whit_codecs[codec];
        const uint32_t n_entries = 256u << info->high_bits;
        const bool is_even = codec != WHIT_CODEC_X10;
        const float scale = 0.02f;
        float w[8], weights[8];
        int8_t codes[WHIT_CODEBOOK_CHOICES][8];
        for (int i = 0; i < 8; i++) {
            w[i] = (float)(whit_rng_uniform(&rng) * 2 - 1);
            weights[i] = round % 2 ? 1 : (float)whit_rng_uniform(&rng) + 0.01f;
        }
        double *costs = calloc(n_entries, sizeof *costs);
        for (uint32_t i = 0; i < n_entries; i++) costs[i] = best_signs(info, is_even, info->grid[i], w, weights, scale);
        qsort(costs, n_entries, sizeof *costs, by_size);
        whit_codebook_nearest(codec, w, weights, scale, WHIT_CODEBOOK_CHOICES, codes);
        for (int c = 0; c < WHIT_CODEBOOK_CHOICES; c++) {
            unsigned negative = 0, found = 0;
            for (int i = 0; i < 8; i++) negative += codes[c][i] < 0;
            for (uint32_t i = 0; i < n_entries; i++) found += info->grid[i] == entry_of(info, codes[c]);
            assert_int_equal(found, 1);
            if (is_even) assert_int_equal(negative % 2, 0);
            double cost = cost_of(w, weights, scale, codes[c]);
            if (!(fabs(cost - costs[c]) <= 1e-5 * (costs[c] + 1e-3)))
                fail_msg("choice %d costs %g, the best %g", c, cost, costs[c]);
        }
        int8_t first[1][8];
        whit_codebook_nearest(codec, w, weights, scale, 1, first);
        assert_memory_equal(first[0], codes[0], 8);
        free(costs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices_are_the_best)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
