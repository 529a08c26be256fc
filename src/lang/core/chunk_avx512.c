/* SPDX-License-Identifier: MIT */
#define LEVEL lang_chunk_avx512
#include "lang/core/chunk.inc"
