/* SPDX-License-Identifier: MIT
 * Describes the weight types of GGUF files: their sizes, their decoding, and which type of whit represents each
 * exactly.
 *
 * All except the float types have integer codes, a scale per group, row or tensor, and perhaps an offset per group:
 * value = code * scale [+ offset]. The decoders return these numbers as the file has them; float32 rows are computed
 * from them with one rounding, as in ggml. Every bit pattern has a defined value. Nothing here allocates memory. Views
 * are read-only and may be shared by threads. Sources: shared reference formats.md 3 and ggml's published block
 * descriptions.
 *
 * A *kind* has one meaning. A type id in a file may have several, because forks of llama.cpp reuse ids
 * (format/gguf_place.c decides). */
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

/* Where kinds store their scales. */
typedef enum whit_ggml_scales {
    WHIT_GGML_SCALES_NONE,   /* no scales: float types */
    WHIT_GGML_SCALES_GROUP,  /* in each block */
    WHIT_GGML_SCALES_ROW,    /* before the codes of each row, or of each four rows in IQ2_BN_R4 */
    WHIT_GGML_SCALES_TENSOR, /* after the codes of the whole tensor, in I2_S */
} whit_ggml_scales;

typedef struct whit_ggml_info {
    const char *name;
    uint32_t id;          /* type id in the project that defines the kind */
    uint16_t block_elems; /* elements of a block, along a row */
    uint16_t block_bytes;
    uint16_t group_elems;    /* elements per scale; 0: a scale per row or tensor, or no scales */
    uint8_t rows_together;   /* number of rows whose blocks are interleaved: 1 or 4 */
    uint8_t row_scale_bytes; /* bytes of the scale before each row: 0, 2 (f16) or 4 (f32) */
    uint8_t tail_bytes;      /* bytes after the tensor's last block */
    uint8_t scales;          /* whit_ggml_scales */
    bool has_offset;         /* every group has an offset, and its codes begin at 0 */
} whit_ggml_info;

const whit_ggml_info *whit_ggml_kind_info(whit_ggml_kind kind);

/* Writes the kinds that are known to use a type id, most likely first, and returns their number; 0 if the id is
 * unknown. */
#define WHIT_GGML_MAX_CANDIDATES 4
size_t whit_ggml_candidates(uint32_t id, whit_ggml_kind kinds[WHIT_GGML_MAX_CANDIDATES]);
/* Returns whether different projects use the id for different types (not all of which are kinds). gguf_place.c then
 * chooses the kind by the tensors' sizes and scales. */
bool whit_ggml_id_collides(uint32_t id);
/* Returns why tensors with this id (or with one of its meanings) cannot be read, for some ids also what to do; NULL if
 * nothing is known about it. */
const char *whit_ggml_refusal(uint32_t id);

/* Computes the size of n_rows rows of n_cols columns. Returns false if the matrix does not divide into blocks or the
 * size overflows. */
bool whit_ggml_size(whit_ggml_kind kind, uint64_t n_cols, uint64_t n_rows, uint64_t *size_bytes);

/* A matrix in a file. `data` has exactly whit_ggml_size() bytes, at any alignment. */
typedef struct whit_ggml_view {
    whit_ggml_kind kind;
    uint64_t n_cols, n_rows;
    const uint8_t *data;
} whit_ggml_view;

/* Converts one row to float32. out (n_cols) is bit-identical to ggml's own conversion. */
void whit_ggml_row_f32(const whit_ggml_view *view, uint64_t row, float *out);

/* Decodes block `index` of a row: up to 256 codes, 16 scales and, if the kind has them, 16 offsets. Not for float
 * kinds. Returns the number of columns decoded. The block must begin before the row's end. */
#define WHIT_GGML_BLOCK_ELEMS  256
#define WHIT_GGML_BLOCK_GROUPS 16
unsigned whit_ggml_block_codes(const whit_ggml_view *view, uint64_t row, uint64_t index, int8_t *codes, float *scales,
                               float *offsets);

/* Reads the eight pairs (scale, minimum) of six-bit numbers of a Q4_K or Q5_K block. They are packed in 12 bytes after
 * d and dmin. Pairs 0 to 3 are the low six bits of bytes 0..3 and 4..7. Pairs 4 to 7 have their low four bits in the
 * nibbles of bytes 8..11 and their high two in the top bits of bytes 0..7. */
void whit_ggml_k_numbers(const uint8_t *block, uint8_t numbers[16]);

/* The twin of a GGUF tensor: the type of whit that represents it exactly. It depends on the tensor's content. For
 * example, a ternary matrix is t5 only if no code is 2; Q4_1 is i4 only if every shifted offset is exact in float32,
 * and i8 otherwise. */
typedef struct whit_ggml_twin {
    whit_tensor_type type; /* `layout` and `act` are not set */
    bool is_ternary;       /* the codec is t2 or t5, and all codes are -1, 0 or 1; there are no offsets */
    bool one_scale;        /* all scales of the tensor equal `scale`, and there are no offsets */
    float scale;           /* valid only if one_scale is true */
} whit_ggml_twin;

/* Finds the twin of a tensor. `name` is for messages. Fails if the tensor has too many rows or columns for whit, or if
 * an I2_S matrix has the invalid code 3 (then it is damaged, or of another type under I2_S's id). */
whit_status whit_ggml_find_twin(const whit_ggml_view *view, const char *name, whit_ggml_twin *twin, whit_error *error);
/* If all scales are equal and the codec allows a float32 scale, changes the twin to one scale for the whole tensor, and
 * its codec to t5 if it is ternary; the values stay the same. Otherwise does nothing. */
void whit_ggml_narrow_twin(whit_ggml_twin *twin);

/* Converts one row exactly to the twin's type, in the form of whit_codec_pack (kernels/codec.h). elems: codes in the
 * codec's range (b1: -1 or 1; i4: -8..7). fields: each group's scale and offset, or the factors of each superblock; one
 * scale if the twin's scales are per row or tensor. fields_u8: the byte-sized scales of the groups. Not for float
 * kinds, whose twin has the file's own bytes. */
void whit_ggml_row_twin(const whit_ggml_view *view, const whit_ggml_twin *twin, uint64_t row, const whit_rows *rows);

#endif
