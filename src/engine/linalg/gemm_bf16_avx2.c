/* SPDX-License-Identifier: MIT */
#define GEMM_TILES whit_gemm_tiles_avx2
#define GEMM_PAIRS whit_gemm_pairs_avx2
#define GEMM_LEVEL "avx2"
#define GEMM_ISA   WHIT_ISA_AVX2
#include "linalg/gemm_bf16_plain.inc"
