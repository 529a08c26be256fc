/* SPDX-License-Identifier: MIT
 * Codebooks of the IQ weight types, in the packed form described in grids.c. Each is sorted, so that an entry's index
 * is found by binary search. The tables are constant, so any thread may read them. */
#ifndef WHIT_KERNELS_GRIDS_H
#define WHIT_KERNELS_GRIDS_H

#include <stdint.h>

/* Each entry has eight two-bit codes, which mean levels: 0, 1, 2 are 8, 25, 43. */
extern const uint16_t whit_grid_iq2_xxs[256], whit_grid_iq2_xs[512], whit_grid_iq2_s[1024];
/* Each entry has eight two-bit codes: 0, 1, 2 are -1, 0, 1. */
extern const uint16_t whit_grid_iq1_s[2048];
/* Each entry has four three-bit codes. A code c of iq3_s is the level 2 c + 1; the codes of iq3_xxs are the levels 4,
 * 12, 20, 28, 36, 44, 52, 62. */
extern const uint16_t whit_grid_iq3_xxs[256], whit_grid_iq3_s[512];

/* Level of each code, in the order of codes. */
#define WHIT_GRID_LEVELS_IQ2                                                                                           \
    {                                                                                                                  \
        8, 25, 43                                                                                                      \
    }
#define WHIT_GRID_LEVELS_IQ3_XXS                                                                                       \
    {                                                                                                                  \
        4, 12, 20, 28, 36, 44, 52, 62                                                                                  \
    }
#define WHIT_GRID_LEVELS_NL                                                                                            \
    {                                                                                                                  \
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113                                       \
    }
#define WHIT_GRID_LEVELS_E2M1                                                                                          \
    {                                                                                                                  \
        0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12                                                        \
    }

/* Returns the sign bits of eight weights from the seven bits that a file stores: the eighth bit makes the number of 1
 * bits even. */
static inline unsigned whit_grid_signs(unsigned index)
{
    return index | (unsigned)__builtin_parity(index) << 7;
}

#endif
