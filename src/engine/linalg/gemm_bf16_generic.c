/* SPDX-License-Identifier: MIT */
#define GEMM_TILES whit_gemm_tiles_generic
#define GEMM_PAIRS whit_gemm_pairs_generic
#define GEMM_LEVEL "generic"
#define GEMM_ISA   WHIT_ISA_GENERIC
#include "linalg/gemm_bf16_plain.inc"
