/* SPDX-License-Identifier: MIT
 * Builds all kernels except matrix products for the level avx2. */
#include "kernels/x86/lanes_avx2.inc"

#include "kernels/wide/vector.inc"
#include "kernels/wide/attention.inc"
#include "kernels/wide/attention_f32.inc"
#include "kernels/wide/attention_codes.inc"
#include "kernels/wide/kv_store.inc"
#include "kernels/wide/attention_bitmap.inc"
#include "kernels/wide/attention_nibbles.inc"
#include "kernels/wide/attention_packed.inc"
#include "kernels/wide/screen.inc"
#include "kernels/wide/recurrent.inc"
#include "kernels/wide/low_rank.inc"
#include "kernels/wide/outliers.inc"
