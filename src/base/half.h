/* SPDX-License-Identifier: MIT
 * Converts IEEE binary16 and bfloat16 to and from binary32 by integer arithmetic, which gives the same bits on every
 * machine, whatever the caller's rounding mode. Rounding is to nearest, ties to even; subnormals are kept; a signalling
 * NaN becomes quiet (not if bfloat16 is converted to binary32) and keeps the leading bits of its payload. */
#ifndef WHIT_BASE_HALF_H
#define WHIT_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t whit_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float whit_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float whit_f32_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3FF;
    if (exponent == 31) return whit_f32_from_bits(sign | 0x7F800000 | (fraction ? 0x400000 : 0) | fraction << 13);
    if (exponent) return whit_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    if (!fraction) return whit_f32_from_bits(sign);
    uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21; /* brings the leading one to bit 10 */
    return whit_f32_from_bits(sign | (113 - shift) << 23 | (fraction << shift & 0x3FF) << 13);
}

static inline uint16_t whit_f16_from_f32(float value)
{
    uint32_t bits = whit_f32_bits(value), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000) return sign | 0x7C00; /* 65,520 and more round to infinity */
    if (magnitude < 0x33000001) return sign;           /* 2^-25 and less round to zero */
    uint32_t kept, dropped_bits, significand;
    if (magnitude >= 0x38800000) { /* normal: exponent and fraction are rounded as one number, so a carry increments
                                    * the exponent */
        significand = magnitude - 0x38000000;
        dropped_bits = 13;
    } else { /* subnormal: rounded to units of 2^-24 */
        significand = (magnitude & 0x7FFFFF) | 0x800000;
        dropped_bits = 126 - (magnitude >> 23);
    }
    kept = significand >> dropped_bits;
    uint32_t rest = significand & ((1u << dropped_bits) - 1), tie = 1u << (dropped_bits - 1);
    kept += rest > tie || (rest == tie && (kept & 1));
    return (uint16_t)(sign | kept);
}

static inline float whit_f32_from_bf16(uint16_t value)
{
    return whit_f32_from_bits((uint32_t)value << 16);
}

static inline uint16_t whit_bf16_from_f32(float value)
{
    uint32_t bits = whit_f32_bits(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
