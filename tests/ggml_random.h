/* SPDX-License-Identifier: MIT
 * Makes random matrices of every weight type of GGUF files. */
#ifndef WHIT_TESTS_GGML_RANDOM_H
#define WHIT_TESTS_GGML_RANDOM_H

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "format/ggml_types.h"

/* Returns a random f16 scale as real models have: positive, finite, from 2^-12 to 2^-3. */
static inline uint16_t random_half(whit_rng *rng)
{
    return (uint16_t)(0x0C00 + whit_rng_below(rng, 0x2400));
}

/* Returns a matrix of random codes with plausible scales, which the caller frees; NULL if the rows do not divide into
 * blocks. */
static inline uint8_t *random_tensor(whit_ggml_kind kind, uint64_t n_cols, uint64_t n_rows, uint64_t *size,
                                     whit_rng *rng)
{
    const whit_ggml_info *info = whit_ggml_kind_info(kind);
    if (!whit_ggml_size(kind, n_cols, n_rows, size)) return NULL;
    uint8_t *data = malloc(*size);
    for (uint64_t i = 0; i < *size; i++) data[i] = (uint8_t)whit_rng_next(rng);
    if (!data) return NULL;
    uint64_t stride = *size / n_rows;
    static const struct {
        whit_ggml_kind kind;
        int at[2];
    } halves[] = {{WHIT_GGML_Q4_0, {0, 0}},     {WHIT_GGML_Q4_1, {0, 2}},     {WHIT_GGML_Q5_0, {0, 0}},
                  {WHIT_GGML_Q5_1, {0, 2}},     {WHIT_GGML_Q8_0, {0, 0}},     {WHIT_GGML_Q4_K, {0, 2}},
                  {WHIT_GGML_Q5_K, {0, 2}},     {WHIT_GGML_Q6_K, {208, 208}}, {WHIT_GGML_IQ4_NL, {0, 0}},
                  {WHIT_GGML_TQ1_0, {52, 52}},  {WHIT_GGML_TQ2_0, {64, 64}},  {WHIT_GGML_Q1_0, {0, 0}},
                  {WHIT_GGML_Q2_0, {0, 0}},     {WHIT_GGML_PQ2_0, {0, 0}},    {WHIT_GGML_PTQ1_0, {26, 26}},
                  {WHIT_GGML_STQ1_0, {40, 40}}, {WHIT_GGML_Q2_K, {80, 82}},   {WHIT_GGML_Q3_K, {108, 108}},
                  {WHIT_GGML_IQ1_S, {0, 0}},    {WHIT_GGML_IQ2_XXS, {0, 0}},  {WHIT_GGML_IQ2_XS, {0, 0}},
                  {WHIT_GGML_IQ2_S, {0, 0}},    {WHIT_GGML_IQ3_XXS, {0, 0}},  {WHIT_GGML_IQ3_S, {0, 0}},
                  {WHIT_GGML_IQ4_XS, {0, 0}}};
    for (size_t h = 0; h < sizeof halves / sizeof *halves; h++)
        for (uint64_t at = 0; halves[h].kind == kind && at < *size; at += info->block_bytes)
            for (int i = 0; i < 2; i++) {
                uint16_t half = random_half(rng);
                memcpy(data + at + halves[h].at[i], &half, 2);
            }
    for (uint64_t row = 0; row < n_rows && info->row_scale_bytes; row++) {
        float scale = whit_f32_from_f16(random_half(rng));
        uint16_t half = whit_f16_from_f32(scale);
        if (info->row_scale_bytes == 2)
            memcpy(data + row * stride, &half, 2);
        else if (info->rows_together == 4)
            memcpy(data + row / 4 * 4 * stride + row % 4 * 4, &scale, 4);
        else
            memcpy(data + row * stride, &scale, 4);
    }
    for (uint64_t at = 0; kind == WHIT_GGML_IQ1_M && at < *size; at += info->block_bytes) {
        uint16_t half = random_half(rng); /* the scale's bits are in the top nibbles of four words */
        for (int w = 0; w < 4; w++)
            data[at + 49 + 2 * w] = (uint8_t)((data[at + 49 + 2 * w] & 15) | half >> 4 * w << 4);
    }
    for (uint64_t at = 0; kind == WHIT_GGML_MXFP4 && at < *size; at += info->block_bytes)
        data[at] = (uint8_t)(115 + whit_rng_below(rng, 8));
    for (uint64_t at = 0; kind == WHIT_GGML_NVFP4 && at < *size; at += info->block_bytes)
        for (int i = 0; i < 4; i++) data[at + i] &= 0x3F;
    if (kind == WHIT_GGML_I2_S) {
        float scale = 0.0625f;
        memset(data + n_cols * n_rows / 4, 0, 32);
        memcpy(data + n_cols * n_rows / 4, &scale, 4);
        for (uint64_t i = 0; i < n_cols * n_rows / 4; i++) data[i] &= (uint8_t) ~((data[i] & data[i] << 1) & 0xAA);
    }
    return data;
}

/* Decodes one row of a kind with codes: codes (n_cols), and scales, one per group. */
static inline void decode_row(const whit_ggml_view *view, uint64_t row, int8_t *codes, float *scales)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    unsigned n_groups = info->group_elems ? info->block_elems / info->group_elems : 0;
    for (uint64_t column = 0, index = 0; column < view->n_cols; index++, scales += n_groups)
        column += whit_ggml_block_codes(view, row, index, codes + column, scales, NULL);
}

#endif
