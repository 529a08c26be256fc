/* SPDX-License-Identifier: MIT */
#include "compress/levels.h"

#include "base/half.h"

#include <math.h>

#define ROUNDS       10
#define TINIEST      6e-8f /* the smallest f16 above zero */
#define LARGEST_BYTE 230

whit_levels whit_levels_at(uint8_t codec, const float scales[2])
{
    float a = scales[0], b = scales[1];
    switch (codec) {
    case WHIT_CODEC_B1: return (whit_levels){2, {-a, a}, {-1, 1}, {-1, 1}, {0}};
    case WHIT_CODEC_Q2:
        return (whit_levels){4, {-a - b, a - b, b - a, a + b}, {0, 1, 2, 3}, {-1, 1, -1, 1}, {-1, -1, 1, 1}};
    default: return (whit_levels){3, {-a, 0, a}, {-1, 0, 1}, {-1, 0, 1}, {0}};
    }
}

static float to_f16(float x)
{
    return whit_f32_from_f16(whit_f16_from_f32(x));
}

static float to_byte_scale(float x, float factor, float least)
{
    return fminf(fmaxf(rintf(x / factor), least), 255) * factor;
}

void whit_levels_store(uint8_t codec, const float scales[2], const float factors[2], float stored[2])
{
    if (factors) {
        stored[0] = to_byte_scale(scales[0], factors[0], 1);
        stored[1] = codec == WHIT_CODEC_Q2 ? to_byte_scale(scales[1], factors[1], 0) : 0;
        return;
    }
    stored[0] = to_f16(fmaxf(scales[0], TINIEST));
    stored[1] = codec == WHIT_CODEC_Q2 ? to_f16(scales[1]) : 0;
}

void whit_levels_factors(uint8_t codec, const float *scales, uint32_t n_groups, float factors[2])
{
    for (int f = 0; f < 2; f++) {
        float most = 0;
        for (uint32_t group = 0; group < n_groups; group++) most = fmaxf(most, scales[2 * group + f]);
        factors[f] = f && codec != WHIT_CODEC_Q2 ? 0 : to_f16(fmaxf(most / LARGEST_BYTE, TINIEST));
    }
}

uint8_t whit_levels_byte(float stored, float factor)
{
    return (uint8_t)rintf(stored / factor);
}

/* One round: least squares for the codes of the present scales. Gives the error before. */
static double refit(uint8_t codec, const float *w, const float *weights, size_t n, float scales[2])
{
    whit_levels levels = whit_levels_at(codec, scales);
    double ff = 0, fs = 0, ss = 0, fw = 0, sw = 0, error = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t k = whit_levels_nearest(&levels, w[i]);
        double g = weights ? (double)weights[i] : 1, f = levels.first[k], s = levels.second[k], x = (double)w[i];
        double miss = x - (double)levels.value[k];
        error += g * miss * miss;
        ff += g * f * f, fs += g * f * s, ss += g * s * s;
        fw += g * f * x, sw += g * s * x;
    }
    double determinant = ff * ss - fs * fs;
    if (codec == WHIT_CODEC_Q2 && determinant > 1e-9 * ff * ss) {
        scales[0] = (float)((ss * fw - fs * sw) / determinant);
        scales[1] = (float)((ff * sw - fs * fw) / determinant);
    } else if (ff > 0) {
        scales[0] = (float)(fw / ff);
    }
    return error;
}

void whit_levels_fit(uint8_t codec, const float *w, const float *weights, size_t n, const float factors[2],
                     float stored[2])
{
    static const float starts[] = {0.7f, 1.1f, 1.6f};
    double sum = 0, total = 0, best = INFINITY;
    for (size_t i = 0; i < n; i++) {
        sum += (double)weights[i] * fabs((double)w[i]);
        total += (double)weights[i];
    }
    if (!(total > 0)) {
        weights = NULL;
        total = (double)n;
        for (size_t i = 0; i < n; i++) sum += fabs((double)w[i]);
    }
    float mean = (float)(sum / total), found[2] = {mean, 0.5f * mean};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        float scales[2] = {mean * starts[s], 0.5f * mean * starts[s]};
        double error = 0;
        for (int round = 0; round < ROUNDS; round++) error = refit(codec, w, weights, n, scales);
        if (error < best) {
            best = error;
            found[0] = scales[0], found[1] = scales[1];
        }
        if (codec == WHIT_CODEC_B1) break; /* the codes of b1 do not depend on the scale */
    }
    whit_levels_store(codec, found, factors, stored);
}
