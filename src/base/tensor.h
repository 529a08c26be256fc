/* SPDX-License-Identifier: MIT
 * What a weight tensor is, apart from where it lies: the words that format, kernels and model share.
 *
 * A matrix has n_rows outputs and n_cols inputs. Numbers of the enums are stored in files
 * (docs/dev/format.md); they never change their meaning. */
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
    WHIT_CODEC_T2 = 5,   /* ternary (or -1..2) in 2 bits */
    WHIT_CODEC_T5 = 6,   /* ternary, five in a byte */
    WHIT_CODEC_B1 = 7,   /* signs */
    WHIT_CODEC_Q2 = 8,   /* two sign planes: a s + b e */
    WHIT_CODEC_I8S = 9,  /* i8 as two nibble planes: the screened head */
    WHIT_CODEC_U2 = 10,  /* 0 to 3 in two bits */
    WHIT_CODEC_I3 = 11,  /* -4 to 3 in three bits */
    WHIT_CODEC_F4 = 12,  /* floats of four bits, doubled: 0 1 2 3 4 6 8 12 and their negatives */
    WHIT_CODEC_N4 = 13,  /* sixteen levels of IQ4_NL */
    WHIT_CODEC_X8 = 14,  /* eight weights as signs and an entry of a codebook: IQ2_XXS's, 8 bits of index */
    WHIT_CODEC_X9 = 15,  /* IQ2_XS's, 9 bits */
    WHIT_CODEC_X10 = 16, /* IQ2_S's, 10 bits */
    WHIT_CODEC_L2 = 17,  /* four levels of a group, -63, -r, r and 63 times its scale, in two bits */
    WHIT_CODEC_U4 = 18,  /* 0 to 15 in four bits */
    WHIT_CODEC_U5 = 19,  /* 0 to 31 in five bits */
    WHIT_CODEC_I6 = 20,  /* -32 to 31 in six bits */
    WHIT_CODEC_COUNT
} whit_codec;

/* Says how codes lie in the main part (docs/dev/kernels.md, docs/dev/format.md). */
typedef enum whit_layout {
    WHIT_LAYOUT_PLAIN = 0,  /* row-major, float codecs only: vectors and small tables */
    WHIT_LAYOUT_TILE16 = 1, /* tiles of 16 rows, 64-byte lines along k */
    WHIT_LAYOUT_COUNT
} whit_layout;

typedef enum whit_scale_kind {
    WHIT_SCALE_NONE = 0,   /* float codecs */
    WHIT_SCALE_TENSOR = 1, /* in the tensor's type */
    WHIT_SCALE_ROW = 2,    /* a separate array, part WHIT_PART_ROW_SCALES */
    WHIT_SCALE_GROUP = 3,  /* interleaved with the codes */
} whit_scale_kind;

typedef enum whit_scale_type {
    WHIT_SCALE_F32 = 0,
    WHIT_SCALE_F16 = 1,
    WHIT_SCALE_U8 = 2, /* u8 per group times f16 per row (part WHIT_PART_ROW_SCALES) */
    /* The scale types below have a byte or nibble per group times f16 factors per superblock of 256 columns, all
     * interleaved: */
    WHIT_SCALE_K4 = 3,   /* scale d (b & 15), offset -(e (b >> 4)) */
    WHIT_SCALE_K8 = 4,   /* scale d (b - 128) */
    WHIT_SCALE_ODD4 = 5, /* scale d (2 b + 1) / 8, b of four bits */
    /* One byte per group that encodes a float, halved: */
    WHIT_SCALE_E8 = 6, /* E8M0: 2^(b - 128) */
    WHIT_SCALE_E4 = 7, /* E4M3 without a sign, times the type's `scale` */
    /* The next type has two bytes u per group: the scale is f16((u >> 6) << 5) / 64 and the low level r = u & 63: */
    WHIT_SCALE_L6 = 8,
    /* The next type has two bytes per group times f16 factors per superblock, as K4: */
    WHIT_SCALE_K16 = 9, /* scale d b, offset -(e c) */
    WHIT_SCALE_TYPE_COUNT
} whit_scale_type;

/* Says how this tensor's input activations are quantised. */
typedef enum whit_tensor_act {
    WHIT_TENSOR_ACT_AUTO = 0,  /* f32 for float matrices; chosen by the session for coded ones */
    WHIT_TENSOR_ACT_TOKEN = 1, /* W1.58A8: int8 with one scale per token, always */
    WHIT_TENSOR_ACT_FIXED = 2, /* wNa8o8: int8 inputs and outputs with fixed scales, `scale` and `scale_b` */
} whit_tensor_act;

/* Lists the parts of one tensor, each of which has its own place and length in the file. */
typedef enum whit_part {
    WHIT_PART_CODES = 0,      /* main codes with interleaved group scales */
    WHIT_PART_ROW_SCALES = 1, /* per row: f32, f16, or the f16 of WHIT_SCALE_U8; q2: (a, b) pairs */
    WHIT_PART_LOW = 2,        /* i8s: low nibbles, row-major */
    WHIT_PART_PLANE = 3,      /* second sign plane on some columns (kernels/corrections.h) */
    WHIT_PART_OUTLIERS = 4,   /* single weights: per row u8 gap + i8 */
    WHIT_PART_FACTOR_A = 5,   /* low-rank pair, int8 */
    WHIT_PART_FACTOR_B = 6,
    WHIT_PART_COUNT = 8
} whit_part;

typedef struct whit_tensor_type {
    uint8_t codec;      /* whit_codec */
    uint8_t layout;     /* whit_layout */
    uint8_t scale_kind; /* whit_scale_kind */
    uint8_t scale_type; /* whit_scale_type */
    uint8_t has_offset; /* value = scale * code + offset, the offset stored after its scale */
    uint8_t act;        /* whit_tensor_act */
    uint16_t group;     /* columns per scale (16, 32, 64, 128, 256); 0 without group scales */
    uint32_t n_rows;
    uint32_t n_cols;
    float scale;   /* WHIT_SCALE_TENSOR; q2: a; WHIT_SCALE_E4: a factor of all scales; ACT_FIXED: inputs' scale or 0 */
    float scale_b; /* q2: b; ACT_FIXED: outputs' scale, or 0: outputs are not rounded */
    float offset;
    uint32_t reserved; /* 0 */
} whit_tensor_type;
_Static_assert(sizeof(whit_tensor_type) == 32, "stored in files as it is");

/* Return the fixed scale of a tensor's input activations and that of its outputs; 0: no fixed scale. */
static inline float whit_fixed_input_scale(const whit_tensor_type *type)
{
    return type->act == WHIT_TENSOR_ACT_FIXED ? type->scale : 0;
}
static inline float whit_fixed_output_scale(const whit_tensor_type *type)
{
    return type->act == WHIT_TENSOR_ACT_FIXED ? type->scale_b : 0;
}

/* Describes a tensor in memory: its type and its parts, which are used in place (mapped files, test buffers). */
typedef struct whit_tensor {
    whit_tensor_type type;
    const uint8_t *part[WHIT_PART_COUNT]; /* NULL where absent; 64-byte aligned */
    uint64_t part_bytes[WHIT_PART_COUNT];
} whit_tensor;

#endif
