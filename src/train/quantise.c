/* SPDX-License-Identifier: MIT */
#include "train/quantise.h"

#include "base/half.h"
#include "kernels/codec.h"
#include "train/loops.h"

#include <math.h>

#define FIT_ROUNDS 12
#define TINIEST    6e-8f /* the smallest f16 above zero: a scale never vanishes for good */

bool whit_quantise_knows(const whit_tensor_type *type)
{
    bool coded = type->codec == WHIT_CODEC_I8 || type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5 ||
                 type->codec == WHIT_CODEC_B1 || type->codec == WHIT_CODEC_Q2;
    return coded && !type->has_offset && type->scale_type != WHIT_SCALE_U8 && type->scale_kind != WHIT_SCALE_TENSOR;
}

static float stored_scale(const whit_tensor_type *type, float scale)
{
    return type->scale_type == WHIT_SCALE_F16 ? whit_f32_from_f16(whit_f16_from_f32(scale)) : scale;
}

void whit_quantise_stored(const whit_tensor_type *type, const float *fields, float stored[2])
{
    stored[0] = stored_scale(type, fmaxf(fields[0], TINIEST));
    stored[1] = type->codec == WHIT_CODEC_Q2 ? stored_scale(type, fields[1]) : 0;
}

/* Sums of magnitudes at least, and below, a threshold; and how many there are at least. */
WHIT_TRAIN_CLONES static void split(const float *w, size_t n, float threshold, float *above, float *below, float *count)
{
    float lanes[3][16] = {{0}};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) {
            float size = fabsf(w[i + j]), is = size > threshold ? 1.0f : 0.0f;
            lanes[0][j] += is * size;
            lanes[1][j] += (1.0f - is) * size;
            lanes[2][j] += is;
        }
    for (; i < n; i++) {
        float size = fabsf(w[i]);
        lanes[size > threshold ? 0 : 1][i % 16] += size;
        lanes[2][i % 16] += size > threshold ? 1.0f : 0.0f;
    }
    *above = *below = *count = 0;
    for (int j = 0; j < 16; j++) {
        *above += lanes[0][j];
        *below += lanes[1][j];
        *count += lanes[2][j];
    }
}

static void fit_i8(const float *w, size_t n, float *fields)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(w[i]));
    fields[0] = largest / 127.0f;
}

void whit_quantise_refit(const whit_tensor_type *type, const float *w, size_t n, float *fields)
{
    float above, below, count;
    switch (type->codec) {
    case WHIT_CODEC_I8:
        fit_i8(w, n, fields);
        return;
    case WHIT_CODEC_B1:
        split(w, n, -1.0f, &above, &below, &count);
        fields[0] = above / (float)n;
        return;
    case WHIT_CODEC_Q2: /* magnitudes a - b and a + b, the border between them is a */
        split(w, n, fields[0], &above, &below, &count);
        float high = count > 0 ? above / count : fields[0];
        float low = count < (float)n ? below / ((float)n - count) : fields[0];
        fields[0] = 0.5f * (high + low);
        fields[1] = 0.5f * (high - low);
        return;
    default:
        split(w, n, 0.5f * fields[0], &above, &below, &count);
        if (count > 0) fields[0] = above / count;
    }
}

void whit_quantise_fit(const whit_tensor_type *type, const float *w, size_t n, float *fields)
{
    float above, below, count;
    split(w, n, -1.0f, &above, &below, &count);
    fields[0] = above / (float)n * (type->codec == WHIT_CODEC_Q2 ? 1.2f : 1.5f);
    if (type->codec == WHIT_CODEC_Q2) fields[1] = 0.5f * fields[0];
    for (int round = 0; round < FIT_ROUNDS; round++) whit_quantise_refit(type, w, n, fields);
}

/* ---- values, codes, gradients --------------------------------------------------------------- */

WHIT_TRAIN_CLONES static void ternary_values(const float *restrict w, size_t n, float a, float share, float *restrict out)
{
    float border = 0.5f * a;
    for (size_t i = 0; i < n; i++) {
        float q = w[i] > border ? a : w[i] < -border ? -a : 0.0f;
        out[i] = w[i] + share * (q - w[i]);
    }
}

WHIT_TRAIN_CLONES static void sign_values(const float *restrict w, size_t n, float a, float share, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        float q = w[i] < 0 ? -a : a;
        out[i] = w[i] + share * (q - w[i]);
    }
}

WHIT_TRAIN_CLONES static void four_values(const float *restrict w, size_t n, float a, float b, float share,
                                          float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(w[i]) > a ? a + b : a - b, q = w[i] < 0 ? -size : size;
        out[i] = w[i] + share * (q - w[i]);
    }
}

/* Half to even, within [-127, 127]. */
static inline float i8_code(float w, float a)
{
    const float magic = 12582912.0f;
    float code = (w / a + magic) - magic;
    return code > 127.0f ? 127.0f : code < -127.0f ? -127.0f : code;
}

WHIT_TRAIN_CLONES static void i8_values(const float *restrict w, size_t n, float a, float share, float *restrict out)
{
    for (size_t i = 0; i < n; i++) out[i] = w[i] + share * (i8_code(w[i], a) * a - w[i]);
}

void whit_quantise_values(const whit_tensor_type *type, const float *w, size_t n, const float stored[2], float share,
                          float *out)
{
    switch (type->codec) {
    case WHIT_CODEC_I8:
        i8_values(w, n, stored[0], share, out);
        break;
    case WHIT_CODEC_B1:
        sign_values(w, n, stored[0], share, out);
        break;
    case WHIT_CODEC_Q2:
        four_values(w, n, stored[0], stored[1], share, out);
        break;
    default:
        ternary_values(w, n, stored[0], share, out);
    }
}

void whit_quantise_codes(const whit_tensor_type *type, const float *w, size_t n, const float stored[2], int8_t *codes)
{
    float a = stored[0];
    for (size_t i = 0; i < n; i++) {
        bool negative = w[i] < 0, large = fabsf(w[i]) > a;
        switch (type->codec) {
        case WHIT_CODEC_I8:
            codes[i] = (int8_t)i8_code(w[i], a);
            break;
        case WHIT_CODEC_B1:
            codes[i] = negative ? -1 : 1;
            break;
        case WHIT_CODEC_Q2: /* bit 0: s; bit 1: e, which has the sign of s where the level is large */
            codes[i] = (int8_t)((negative ? 0 : 1) | (negative != large ? 2 : 0));
            break;
        default:
            codes[i] = (int8_t)((w[i] > 0.5f * a) - (w[i] < -0.5f * a));
        }
    }
}

void whit_quantise_scale_gradient(const whit_tensor_type *type, const float *w, size_t n, const float stored[2],
                                  const float *dvalues, float *dfields)
{
    float a = stored[0], first[16] = {0}, second[16] = {0};
    bool q2 = type->codec == WHIT_CODEC_Q2, ternary = type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5;
    for (size_t i = 0; i < n; i++) {
        float along = w[i] < 0 ? -dvalues[i] : dvalues[i], size = fabsf(w[i]);
        first[i % 16] += ternary && size <= 0.5f * a ? 0.0f : along;
        second[i % 16] += q2 ? (size > a ? along : -along) : 0.0f;
    }
    for (int j = 0; j < 16; j++) {
        dfields[0] += first[j];
        if (q2) dfields[1] += second[j];
    }
}
