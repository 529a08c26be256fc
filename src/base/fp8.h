/* SPDX-License-Identifier: MIT
 * Converts floats of eight bits to binary32 exactly: scales and weights of published checkpoints (OCP 8-bit floating
 * point and Microscaling specifications). */
#ifndef WHIT_BASE_FP8_H
#define WHIT_BASE_FP8_H

#include "base/half.h"

/* Converts a scale in E8M0, which is the power of two 2^(e - 127); e = 255 is NaN. */
static inline float whit_f32_from_e8m0(uint8_t e)
{
    return whit_f32_from_bits(e == 255 ? 0x7FC00000u : e == 0 ? 0x00400000u : (uint32_t)e << 23);
}

/* Converts E4M3 without infinities: bias 7, subnormals in units of 2^-9; the largest bit pattern of either sign (0x7F,
 * 0xFF) is NaN. */
static inline float whit_f32_from_e4m3(uint8_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x80) << 24, magnitude = bits & 0x7Fu;
    if (magnitude == 0x7F) return whit_f32_from_bits(sign | 0x7FC00000u);
    float value = magnitude < 8 ? (float)magnitude * 0x1p-9f : whit_f32_from_bits((magnitude << 20) + (120u << 23));
    return whit_f32_from_bits(sign | whit_f32_bits(value));
}

/* Converts a scale of NVFP4 in GGUF files: E4M3 whose sign bit is ignored and whose largest bit pattern (0x7F) means
 * 0. */
static inline float whit_f32_from_ue4m3(uint8_t bits)
{
    bits &= 0x7F;
    return bits == 0x7F ? 0.0f : whit_f32_from_e4m3(bits);
}

#endif
