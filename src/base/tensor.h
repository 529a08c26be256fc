/* SPDX-License-Identifier: MIT
 * Describes a weight tensor independently of where it is stored: types that the file format, kernels and models share.
 *
 * A matrix has n_rows outputs and n_cols inputs. The values of the enums are stored in files (docs/dev/format.md), so
 * their meaning never changes. */
#ifndef WHIT_BASE_TENSOR_H
#define WHIT_BASE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum whit_codec {
    WHIT_CODEC_F32 = 0,
    WHIT_CODEC_F16 = 1,
    WHIT_CODEC_BF16 = 2,
    WHIT_CODEC_I8 = 3,
    WHIT_CODEC_I4 = 4,
    WHIT_CODEC_T2 = 5,   /* -1 to 2 in two bits; ternary weights use -1 to 1 */
    WHIT_CODEC_T5 = 6,   /* -1 to 1, five in a byte */
    WHIT_CODEC_B1 = 7,   /* signs, -1 or 1, in one bit */
    WHIT_CODEC_Q2 = 8,   /* two planes of signs s and e (-1 or 1): value a s + b e */
    WHIT_CODEC_I8S = 9,  /* i8 as a plane of high nibbles and one of low nibbles, for an output head that is screened
                          * by high nibbles */
    WHIT_CODEC_U2 = 10,  /* 0 to 3 in two bits */
    WHIT_CODEC_I3 = 11,  /* -4 to 3 in three bits */
    WHIT_CODEC_F4 = 12,  /* floats of four bits (E2M1), doubled: 0 1 2 3 4 6 8 12 and their negatives */
    WHIT_CODEC_N4 = 13,  /* sixteen levels of IQ4_NL in four bits */
    WHIT_CODEC_X8 = 14,  /* eight weights as signs and an index of 8 bits into IQ2_XXS's codebook */
    WHIT_CODEC_X9 = 15,  /* as X8, with an index of 9 bits into IQ2_XS's codebook */
    WHIT_CODEC_X10 = 16, /* as X8, with an index of 10 bits into IQ2_S's codebook */
    WHIT_CODEC_L2 = 17,  /* four levels in two bits: -63, -r, r and 63 times the group's scale; r is stored per
                          * group */
    WHIT_CODEC_U4 = 18,  /* 0 to 15 in four bits */
    WHIT_CODEC_U5 = 19,  /* 0 to 31 in five bits */
    WHIT_CODEC_I6 = 20,  /* -32 to 31 in six bits */
    WHIT_CODEC_COUNT
} whit_codec;

/* Order of the codes in the part WHIT_PART_CODES (docs/dev/kernels.md, docs/dev/format.md). */
typedef enum whit_layout {
    WHIT_LAYOUT_PLAIN = 0,  /* row-major, float codecs only: vectors and small tables */
    WHIT_LAYOUT_TILE16 = 1, /* tiles of 16 rows; a tile is a sequence of 64-byte lines along the columns */
    WHIT_LAYOUT_COUNT
} whit_layout;

typedef enum whit_scale_kind {
    WHIT_SCALE_NONE = 0,   /* no scales: float codecs */
    WHIT_SCALE_TENSOR = 1, /* one scale per tensor: whit_tensor_type.scale (Q2: and scale_b) */
    WHIT_SCALE_ROW = 2,    /* one scale per row, in the part WHIT_PART_ROW_SCALES */
    WHIT_SCALE_GROUP = 3,  /* one scale per group of columns of a row, interleaved with the codes */
} whit_scale_kind;

typedef enum whit_scale_type {
    WHIT_SCALE_F32 = 0,
    WHIT_SCALE_F16 = 1,
    WHIT_SCALE_U8 = 2, /* a u8 per group times an f16 per row (part WHIT_PART_ROW_SCALES) */
    /* The next three types have a byte or nibble b per group and f16 factors d (K4: d and e) per superblock of 256
     * columns, interleaved with the codes: */
    WHIT_SCALE_K4 = 3,   /* scale d * (b & 15), offset -(e * (b >> 4)) */
    WHIT_SCALE_K8 = 4,   /* scale d * (b - 128) */
    WHIT_SCALE_ODD4 = 5, /* scale d * (2 b + 1) / 8, b of four bits */
    /* The next two types have one byte b per group; the scale is half of the float that b encodes: */
    WHIT_SCALE_E8 = 6, /* E8M0: scale 2^(b - 128) */
    WHIT_SCALE_E4 = 7, /* E4M3 without a sign; the scale is also multiplied by whit_tensor_type.scale */
    /* The next type has two bytes u per group: the scale is f16((u >> 6) << 5) / 64, and the r of WHIT_CODEC_L2 is u &
     * 63: */
    WHIT_SCALE_L6 = 8,
    /* The next type has two bytes b and c per group, and f16 factors d and e per superblock like K4: */
    WHIT_SCALE_K16 = 9, /* scale d * b, offset -(e * c) */
    WHIT_SCALE_TYPE_COUNT
} whit_scale_type;

/* Quantisation of a tensor's input activations. */
typedef enum whit_tensor_act {
    WHIT_TENSOR_ACT_AUTO = 0,  /* f32 for float codecs; for integer codecs the session chooses */
    WHIT_TENSOR_ACT_TOKEN = 1, /* always int8 with one scale per token (BitNet's W1.58A8) */
    WHIT_TENSOR_ACT_FIXED = 2, /* int8 inputs and outputs with the fixed scales `scale` and `scale_b` of the tensor's
                                * type (wNa8o8) */
} whit_tensor_act;

/* Parts of one tensor. Each has its own offset and length in the file. */
typedef enum whit_part {
    WHIT_PART_CODES = 0,      /* codes (or floats), with interleaved group scales */
    WHIT_PART_ROW_SCALES = 1, /* fields of each row: scale (Q2: a and b) and offset, if any, as f32 or f16; or their f16
                               * factors for WHIT_SCALE_U8 */
    WHIT_PART_LOW = 2,        /* low nibbles of I8S, row-major */
    WHIT_PART_PLANE = 3,      /* correction: a second plane of signs on some columns (kernels/corrections.h) */
    WHIT_PART_OUTLIERS = 4,   /* correction: single weights, as columns and i8 values (kernels/corrections.h) */
    WHIT_PART_FACTOR_A = 5,   /* correction: int8 factor A of a low-rank product B A */
    WHIT_PART_FACTOR_B = 6,   /* correction: int8 factor B of the same product */
    WHIT_PART_COUNT = 8
} whit_part;

typedef struct whit_tensor_type {
    uint8_t codec;      /* whit_codec */
    uint8_t layout;     /* whit_layout */
    uint8_t scale_kind; /* whit_scale_kind */
    uint8_t scale_type; /* whit_scale_type */
    uint8_t has_offset; /* 1: value = scale * code + offset (Q2: a s + b e + offset); 0: no offsets */
    uint8_t act;        /* whit_tensor_act */
    uint16_t group;     /* columns per scale (16, 32, 64, 128 or 256); 0 without group scales */
    uint32_t n_rows;
    uint32_t n_cols;
    float scale;   /* WHIT_SCALE_TENSOR: the scale (Q2: a); WHIT_SCALE_E4: a factor of all scales;
                    * WHIT_TENSOR_ACT_FIXED: scale of the input activations, or 0 */
    float scale_b; /* WHIT_SCALE_TENSOR with Q2: b; WHIT_TENSOR_ACT_FIXED: scale of the outputs, or 0 if outputs are
                    * not rounded; otherwise 0 */
    float offset;
    uint32_t reserved; /* must be 0 */
} whit_tensor_type;
_Static_assert(sizeof(whit_tensor_type) == 32, "stored in files as it is");

/* Return the fixed scale of a tensor's input activations, or of its outputs; 0 without a fixed scale. */
static inline float whit_fixed_input_scale(const whit_tensor_type *type)
{
    return type->act == WHIT_TENSOR_ACT_FIXED ? type->scale : 0;
}
static inline float whit_fixed_output_scale(const whit_tensor_type *type)
{
    return type->act == WHIT_TENSOR_ACT_FIXED ? type->scale_b : 0;
}

/* A tensor in memory: its type, and pointers to its parts, which belong to a mapped file or another buffer. */
typedef struct whit_tensor {
    whit_tensor_type type;
    const uint8_t *part[WHIT_PART_COUNT]; /* NULL if the part is absent; 64-byte aligned */
    uint64_t part_bytes[WHIT_PART_COUNT];
} whit_tensor;

#endif
