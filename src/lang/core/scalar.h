/* SPDX-License-Identifier: MIT
 * Defines every operation for one element. Nothing here contracts or reorders, so that loops over these functions give
 * the same bits for any vector width. */
#ifndef WHIT_LANG_CORE_SCALAR_H
#define WHIT_LANG_CORE_SCALAR_H

#include <math.h>

#include "lang/core/ast.h"

/* Computes exp: x = n ln 2 + r with |r| <= ln 2 / 2, and e^x = 2^n e^r. e^r is a Taylor polynomial of degree 6, with a
 * relative error below 2^-23. The result is 0 for x < -87, and e^88 for x > 88. */
static inline float lang_exp_f32(float x)
{
    const float magic = 12582912.0f; /* adding 1.5 * 2^23 rounds to the nearest integer */
    union {
        float f;
        uint32_t u;
    } limit = {88.0f}, bounded = {x}, bits, power, result;
    /* The bounds are applied by masks, because branches would prevent vectorisation of loops. */
    uint32_t above = 0 - (uint32_t)(x > 88.0f), below = 0 - (uint32_t)(x < -87.0f);
    bounded.u = (limit.u & above) | (bounded.u & ~above);
    bits.f = bounded.f * 0x1.715476p+0f + magic;
    float n = bits.f - magic, r = bounded.f - n * 0x1.62e000p-1f;
    r = r - n * 0x1.0bfbe8p-15f;
    float p = 0x1.6c16c2p-10f * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    float y = p * (r * r) + r + 1.0f;
    power.u = (bits.u - 0x4B400000u + 127u) << 23;
    result.f = y * power.f;
    result.u &= ~below;
    return result.f;
}

#define LANG_F32_ADD(a, b)  ((a) + (b))
#define LANG_F32_SUB(a, b)  ((a) - (b))
#define LANG_F32_MUL(a, b)  ((a) * (b))
#define LANG_F32_DIV(a, b)  ((a) / (b))
#define LANG_F32_MIN(a, b)  ((a) < (b) ? (a) : (b))
#define LANG_F32_MAX(a, b)  ((a) > (b) ? (a) : (b))
#define LANG_F32_CUT(a, b)  ((a) < (b) ? -INFINITY : (a))
#define LANG_F32_LT(a, b)   ((a) < (b) ? 1.0f : 0.0f)
#define LANG_F32_LE(a, b)   ((a) <= (b) ? 1.0f : 0.0f)
#define LANG_F32_GT(a, b)   ((a) > (b) ? 1.0f : 0.0f)
#define LANG_F32_GE(a, b)   ((a) >= (b) ? 1.0f : 0.0f)
#define LANG_F32_EQ(a, b)   ((a) == (b) ? 1.0f : 0.0f)
#define LANG_F32_NE(a, b)   ((a) != (b) ? 1.0f : 0.0f)
#define LANG_F32_NEG(a)     (-(a))
#define LANG_F32_ABS(a)     fabsf(a)
#define LANG_F32_SQRT(a)    sqrtf(a)
#define LANG_F32_EXP(a)     lang_exp_f32(a)
#define LANG_F32_LOG(a)     ((float)log((double)(a)))
#define LANG_F32_TANH(a)    ((float)tanh((double)(a)))
#define LANG_F32_SIGMOID(a) (1.0f / (1.0f + lang_exp_f32(-(a))))
#define LANG_F32_SILU(a)    ((a) / (1.0f + lang_exp_f32(-(a))))
#define LANG_F32_RELU(a)    ((a) > 0.0f ? (a) : 0.0f)
#define LANG_F32_FLOOR(a)   floorf(a)
#define LANG_F32_CEIL(a)    ceilf(a)
#define LANG_F32_ROUND(a)   rintf(a)
#define LANG_F32_SIN(a)     ((float)sin((double)(a)))
#define LANG_F32_COS(a)     ((float)cos((double)(a)))

/* Expands X(OP) for every operation that vectors support, with two operands or with one. */
#define LANG_BINARY_F32(X) X(ADD) X(SUB) X(MUL) X(DIV) X(MIN) X(MAX) X(CUT) X(LT) X(LE) X(GT) X(GE) X(EQ) X(NE)
#define LANG_UNARY_F32(X)                                                                                              \
    X(NEG) X(ABS) X(SQRT) X(EXP) X(LOG) X(TANH) X(SIGMOID) X(SILU) X(RELU) X(FLOOR) X(CEIL) X(ROUND) X(SIN) X(COS)

static inline float lang_f32_binary(lang_op op, float a, float b)
{
    switch (op) {
#define CASE(OP)                                                                                                       \
    case OP_##OP: return LANG_F32_##OP(a, b);
        LANG_BINARY_F32(CASE)
#undef CASE
    default: return 0;
    }
}

static inline float lang_f32_unary(lang_op op, float a)
{
    switch (op) {
#define CASE(OP)                                                                                                       \
    case OP_##OP: return LANG_F32_##OP(a);
        LANG_UNARY_F32(CASE)
#undef CASE
    default: return 0;
    }
}

/* Computes an operation on integers modulo 2^64. Shift counts are taken modulo 64, and right shifts keep the sign. The
 * smallest integer divided by -1 is itself. b must not be 0 for a division or a remainder. */
static inline int64_t lang_i64_binary(lang_op op, int64_t a, int64_t b)
{
    uint64_t u = (uint64_t)a, v = (uint64_t)b;
    switch (op) {
    case OP_ADD: return (int64_t)(u + v);
    case OP_SUB: return (int64_t)(u - v);
    case OP_MUL: return (int64_t)(u * v);
    case OP_DIV: return b == -1 ? (int64_t)(0 - u) : a / b;
    case OP_MOD: return b == -1 ? 0 : a % b;
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_SHL: return (int64_t)(u << (v & 63));
    case OP_SHR: return a >> (v & 63);
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    case OP_XOR: return a ^ b;
    default: return 0;
    }
}

static inline int64_t lang_i64_unary(lang_op op, int64_t a)
{
    if (op == OP_NEG) return (int64_t)(0 - (uint64_t)a);
    if (op == OP_ABS) return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    if (op == OP_NOT) return a == 0;
    return ~a;
}

static inline double lang_f64_binary(lang_op op, double a, double b)
{
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MIN: return a < b ? a : b;
    case OP_MAX: return a > b ? a : b;
    case OP_CUT: return a < b ? -INFINITY : a;
    default: return 0;
    }
}
static inline int64_t lang_f64_compare(lang_op op, double a, double b)
{
    switch (op) {
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    default: return 0;
    }
}

static inline double lang_f64_unary(lang_op op, double a)
{
    switch (op) {
    case OP_NEG: return -a;
    case OP_ABS: return fabs(a);
    case OP_SQRT: return sqrt(a);
    case OP_EXP: return exp(a);
    case OP_LOG: return log(a);
    case OP_TANH: return tanh(a);
    case OP_SIGMOID: return 1 / (1 + exp(-a));
    case OP_SILU: return a / (1 + exp(-a));
    case OP_RELU: return a > 0 ? a : 0;
    case OP_FLOOR: return floor(a);
    case OP_CEIL: return ceil(a);
    case OP_ROUND: return rint(a);
    case OP_SIN: return sin(a);
    case OP_COS: return cos(a);
    default: return 0;
    }
}

static inline int64_t lang_to_int(double a)
{
    if (a != a) return 0;
    if (a >= 0x1p63) return INT64_MAX;
    if (a < -0x1p63) return INT64_MIN;
    return (int64_t)a;
}

#endif
