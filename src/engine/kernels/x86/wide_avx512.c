/* SPDX-License-Identifier: MIT
 * Builds all kernels except matrix products for the level avx512. */
#include "kernels/x86/lanes_avx512.inc"

#include "kernels/wide/vector.inc"
#include "kernels/wide/attention.inc"
#include "kernels/wide/attention_f32.inc"
#include "kernels/wide/attention_codes.inc"
#include "kernels/wide/kv_store.inc"
#include "kernels/wide/attention_bitmap.inc"

/* Configures a second version of kv_attend_bitmap, which counts bits with VPOPCNTDQ. */
#define WIDE_POPCOUNT(op) whit_##op##_avx512popcount
#define COUNTED(name)     name##_popcount
#define COUNT_TARGET      __attribute__((target("avx512vpopcntdq")))
#define count_active(active, plane, positive)                                                                          \
    _mm512_popcnt_epi32(_mm512_ternarylogic_epi32(active, plane, positive, 0x60))
#include "kernels/wide/bitmap_counts.inc"
#include "kernels/wide/attention_nibbles.inc"
#include "kernels/wide/attention_packed.inc"
#include "kernels/wide/screen.inc"
#include "kernels/wide/recurrent.inc"
#include "kernels/wide/low_rank.inc"
#include "kernels/wide/outliers.inc"
