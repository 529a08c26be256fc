/* SPDX-License-Identifier: MIT
 * Rounds eight weights at a time to a codebook entry and signs: IQ2_XXS, IQ2_XS and IQ2_S. */
#ifndef WHIT_COMPRESS_CODEBOOK_H
#define WHIT_COMPRESS_CODEBOOK_H

#include "compress/levels.h"

enum { WHIT_CODEBOOK_COLS = 8, WHIT_CODEBOOK_CHOICES = 8 };

/* Finds the n entries (1 to WHIT_CODEBOOK_CHOICES) with the smallest sums of weights[i] * (w[i] - scale * codes[i])^2,
 * the best first, equal ones in the order of their indices. The signs are those of w; if the GGUF type of the codec
 * (x8, x9) needs an even number of negative signs, the sign is changed that increases the sum least. `scale` must be
 * positive. */
void whit_codebook_nearest(whit_codec codec, const float w[WHIT_CODEBOOK_COLS], const float weights[WHIT_CODEBOOK_COLS],
                           float scale, uint32_t n, int8_t codes[][WHIT_CODEBOOK_COLS]);

/* Finds the index of the level that each of the eight codes belongs to. */
void whit_codebook_numbers(const whit_levels *levels, const int8_t codes[WHIT_CODEBOOK_COLS],
                           uint8_t numbers[WHIT_CODEBOOK_COLS]);
/* Finds the nearest entry and writes the indices of its levels. */
void whit_codebook_round(whit_codec codec, const whit_levels *levels, const float w[WHIT_CODEBOOK_COLS],
                         const float weights[WHIT_CODEBOOK_COLS], float scale, uint8_t numbers[WHIT_CODEBOOK_COLS]);

#endif
