/* SPDX-License-Identifier: MIT */
#define LEVEL lang_chunk_avx2
#include "lang/core/chunk.inc"
