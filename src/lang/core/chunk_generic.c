/* SPDX-License-Identifier: MIT */
#define LEVEL lang_chunk_generic
#include "lang/core/chunk.inc"
