/* SPDX-License-Identifier: MIT
 * Describes the weight types of GGUF files: sizes, decoding, and which codec of whit holds each exactly.
 *
 * All but the float types are (integer code) x (scale of its group) [+ offset of its group], and the decoders give just
 * that, in the file's own terms; float32 rows are made from it in one rounding, as ggml makes them. Every bit pattern
 * has a defined value. Nothing here allocates; views are read-only and may be shared by threads. The sources are shared
 * reference formats.md 3 and ggml's published block descriptions.
 *
 * A *kind* has one meaning, unlike the type id in a file, which forks reuse (format/gguf.h decides). */
#ifndef WHIT_FORMAT_GGML_TYPES_H
#define WHIT_FORMAT_GGML_TYPES_H

#include "base/mem.h"
#include "base/tensor.h"
#include "kernels/codec.h"

typedef enum whit_ggml_kind {
    WHIT_GGML_F32,
    WHIT_GGML_F16,
    WHIT_GGML_BF16,
    WHIT_GGML_Q4_0,
    WHIT_GGML_Q4_1,
    WHIT_GGML_Q5_0,
    WHIT_GGML_Q5_1,
    WHIT_GGML_Q8_0,
    WHIT_GGML_Q4_K,
    WHIT_GGML_Q5_K,
    WHIT_GGML_Q6_K,
    WHIT_GGML_IQ4_NL,
    WHIT_GGML_Q2_K,
    WHIT_GGML_Q3_K,
    WHIT_GGML_IQ1_S,
    WHIT_GGML_IQ1_M,
    WHIT_GGML_IQ2_XXS,
    WHIT_GGML_IQ2_XS,
    WHIT_GGML_IQ2_S,
    WHIT_GGML_IQ3_XXS,
    WHIT_GGML_IQ3_S,
    WHIT_GGML_IQ4_XS,
    WHIT_GGML_MXFP4,
    WHIT_GGML_NVFP4,
    WHIT_GGML_I2_S,
    WHIT_GGML_TQ1_0,
    WHIT_GGML_TQ2_0,
    WHIT_GGML_Q1_0,
    WHIT_GGML_Q2_0,
    WHIT_GGML_PQ2_0,
    WHIT_GGML_PTQ1_0,
    WHIT_GGML_STQ1_0,
    WHIT_GGML_IQ1_BN,
    WHIT_GGML_IQ2_BN,
    WHIT_GGML_IQ2_BN_R4,
    WHIT_GGML_KIND_COUNT
} whit_ggml_kind;

/* Lists the forms in which kinds store their scales. */
typedef enum whit_ggml_scales {
    WHIT_GGML_SCALES_NONE,   /* float types */
    WHIT_GGML_SCALES_GROUP,  /* in the blocks */
    WHIT_GGML_SCALES_ROW,    /* before the codes of each row (of each four rows in IQ2_BN_R4) */
    WHIT_GGML_SCALES_TENSOR, /* after the codes of the tensor (I2_S) */
} whit_ggml_scales;

typedef struct whit_ggml_info {
    const char *name;
    uint32_t id;          /* type id in the kind's own project */
    uint16_t block_elems; /* elements of a block, along a row */
    uint16_t block_bytes;
    uint16_t group_elems;    /* elements per scale; 0: a scale per row or tensor, or no scales */
    uint8_t rows_together;   /* rows interleaved in one block: 1, or 4 */
    uint8_t row_scale_bytes; /* bytes of the scale before each row: 0, 2 (f16) or 4 (f32) */
    uint8_t tail_bytes;      /* bytes after the last block */
    uint8_t scales;          /* whit_ggml_scales */
    bool has_offset;         /* codes begin at 0 and every group has an offset */
} whit_ggml_info;

const whit_ggml_info *whit_ggml_kind_info(whit_ggml_kind kind);

/* Lists the kinds that are known to use a type id, most likely first, at most 4; returns their number, 0: unknown
 * id. */
#define WHIT_GGML_MAX_CANDIDATES 4
size_t whit_ggml_candidates(uint32_t id, whit_ggml_kind kinds[WHIT_GGML_MAX_CANDIDATES]);
/* Returns whether the id has several meanings in use, so that a file's claim must be checked by stride. */
bool whit_ggml_id_collides(uint32_t id);
/* Returns why an id (or one of its meanings) cannot be read and what to do; NULL if nothing is known about it. */
const char *whit_ggml_refusal(uint32_t id);

/* Computes the bytes of n_rows rows of n_cols columns; false if the shape does not divide into blocks or overflows. */
bool whit_ggml_size(whit_ggml_kind kind, uint64_t n_cols, uint64_t n_rows, uint64_t *size_bytes);

/* Describes a matrix in a file. data holds exactly whit_ggml_size() bytes, at any alignment. */
typedef struct whit_ggml_view {
    whit_ggml_kind kind;
    uint64_t n_cols, n_rows;
    const uint8_t *data;
} whit_ggml_view;

/* Converts one row to float32: out (n_cols) equals ggml's own conversion, to the bit. */
void whit_ggml_row_f32(const whit_ggml_view *view, uint64_t row, float *out);

/* Decodes block `index` of a row of a coded kind: up to 256 codes, 16 scales and, if the kind has them, offsets.
 * Returns the number of columns; the caller must not ask for blocks beyond the row's end. */
#define WHIT_GGML_BLOCK_ELEMS  256
#define WHIT_GGML_BLOCK_GROUPS 16
unsigned whit_ggml_block_codes(const whit_ggml_view *view, uint64_t row, uint64_t index, int8_t *codes, float *scales,
                               float *offsets);

/* Reads the eight pairs of six-bit numbers of a Q4_K or Q5_K block; a pair is a scale's number and a minimum's. They
 * lie in 12 bytes after two halves: the first four pairs in the low six bits of bytes 0..3 and 4..7, the last four in
 * the nibbles of bytes 8..11 and the top two bits of the others. */
void whit_ggml_k_numbers(const uint8_t *block, uint8_t numbers[16]);

/* Describes the twin of a tensor, which is whit's type that holds it exactly. It is found by reading the tensor: a
 * ternary matrix is t5 only if no code is 2, Q4_1 is i4 only if every shifted offset is exact in float32 (i8
 * otherwise). */
typedef struct whit_ggml_twin {
    whit_tensor_type type; /* all fields except layout and act */
    bool is_ternary;       /* all codes are -1, 0 or 1, and there is no offset */
    bool one_scale;        /* every scale of the tensor equals `scale`, and there is no offset */
    float scale;           /* set if one_scale */
} whit_ggml_twin;

/* Finds the twin of a tensor. Fails if the shape is too large for whit's tensors, or if an I2_S matrix holds an invalid
 * code (then it has another layout with I2_S's id). `name` is for messages. */
whit_status whit_ggml_find_twin(const whit_ggml_view *view, const char *name, whit_ggml_twin *twin, whit_error *error);
/* Narrows the twin to one scale for the whole tensor if all scales are equal (its codec is then t5 if it is ternary);
 * the values stay the same. Otherwise it has no effect. */
void whit_ggml_narrow_twin(whit_ggml_twin *twin);

/* Gives one row in the twin's terms, exactly, as whit_codec_pack takes it (kernels/codec.h): codes in the codec's range
 * (b1: -1 or 1; i4: -8..7); fields: per group its scale, then its offset, or the factors of its superblocks; fields_u8:
 * the bytes of its groups. There is one field if the twin's scales are per row or tensor. For coded kinds only, because
 * the twin of a float kind has the file's own bytes. */
void whit_ggml_row_twin(const whit_ggml_view *view, const whit_ggml_twin *twin, uint64_t row, const whit_rows *rows);

#endif
