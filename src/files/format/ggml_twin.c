/* SPDX-License-Identifier: MIT
 * Which codec of ours holds a GGUF tensor exactly, and its rows in that codec's terms. */
#include "format/ggml_types.h"

#include "base/half.h"

/* Is a + b exact in float32? The error of the sum is itself a float32 (Knuth's two-sum). */
static bool sum_is_exact(float a, float b)
{
    float sum = a + b, a_part = sum - b, b_part = sum - a_part;
    return (a - a_part) + (b - b_part) == 0.0f;
}

/* What one pass over the blocks learns. */
struct survey {
    bool code_two; /* in kinds of two bits */
    bool one_scale, one_scale_per_row, shifted_offsets_exact;
    float scale;
};

/* For codes of two bits: is any of them 2, of which code + 1 has both bits? */
static bool has_code_two(const int8_t *codes, unsigned n)
{
    unsigned both = 0;
    for (unsigned k = 0; k < n; k++) {
        uint8_t bits = (uint8_t)(codes[k] + 1);
        both |= bits & (bits >> 1) & 1u;
    }
    return both != 0;
}

static struct survey survey_blocks(const whit_ggml_view *view)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    unsigned n_groups = info->group_elems ? info->block_elems / info->group_elems : 1;
    struct survey seen = {.one_scale = true, .one_scale_per_row = true, .shifted_offsets_exact = true};
    int8_t codes[WHIT_GGML_BLOCK_ELEMS];
    float scales[WHIT_GGML_BLOCK_GROUPS], offsets[WHIT_GGML_BLOCK_GROUPS];
    for (uint64_t row = 0; row < view->n_rows; row++) {
        float row_scale = 0;
        for (uint64_t column = 0, index = 0; column < view->n_cols; index++) {
            unsigned n = whit_ggml_block_codes(view, row, index, codes, scales, offsets);
            if (row == 0 && index == 0) seen.scale = scales[0];
            if (index == 0) row_scale = scales[0];
            for (unsigned g = 0; g < n_groups; g++) {
                seen.one_scale &= whit_f32_bits(scales[g]) == whit_f32_bits(seen.scale);
                seen.one_scale_per_row &= whit_f32_bits(scales[g]) == whit_f32_bits(row_scale);
                if (info->has_offset) seen.shifted_offsets_exact &= sum_is_exact(8 * scales[g], offsets[g]);
            }
            seen.code_two |= has_code_two(codes, n);
            column += n;
        }
    }
    return seen;
}

/* t5 has no room for a code of 2, and holds group scales in its superblocks of 256 only. */
static whit_codec ternary_codec(const struct survey *seen, unsigned group)
{
    bool fits = !seen->code_two && (group == 0 || group == 128 || group == 256);
    return fits ? WHIT_CODEC_T5 : WHIT_CODEC_T2;
}

whit_status whit_ggml_find_twin(const whit_ggml_view *view, const char *name, whit_ggml_twin *twin, whit_error *error)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    if (view->n_cols > UINT32_MAX || view->n_rows > UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "tensor %s: more than 2^32 rows or columns", name);
    *twin = (whit_ggml_twin){.type = {.n_rows = (uint32_t)view->n_rows,
                                      .n_cols = (uint32_t)view->n_cols,
                                      .group = info->group_elems,
                                      .has_offset = info->has_offset}};
    whit_tensor_type *type = &twin->type;
    switch (view->kind) {
    case WHIT_GGML_F32: type->codec = WHIT_CODEC_F32; return WHIT_OK;
    case WHIT_GGML_F16: type->codec = WHIT_CODEC_F16; return WHIT_OK;
    case WHIT_GGML_BF16: type->codec = WHIT_CODEC_BF16; return WHIT_OK;
    default: break;
    }
    struct survey seen = survey_blocks(view);
    twin->one_scale = seen.one_scale && !info->has_offset;
    twin->one_scale_per_row = seen.one_scale_per_row && !info->has_offset;
    if (twin->one_scale) twin->scale = seen.scale;
    type->scale_type = WHIT_SCALE_F16;
    type->scale_kind = info->scales == WHIT_GGML_SCALES_GROUP ? WHIT_SCALE_GROUP
        : info->scales == WHIT_GGML_SCALES_ROW                ? WHIT_SCALE_ROW
                                                              : WHIT_SCALE_TENSOR;
    switch (view->kind) {
    case WHIT_GGML_Q8_0:
    case WHIT_GGML_Q5_0:
    case WHIT_GGML_Q5_1:
    case WHIT_GGML_IQ4_NL: type->codec = WHIT_CODEC_I8; break;
    case WHIT_GGML_Q4_0: type->codec = WHIT_CODEC_I4; break;
    case WHIT_GGML_Q4_1: /* i4's codes begin at -8, so its offset is m + 8 d: float32 */
        type->codec = seen.shifted_offsets_exact ? WHIT_CODEC_I4 : WHIT_CODEC_I8;
        if (type->codec == WHIT_CODEC_I4) type->scale_type = WHIT_SCALE_F32;
        break;
    case WHIT_GGML_Q4_K: /* scales of the K types are products of two factors: float32 */
        type->codec = seen.shifted_offsets_exact ? WHIT_CODEC_I4 : WHIT_CODEC_I8;
        type->scale_type = WHIT_SCALE_F32;
        break;
    case WHIT_GGML_Q5_K:
    case WHIT_GGML_Q6_K:
    case WHIT_GGML_Q2_K:
    case WHIT_GGML_Q3_K:
    case WHIT_GGML_IQ1_S:
    case WHIT_GGML_IQ1_M:
    case WHIT_GGML_IQ2_XXS:
    case WHIT_GGML_IQ2_XS:
    case WHIT_GGML_IQ2_S:
    case WHIT_GGML_IQ3_XXS:
    case WHIT_GGML_IQ3_S:
    case WHIT_GGML_IQ4_XS:
    case WHIT_GGML_MXFP4:
    case WHIT_GGML_NVFP4:
        type->codec = WHIT_CODEC_I8;
        type->scale_type = WHIT_SCALE_F32;
        break;
    case WHIT_GGML_Q1_0: type->codec = WHIT_CODEC_B1; break;
    case WHIT_GGML_I2_S:
        if (seen.code_two)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "tensor %s: holds the code 3, which I2_S has not: damaged, or another "
                             "type under its id",
                             name);
        type->codec = WHIT_CODEC_T5;
        type->scale_type = WHIT_SCALE_F32;
        type->scale = seen.scale;
        break;
    case WHIT_GGML_IQ2_BN:
    case WHIT_GGML_IQ2_BN_R4: type->scale_type = WHIT_SCALE_F32; /* fall through */
    default: type->codec = (uint8_t)ternary_codec(&seen, type->group); break;
    }
    twin->is_ternary = !seen.code_two && (type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5);
    return WHIT_OK;
}

void whit_ggml_narrow_twin(whit_ggml_twin *twin)
{
    whit_tensor_type *type = &twin->type;
    if (!twin->one_scale) return;
    if (twin->is_ternary && type->codec == WHIT_CODEC_T2) type->codec = WHIT_CODEC_T5;
    type->scale_kind = WHIT_SCALE_TENSOR;
    type->scale_type = WHIT_SCALE_F32;
    type->group = 0;
    type->scale = twin->scale;
}

void whit_ggml_row_twin(const whit_ggml_view *view, const whit_ggml_twin *twin, uint64_t row, int8_t *codes,
                        float *fields)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    unsigned n_groups = info->group_elems ? info->block_elems / info->group_elems : 1;
    if (twin->type.scale_kind != WHIT_SCALE_GROUP) n_groups = 1; /* narrowed: there is room for one */
    bool has_offset = twin->type.has_offset;
    int shift = twin->type.codec == WHIT_CODEC_I4 && has_offset ? 8 : 0;
    float scales[WHIT_GGML_BLOCK_GROUPS], offsets[WHIT_GGML_BLOCK_GROUPS];
    for (uint64_t column = 0, index = 0; column < view->n_cols; index++) {
        unsigned n = whit_ggml_block_codes(view, row, index, codes + column, scales, offsets);
        for (unsigned k = 0; shift && k < n; k++) codes[column + k] = (int8_t)(codes[column + k] - shift);
        column += n;
        if (index > 0 && twin->type.scale_kind != WHIT_SCALE_GROUP) continue;
        for (unsigned g = 0; g < n_groups; g++) {
            *fields++ = scales[g];
            if (has_offset) *fields++ = offsets[g] + (float)shift * scales[g];
        }
    }
}
