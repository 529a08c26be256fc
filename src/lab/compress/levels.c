/* SPDX-License-Identifier: MIT */
#include "compress/levels.h"

#include "base/half.h"
#include "kernels/levels.h"

#include <math.h>

#define ROUNDS       10
#define GRID_ROUNDS  3
#define TINIEST      6e-8f /* smallest positive f16 */
#define LARGEST_BYTE 230

/* Returns whether a type has more levels than trits or signs, all multiples of the scale a, which some types shift by
 * the offset -b (a grid). */
static bool is_grid(const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_I4 || type->codec == WHIT_CODEC_N4 || whit_scale_in_superblocks(type->scale_type);
}

static bool has_minimum(const whit_tensor_type *type)
{
    return whit_scale_has_minima(type->scale_type);
}

bool whit_levels_know(const whit_tensor_type *type)
{
    if (type->scale_kind != WHIT_SCALE_GROUP) return false;
    switch (type->codec) {
    case WHIT_CODEC_T2:
    case WHIT_CODEC_T5:
    case WHIT_CODEC_B1:
    case WHIT_CODEC_Q2: return !type->has_offset;
    case WHIT_CODEC_L2: return true;
    case WHIT_CODEC_I4: return type->scale_type == WHIT_SCALE_F16 && !type->has_offset;
    case WHIT_CODEC_N4: return type->scale_type == WHIT_SCALE_F16 || type->scale_type == WHIT_SCALE_K8;
    case WHIT_CODEC_U2:
    case WHIT_CODEC_I3:
    case WHIT_CODEC_U4:
    case WHIT_CODEC_U5:
    case WHIT_CODEC_I6:
    case WHIT_CODEC_X8:
    case WHIT_CODEC_X9:
    case WHIT_CODEC_X10: return true;
    default: return false;
    }
}

bool whit_levels_have_second(const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_Q2 || type->codec == WHIT_CODEC_L2 || has_minimum(type);
}

bool whit_levels_allow(const whit_tensor_type *type, const float scales[2])
{
    if (!isfinite(scales[0]) || !isfinite(scales[1])) return false;
    bool any_sign = is_grid(type) && !has_minimum(type) && type->scale_type != WHIT_SCALE_ODD4;
    return any_sign ? scales[0] != 0 : scales[0] > 0 && (!has_minimum(type) || scales[1] >= 0);
}

whit_levels whit_levels_at(const whit_tensor_type *type, const float scales[2])
{
    float a = scales[0], b = scales[1];
    switch (type->codec) {
    case WHIT_CODEC_B1: return (whit_levels){2, {-a, a}, {-1, 1}, {-1, 1}, {0}};
    case WHIT_CODEC_L2:
    case WHIT_CODEC_Q2:
        return (whit_levels){4, {-a - b, a - b, b - a, a + b}, {0, 1, 2, 3}, {-1, 1, -1, 1}, {-1, -1, 1, 1}};
    case WHIT_CODEC_T2:
    case WHIT_CODEC_T5: return (whit_levels){3, {-a, 0, a}, {-1, 0, 1}, {-1, 0, 1}, {0}};
    default: break;
    }
    const whit_codec_info *info = whit_codec_find(type->codec);
    bool has_second = whit_levels_have_second(type);
    whit_levels levels = {0};
    for (int i = 0; info->grid && i < 3; i++) {
        levels.code[2 - i] = (int8_t)-info->levels[i];
        levels.code[3 + i] = info->levels[i];
    }
    if (info->grid)
        levels.n = 6;
    else if (info->levels)
        levels.n = 16;
    else
        levels.n = (uint32_t)(info->code_max - info->code_min + 1);
    for (uint32_t i = 0; i < levels.n; i++) {
        if (!info->grid) levels.code[i] = info->levels ? info->levels[i] : (int8_t)(info->code_min + (int)i);
        levels.first[i] = levels.code[i];
        levels.second[i] = has_second ? -1 : 0;
        levels.value[i] = has_second ? fmaf((float)levels.code[i], a, -b) : (float)levels.code[i] * a;
    }
    return levels;
}

/* ---- scales as stored in files --------------------------------------------------------------- */

static float to_f16(float x)
{
    return whit_f32_from_f16(whit_f16_from_f32(x));
}

static float nearest_multiple(float x, float factor, float least, float most)
{
    return fminf(fmaxf(rintf(x / factor), least), most) * factor;
}

uint32_t whit_levels_shared_groups(const whit_tensor_type *type)
{
    if (type->scale_type == WHIT_SCALE_U8) return whit_codec_geometry(type).n_groups;
    return whit_scale_in_superblocks(type->scale_type) ? WHIT_SUPER_COLS / type->group : 0;
}

/* Finds the range of the integers that store the scales of GGUF's types: four bits (K4), signed eight bits in Q6_K
 * (i6), otherwise six bits, which are signed for K8. */
static void number_range(const whit_tensor_type *type, float *least, float *most)
{
    *least = 0, *most = type->scale_type == WHIT_SCALE_K4 ? 15 : 63;
    if (type->scale_type != WHIT_SCALE_K8) return;
    *most = type->codec == WHIT_CODEC_I6 ? 127 : 31;
    *least = -*most - 1;
}

void whit_levels_store(const whit_tensor_type *type, const float scales[2], const float factors[2], float stored[2])
{
    bool has_second = whit_levels_have_second(type);
    float least, most;
    if (type->codec == WHIT_CODEC_L2) {
        whit_level_pair(whit_level_of_pair(scales), stored);
        return;
    }
    stored[1] = 0;
    number_range(type, &least, &most);
    switch (factors ? type->scale_type : WHIT_SCALE_F16) {
    case WHIT_SCALE_U8:
        stored[0] = nearest_multiple(scales[0], factors[0], 1, 255);
        if (has_second) stored[1] = nearest_multiple(scales[1], factors[1], 0, 255);
        return;
    case WHIT_SCALE_ODD4: { /* the scale has no sign, since the levels are symmetric */
        float eighth = factors[0] * 0.125f;
        stored[0] = eighth + nearest_multiple(fabsf(scales[0]) - eighth, 2 * eighth, 0, 15);
        return;
    }
    case WHIT_SCALE_K4:
    case WHIT_SCALE_K8:
    case WHIT_SCALE_K16:
        stored[0] = nearest_multiple(scales[0], factors[0], least, most);
        if (has_second) stored[1] = nearest_multiple(scales[1], factors[1], least, most);
        return;
    default: break;
    }
    stored[0] = is_grid(type) ? to_f16(scales[0]) : to_f16(fmaxf(scales[0], TINIEST));
    if (has_second) stored[1] = to_f16(scales[1]);
}

void whit_levels_factors(const whit_tensor_type *type, const float *scales, uint32_t n_groups, float factors[2])
{
    float least, largest;
    number_range(type, &least, &largest);
    if (type->scale_type == WHIT_SCALE_U8) largest = LARGEST_BYTE;
    if (type->scale_type == WHIT_SCALE_ODD4) largest = 31 * 0.125f;
    for (int f = 0; f < 2; f++) {
        float most = 0;
        for (uint32_t group = 0; group < n_groups; group++) most = fmaxf(most, fabsf(scales[2 * group + f]));
        factors[f] = f && !whit_levels_have_second(type) ? 0 : to_f16(fmaxf(most / largest, TINIEST));
    }
}

void whit_levels_write(const whit_tensor_type *type, const float stored[2], const float factors[2], uint8_t *bytes)
{
    if (type->codec == WHIT_CODEC_L2) {
        unsigned u = whit_level_of_pair(stored);
        bytes[0] = (uint8_t)u;
        bytes[1] = (uint8_t)(u >> 8);
        return;
    }
    bool has_second = whit_levels_have_second(type);
    int first = (int)rintf(stored[0] / factors[0]), second = has_second ? (int)rintf(stored[1] / factors[1]) : 0;
    if (type->scale_type == WHIT_SCALE_K4) {
        bytes[0] = (uint8_t)(first | second << 4);
    } else if (type->scale_type == WHIT_SCALE_K8) {
        bytes[0] = (uint8_t)(first + 128);
    } else if (type->scale_type == WHIT_SCALE_ODD4) {
        bytes[0] = (uint8_t)(((int)rintf(stored[0] / (factors[0] * 0.125f)) - 1) / 2);
    } else {
        bytes[0] = (uint8_t)first;
        if (has_second) bytes[1] = (uint8_t)second;
    }
}

void whit_levels_read(const whit_tensor_type *type, const uint8_t *bytes, const float factors[2], float stored[2])
{
    if (type->codec == WHIT_CODEC_L2) {
        whit_level_pair(bytes[0] | (unsigned)bytes[1] << 8, stored);
        return;
    }
    if (type->scale_type == WHIT_SCALE_ODD4) {
        stored[0] = factors[0] * 0.125f * (float)(2 * bytes[0] + 1);
        stored[1] = 0;
        return;
    }
    bool has_second = whit_levels_have_second(type);
    int first;
    if (type->scale_type == WHIT_SCALE_K4)
        first = bytes[0] & 15;
    else if (type->scale_type == WHIT_SCALE_K8)
        first = bytes[0] - 128;
    else
        first = bytes[0];
    int second = 0;
    if (type->scale_type == WHIT_SCALE_K4)
        second = bytes[0] >> 4;
    else if (has_second)
        second = bytes[1];
    stored[0] = (float)first * factors[0];
    stored[1] = has_second ? (float)second * factors[1] : 0;
}

/* ---- fitting ----------------------------------------------------------------------------------- */

/* Assigns each element to its nearest level, and then fits the scales to these assignments by least squares. Returns
 * the error before that. */
static double refit(const whit_tensor_type *type, const float *w, const float *weights, size_t n, float scales[2])
{
    whit_levels levels = whit_levels_at(type, scales);
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
    bool solved = whit_levels_have_second(type) && determinant > 1e-9 * ff * ss;
    if (solved) {
        float both[2] = {(float)((ss * fw - fs * sw) / determinant), (float)((ff * sw - fs * fw) / determinant)};
        solved = !has_minimum(type) || both[1] >= 0; /* the offset -b is never positive */
        if (solved) scales[0] = both[0], scales[1] = both[1];
    }
    if (!solved && ff > 0) {
        if (has_minimum(type)) scales[1] = 0;
        scales[0] = (float)(fw / ff);
    }
    return error;
}

/* Computes starting point number s for the scales of a grid. Without an offset: the outermost level is at the largest
 * weight or near it, with either sign. With an offset: the levels span about the range of the weights and 0. Returns
 * false after the last starting point. */
static bool find_start(const whit_tensor_type *type, const float *w, size_t n, uint32_t s, float scales[2])
{
    static const float shares[] = {1.0f, 0.9f, 0.8f, 0.7f, 1.1f};
    const uint32_t n_shares = sizeof shares / sizeof *shares;
    float least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i++) least = fminf(least, w[i]), most = fmaxf(most, w[i]);
    const whit_codec_info *info = whit_codec_find(type->codec);
    if (has_minimum(type)) {
        if (s >= n_shares) return false;
        float low = fminf(least, 0) * shares[s], high = fmaxf(most, 0) * shares[s];
        scales[0] = (high - low) / info->code_max, scales[1] = -low;
        return true;
    }
    if (s >= 2 * n_shares) return false;
    float largest = most > -least ? most : least;
    float end = s < n_shares ? info->code_min : info->code_max;
    scales[0] = largest * shares[s % n_shares] / end, scales[1] = 0;
    return true;
}

static void fit_grid(const whit_tensor_type *type, const float *w, const float *weights, size_t n, float found[2])
{
    double best = INFINITY;
    float scales[2];
    found[0] = found[1] = 0;
    for (uint32_t s = 0; find_start(type, w, n, s, scales); s++) {
        for (int round = 0; round <= GRID_ROUNDS; round++) {
            float before[2] = {scales[0], scales[1]};
            double error = refit(type, w, weights, n, scales);
            if (!(error < best)) continue;
            best = error;
            found[0] = before[0], found[1] = before[1];
        }
    }
}

void whit_levels_fit(const whit_tensor_type *type, const float *w, const float *weights, size_t n,
                     const float factors[2], float stored[2])
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
    if (is_grid(type)) fit_grid(type, w, weights, n, found);
    for (size_t s = 0; !is_grid(type) && s < sizeof starts / sizeof *starts; s++) {
        float scales[2] = {mean * starts[s], 0.5f * mean * starts[s]};
        double error = 0;
        for (int round = 0; round < ROUNDS; round++) error = refit(type, w, weights, n, scales);
        if (error < best) {
            best = error;
            found[0] = scales[0], found[1] = scales[1];
        }
        /* The codes of b1 do not depend on the scale, so one starting point suffices. */
        if (type->codec == WHIT_CODEC_B1) break;
    }
    whit_levels_store(type, found, factors, stored);
}
