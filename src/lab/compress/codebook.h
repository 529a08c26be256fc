/* SPDX-License-Identifier: MIT
 * Represents eight weights together as an entry of a codebook and signs: IQ2_XXS, IQ2_XS and IQ2_S. */
#ifndef WHIT_COMPRESS_CODEBOOK_H
#define WHIT_COMPRESS_CODEBOOK_H

#include "compress/levels.h"

enum { WHIT_CODEBOOK_COLS = 8, WHIT_CODEBOOK_CHOICES = 8 };

/* Finds the n entries (1 to WHIT_CODEBOOK_CHOICES) with the least sum of weights[i] * (w[i] - scale * codes[i])^2, the
 * best first, equal ones by their index. Signs follow w; where the GGUF type of the codec (x8, x9) needs an even number
 * of negative ones, the sign that costs least is turned. `scale` is above zero. */
void whit_codebook_nearest(whit_codec codec, const float w[WHIT_CODEBOOK_COLS], const float weights[WHIT_CODEBOOK_COLS],
                           float scale, uint32_t n, int8_t codes[][WHIT_CODEBOOK_COLS]);

/* Finds the numbers of the levels that the eight codes stand for. */
void whit_codebook_numbers(const whit_levels *levels, const int8_t codes[WHIT_CODEBOOK_COLS],
                           uint8_t numbers[WHIT_CODEBOOK_COLS]);
/* Finds the nearest entry, and writes the numbers of its levels. */
void whit_codebook_round(whit_codec codec, const whit_levels *levels, const float w[WHIT_CODEBOOK_COLS],
                         const float weights[WHIT_CODEBOOK_COLS], float scale, uint8_t numbers[WHIT_CODEBOOK_COLS]);

#endif
