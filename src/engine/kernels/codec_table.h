/* SPDX-License-Identifier: MIT
 * Defines the codec table: how many bits a codec's numbers have, and which values they encode. It is in a header so
 * that kernels that are compiled for one codec use constants. */
#ifndef WHIT_KERNELS_CODEC_TABLE_H
#define WHIT_KERNELS_CODEC_TABLE_H

#include "base/tensor.h"
#include "kernels/grids.h"

typedef struct whit_codec_info {
    const char *name;
    bool is_float;
    uint8_t line_cols; /* columns of a period, which is the smallest run of lines that contains all bits of its
                        * columns */
    /* lines per period: 1 for most codecs; 2 for q2 (one per plane) and codebooks; more with top bits */
    uint8_t lines;
    uint8_t elem_bytes;     /* bytes of an element of a float codec, else 0 */
    uint8_t bits;           /* bits of a code's field in a line; of t5: of a digit when unpacked; of i8s: of a code; of
                             * a codebook: of the low part of an index */
    uint8_t canonical_bits; /* bits per code in the canonical row */
    int16_t bias;           /* kernels multiply unsigned numbers u = code + bias; is_sign and group_levels have another
                             * u */
    uint8_t largest;        /* upper bound of u for any bit pattern */
    bool is_sign;           /* u is 0 or 1, and code = 2 u - bias */
    uint8_t planes;         /* number of sums per product: 2 for q2, else 1 */
    int8_t code_min, code_max;
    uint16_t group_min;   /* smallest group size; 0: the codec cannot have group scales */
    uint16_t scale_types; /* bit t is set if the codec allows the whit_scale_type t */
    const int8_t *levels; /* levels that the fields of a line select by index; NULL: a field is u itself */
    const uint16_t *grid; /* sorted codebook, whose entries are eight indices of levels; NULL: no codebook */
    /* number of bits of a codebook index above the low eight; for each there is a line before the codes of a
     * superblock */
    uint8_t high_bits;
    bool group_levels; /* a code is the index of one of its group's four levels (WHIT_SCALE_L6), and u is that level
                        * + bias */
    uint8_t top_bits;  /* number of bits of u above the low `bits`; their lines are at the end of a period of 32
                        * columns */
} whit_codec_info;

static const int8_t whit_levels_e2m1[16] = WHIT_GRID_LEVELS_E2M1, whit_levels_nl[16] = WHIT_GRID_LEVELS_NL,
                    whit_levels_iq2[3] = WHIT_GRID_LEVELS_IQ2;

#define WHIT_SCALE_BIT(type) (1u << WHIT_SCALE_##type)
#define WHIT_SCALE_PLAIN     (WHIT_SCALE_BIT(F32) | WHIT_SCALE_BIT(F16) | WHIT_SCALE_BIT(U8))

/* clang-format off */
static const whit_codec_info whit_codecs[WHIT_CODEC_COUNT] = {
    /*                   name   float  cols lines bytes bits canon. bias largest sign planes min max group scales */
    [WHIT_CODEC_F32] =  {"f32", true,  1,  1, 4, 32, 32, 0,   0,   false, 1, 0,    0,   0,   WHIT_SCALE_BIT(F32)},
    [WHIT_CODEC_F16] =  {"f16", true,  2,  1, 2, 16, 16, 0,   0,   false, 1, 0,    0,   0,   WHIT_SCALE_BIT(F32)},
    [WHIT_CODEC_BF16] = {"bf16", true, 2,  1, 2, 16, 16, 0,   0,   false, 1, 0,    0,   0,   WHIT_SCALE_BIT(F32)},
    [WHIT_CODEC_I8] =   {"i8",  false, 4,  1, 0, 8,  8,  128, 255, false, 1, -128, 127, 16,
                         WHIT_SCALE_PLAIN | WHIT_SCALE_BIT(K8)},
    [WHIT_CODEC_I4] =   {"i4",  false, 8,  1, 0, 4,  4,  8,   15,  false, 1, -8,   7,   16,  WHIT_SCALE_PLAIN},
    [WHIT_CODEC_T2] =   {"t2",  false, 16, 1, 0, 2,  2,  1,   3,   false, 1, -1,   2,   16,  WHIT_SCALE_PLAIN},
    [WHIT_CODEC_T5] =   {"t5",  false, 20, 1, 0, 2,  2,  1,   3,   false, 1, -1,   1,   128, WHIT_SCALE_PLAIN},
    [WHIT_CODEC_B1] =   {"b1",  false, 32, 1, 0, 1,  1,  1,   1,   true,  1, -1,   1,   32,  WHIT_SCALE_PLAIN},
    [WHIT_CODEC_Q2] =   {"q2",  false, 32, 2, 0, 1,  2,  1,   1,   true,  2, 0,    3,   32,  WHIT_SCALE_PLAIN},
    [WHIT_CODEC_I8S] =  {"i8s", false, 8,  1, 0, 8,  8,  128, 255, false, 1, -128, 127, 0,   WHIT_SCALE_PLAIN},
    [WHIT_CODEC_U2] =   {"u2",  false, 16, 1, 0, 2,  2,  0,   3,   false, 1, 0,    3,   16,  WHIT_SCALE_BIT(K4)},
    [WHIT_CODEC_I3] =   {"i3",  false, 32, 3, 0, 2,  4,  4,   7,   false, 1, -4,   3,   16,  WHIT_SCALE_BIT(K8),
                         .top_bits = 1},
    [WHIT_CODEC_F4] =   {"f4",  false, 8,  1, 0, 4,  8,  128, 255, false, 1, -12,  12,  16,
                         WHIT_SCALE_BIT(E8) | WHIT_SCALE_BIT(E4), whit_levels_e2m1},
    [WHIT_CODEC_N4] =   {"n4",  false, 8,  1, 0, 4,  8,  128, 255, false, 1, -127, 113, 32,
                         WHIT_SCALE_BIT(F16) | WHIT_SCALE_BIT(K8), whit_levels_nl},
    [WHIT_CODEC_X8] =  {"x8",  false, 32, 2, 0, 8,  3,  128, 255, false, 1, -43,  43,  16,  WHIT_SCALE_BIT(ODD4),
                         whit_levels_iq2, whit_grid_iq2_xxs, 0},
    [WHIT_CODEC_X9] =  {"x9",  false, 32, 2, 0, 8,  3,  128, 255, false, 1, -43,  43,  16,  WHIT_SCALE_BIT(ODD4),
                         whit_levels_iq2, whit_grid_iq2_xs, 1},
    [WHIT_CODEC_X10] = {"x10", false, 32, 2, 0, 8,  3,  128, 255, false, 1, -43,  43,  16,  WHIT_SCALE_BIT(ODD4),
                         whit_levels_iq2, whit_grid_iq2_s, 2},
    [WHIT_CODEC_L2] =   {"l2",  false, 16, 1, 0, 2,  2,  63,  126, false, 1, 0,    3,   32,  WHIT_SCALE_BIT(L6),
                         NULL, NULL, 0, true},
    [WHIT_CODEC_U4] =   {"u4",  false, 8,  1, 0, 4,  4,  0,   15,  false, 1, 0,    15,  16,  WHIT_SCALE_BIT(K16)},
    [WHIT_CODEC_U5] =   {"u5",  false, 32, 5, 0, 4,  8,  0,   31,  false, 1, 0,    31,  16,  WHIT_SCALE_BIT(K16),
                         .top_bits = 1},
    [WHIT_CODEC_I6] =   {"i6",  false, 32, 6, 0, 4,  8,  32,  63,  false, 1, -32,  31,  16,  WHIT_SCALE_BIT(K8),
                         .top_bits = 2},
};
/* clang-format on */

/* Return members of the table's row for an integer codec; compile-time constants if `codec` is one. */
static inline __attribute__((always_inline)) int whit_codec_bits(unsigned codec)
{
    return whit_codecs[codec].bits;
}
static inline __attribute__((always_inline)) int whit_codec_bias(unsigned codec)
{
    return whit_codecs[codec].bias;
}
/* Returns the bias of a stored code, which differs from `bias` for q2 and if codes are indices of a group's levels. */
static inline int whit_codec_code_bias(unsigned codec)
{
    return whit_codecs[codec].group_levels || codec == WHIT_CODEC_Q2 ? 0 : whit_codecs[codec].bias;
}
static inline __attribute__((always_inline)) bool whit_codec_is_sign(unsigned codec)
{
    return whit_codecs[codec].is_sign;
}
static inline __attribute__((always_inline)) uint32_t whit_codec_planes(unsigned codec)
{
    return whit_codecs[codec].planes;
}

#endif
