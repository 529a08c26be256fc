/* SPDX-License-Identifier: MIT
 * Activations as operands of matrix kernels: how they are quantised for a tensor, and their layout in memory.
 *
 * Integer activations are q with a scale, x = q s. The columns are cut into *steps*, the longest runs in which neither
 * the weight's scale nor the activation's changes; kernels add integers inside a step and floats across steps. Each
 * step has its scale (repeated where several steps share one) and its sum of q. The caller owns the memory. */
#ifndef WHIT_KERNELS_ACTS_H
#define WHIT_KERNELS_ACTS_H

#include "base/tensor.h"
#include "whit.h"

typedef enum whit_acts_kind {
    WHIT_ACTS_F32 = 0, /* floats, not quantised */
    WHIT_ACTS_I8 = 1,  /* int8 with one scale per token or per group of columns, or a fixed scale */
    WHIT_ACTS_Q2 = 2,  /* {-2, -1, 1, 2} in two bit planes, for products with the codecs b1 and q2 */
    WHIT_ACTS_COUNT
} whit_acts_kind;

/* Form of the activations by which a tensor is multiplied. Tensors with the same input and equal specs share the
 * quantised activations. */
typedef struct whit_acts_spec {
    uint8_t kind;
    uint32_t group; /* columns per activation scale; 0: one scale per token */
    uint32_t step;  /* columns per step; 0: the whole row is one step */
    /* fixed scale of int8 activations, only with group and step 0; 0: scales are computed from the activations */
    float scale;
} whit_acts_spec;

typedef struct whit_acts {
    whit_acts_spec spec;
    uint32_t n_tokens, n_cols;
    uint32_t n_steps;
    size_t stride;    /* distance between tokens: in elements for f32, in bytes for i8 and for one bit plane */
    const float *f32; /* (n_tokens, stride) */
    int8_t *i8;       /* (n_tokens, stride), zeros from n_cols to the stride */
    uint8_t *planes;  /* (n_tokens, 2, stride): planes of s and e, q = (3 s + e) / 2 with bit 1 for +1 and 0 for -1,
                       * in the bit order of b1; zero-padded */
    float *scales;    /* (n_tokens, n_steps): scale of each step */
    int32_t *sums;    /* (n_tokens, n_steps): sum of q in the step */
} whit_acts;

/* Returns the form of activations for a tensor; the first of these rules that applies: f32 for float codecs; quaternary
 * for b1 and q2 if `act`, the session's type, is WHIT_ACT_Q2; int8 per token for WHIT_TENSOR_ACT_TOKEN; int8 with the
 * fixed input scale if the tensor has one; f32 if `act` is WHIT_ACT_F32; int8 in groups. Groups have the weight's group
 * size, at least 32 and at most 128 (128 if the weight has no groups, or has superblocks). */
whit_acts_spec whit_acts_spec_for(const whit_tensor_type *type, whit_act_type act);
/* Returns the form of quaternary activations for a b1 or q2 tensor, whose product needs only bit operations; groups are
 * as in whit_acts_spec_for. */
whit_acts_spec whit_acts_spec_q2(const whit_tensor_type *type);

/* Returns the number of steps in a row. */
uint32_t whit_acts_steps(const whit_acts_spec *spec, uint32_t n_cols);
/* Returns the number of bytes that whit_acts_place needs for n_tokens tokens, a multiple of 64; 0 for f32. */
size_t whit_acts_bytes(const whit_acts_spec *spec, uint32_t n_tokens, uint32_t n_cols);
/* Returns activations whose arrays are in `memory` (64-byte aligned, whit_acts_bytes); the memory is not written. */
whit_acts whit_acts_place(const whit_acts_spec *spec, uint32_t n_tokens, uint32_t n_cols, void *memory);
/* Wraps f32 activations (n_tokens, stride) without a copy. */
whit_acts whit_acts_of_f32(const float *x, size_t stride, uint32_t n_tokens, uint32_t n_cols);
/* Returns a view of tokens [begin, begin + n) of `acts`. */
whit_acts whit_acts_rows(const whit_acts *acts, uint32_t begin, uint32_t n);

/* Returns the integer q of a token's column k; for int8 and quaternary activations. */
static inline int whit_acts_code(const whit_acts *acts, uint32_t token, uint32_t k)
{
    if (acts->spec.kind == WHIT_ACTS_I8) return acts->i8[token * acts->stride + k];
    const uint8_t *signs = acts->planes + 2 * token * acts->stride + k / 32 * 4 + k % 4, bit = k % 32 / 4;
    int s = signs[0] >> bit & 1 ? 1 : -1;
    int e = signs[acts->stride] >> bit & 1 ? 1 : -1;
    return (3 * s + e) / 2;
}

/* Return the ends of step `i`: its columns are [begin, end). */
static inline uint32_t whit_acts_step_begin(const whit_acts *acts, uint32_t i)
{
    return i * acts->spec.step;
}
static inline uint32_t whit_acts_step_end(const whit_acts *acts, uint32_t i)
{
    return i + 1 < acts->n_steps ? (i + 1) * acts->spec.step : acts->n_cols;
}

#endif
