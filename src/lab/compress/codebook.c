/* SPDX-License-Identifier: MIT
 * Finds codebook entries. An entry consists of two bytes with four two-bit levels each. Its cost is therefore the sum
 * of two values from a table with the costs of all bytes. */
#include "compress/codebook.h"

#include "kernels/codec_table.h"

#include <math.h>

enum { HALF_COLS = 4, HALF_ENTRIES = 256, LEVELS = 3 };

/* Costs of each of the 256 half entries for four weights. fit: the weighted sum of squared errors. turn: the smallest
 * increase of it if the sign of one of the four is changed. */
typedef struct half_costs {
    float fit[HALF_ENTRIES], turn[HALF_ENTRIES];
} half_costs;

static float turn_cost(float w, float weight, float scale, int level)
{
    return 4 * weight * fabsf(w) * scale * (float)level;
}

static void fill_half(const int8_t *levels, const float *w, const float *weights, float scale, half_costs *half)
{
    float fit[HALF_COLS][LEVELS], turn[HALF_COLS][LEVELS];
    for (int i = 0; i < HALF_COLS; i++)
        for (int l = 0; l < LEVELS; l++) {
            const float miss = fabsf(w[i]) - scale * (float)levels[l];
            fit[i][l] = weights[i] * miss * miss;
            turn[i][l] = turn_cost(w[i], weights[i], scale, levels[l]);
        }
    for (int a = 0; a < LEVELS; a++)
        for (int b = 0; b < LEVELS; b++)
            for (int c = 0; c < LEVELS; c++)
                for (int d = 0; d < LEVELS; d++) {
                    const int entry = a | b << 2 | c << 4 | d << 6;
                    half->fit[entry] = (fit[0][a] + fit[1][b]) + (fit[2][c] + fit[3][d]);
                    half->turn[entry] = fminf(fminf(turn[0][a], turn[1][b]), fminf(turn[2][c], turn[3][d]));
                }
}

/* Writes the codes of an entry, with the signs of w. `turns`: the sign whose change costs least is changed. */
static void write_codes(const whit_codec_info *info, uint16_t entry, const float *w, const float *weights, float scale,
                        bool turns, int8_t *codes)
{
    int turned = 0;
    float least = INFINITY;
    for (int i = 0; i < WHIT_CODEBOOK_COLS; i++) {
        const int level = info->levels[entry >> 2 * i & 3];
        const float cost = turn_cost(w[i], weights[i], scale, level);
        codes[i] = (int8_t)(w[i] < 0 ? -level : level);
        if (cost < least) least = cost, turned = i;
    }
    if (turns) codes[turned] = (int8_t)-codes[turned];
}

void whit_codebook_nearest(whit_codec codec, const float w[WHIT_CODEBOOK_COLS], const float weights[WHIT_CODEBOOK_COLS],
                           float scale, uint32_t n, int8_t codes[][WHIT_CODEBOOK_COLS])
{
    const whit_codec_info *info = &whit_codecs[codec];
    const uint32_t n_entries = 256u << info->high_bits;
    half_costs low, high;
    bool turns = false;
    fill_half(info->levels, w, weights, scale, &low);
    fill_half(info->levels, w + HALF_COLS, weights + HALF_COLS, scale, &high);
    for (int i = 0; i < WHIT_CODEBOOK_COLS && codec != WHIT_CODEC_X10; i++) turns ^= w[i] < 0;
    float costs[WHIT_CODEBOOK_CHOICES];
    uint16_t best[WHIT_CODEBOOK_CHOICES];
    for (uint32_t i = 0; i < n; i++) costs[i] = INFINITY, best[i] = info->grid[0];
    for (uint32_t i = 0; i < n_entries; i++) {
        const uint16_t entry = info->grid[i];
        const int a = entry & 255, b = entry >> 8;
        float cost = low.fit[a] + high.fit[b];
        if (turns) cost += fminf(low.turn[a], high.turn[b]);
        if (!(cost < costs[n - 1])) continue;
        uint32_t at = n - 1;
        for (; at > 0 && cost < costs[at - 1]; at--) costs[at] = costs[at - 1], best[at] = best[at - 1];
        costs[at] = cost;
        best[at] = entry;
    }
    for (uint32_t i = 0; i < n; i++) write_codes(info, best[i], w, weights, scale, turns, codes[i]);
}

void whit_codebook_numbers(const whit_levels *levels, const int8_t codes[WHIT_CODEBOOK_COLS],
                           uint8_t numbers[WHIT_CODEBOOK_COLS])
{
    for (int i = 0; i < WHIT_CODEBOOK_COLS; i++) {
        numbers[i] = 0;
        while (levels->code[numbers[i]] != codes[i]) numbers[i]++;
    }
}

void whit_codebook_round(whit_codec codec, const whit_levels *levels, const float w[WHIT_CODEBOOK_COLS],
                         const float weights[WHIT_CODEBOOK_COLS], float scale, uint8_t numbers[WHIT_CODEBOOK_COLS])
{
    int8_t codes[1][WHIT_CODEBOOK_COLS];
    whit_codebook_nearest(codec, w, weights, scale, 1, codes);
    whit_codebook_numbers(levels, codes[0], numbers);
}
