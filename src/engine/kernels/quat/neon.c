/* SPDX-License-Identifier: MIT
 * Builds the kernels of quaternary vectors in 128-bit words. */
#include <arm_neon.h>

#include "kernels/quat/declare.h"

#define QUAT(op)   whit_quat_##op##_neon
#define VN         2
#define V          uint64x2_t
#define v_and      vandq_u64
#define v_xor      veorq_u64
#define v_zero     vdupq_n_u64(0)
#define v_not(a)   v_xor(a, vdupq_n_u64(~(uint64_t)0))
#define v_minus    vsubq_u64
#define v_plus     vaddq_u64
#define v_count(v) vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(v)))))
#define v_total    vaddvq_u64

static inline uint64x2_t v_load(const uint64_t *p, uint32_t n)
{
    return n == VN ? vld1q_u64(p) : vcombine_u64(vld1_u64(p), vdup_n_u64(0));
}

static inline uint64x2_t v_load_lanes(const uint64_t *p, uint32_t n, uint64_t mask)
{
    uint64_t masks[2] = {n == 1 ? mask : ~(uint64_t)0, mask};
    return v_and(v_load(p, n), vld1q_u64(masks));
}

#include "kernels/quat/counts.inc"
#include "kernels/quat/elements.inc"
