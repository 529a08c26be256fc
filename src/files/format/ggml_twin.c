/* SPDX-License-Identifier: MIT
 * Finds the type of whit that stores a GGUF tensor exactly (its twin), and converts rows of the tensor to it. */
#include "format/ggml_types.h"

#include <math.h>

#include "base/half.h"

/* Returns whether a + b is exact in float32, by computing the rounding error of the sum (Knuth's two-sum). */
static bool sum_is_exact(float a, float b)
{
    float sum = a + b, a_part = sum - b, b_part = sum - a_part;
    return (a - a_part) + (b - b_part) == 0.0f;
}

/* Findings about all blocks of a tensor. */
struct survey {
    bool code_two; /* a code is 2; set only for kinds with two-bit codes */
    bool one_scale, shifted_offsets_exact;
    float scale;
};

/* Returns whether the kind's codes are stored as two-bit fields, in which 3 means code 2. */
static bool has_two_bits(whit_ggml_kind kind)
{
    switch (kind) {
    case WHIT_GGML_I2_S:
    case WHIT_GGML_TQ2_0:
    case WHIT_GGML_Q2_0:
    case WHIT_GGML_PQ2_0:
    case WHIT_GGML_IQ2_BN:
    case WHIT_GGML_IQ2_BN_R4: return true;
    default: return false;
    }
}

/* Returns whether any two-bit field of the bytes is 3. */
static bool has_three(const uint8_t *bytes, uint64_t n)
{
    unsigned both = 0; /* the loop has no early exit, so that it can be vectorised */
    for (uint64_t i = 0; i < n; i++) both |= bytes[i] & bytes[i] >> 1 & 0x55u;
    return both != 0;
}

/* Returns whether any code of a tensor with two-bit codes is 2. The packed bytes are tested without decoding. */
static bool has_code_two(const whit_ggml_view *view)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    const unsigned n = info->block_elems / 4u, at = view->kind == WHIT_GGML_TQ2_0 ? 0 : info->block_bytes - n;
    if (view->kind == WHIT_GGML_I2_S) return has_three(view->data, view->n_rows * view->n_cols / 4);
    const uint64_t n_blocks = view->n_cols / info->block_elems * info->rows_together;
    const uint8_t *block = view->data;
    for (uint64_t row = 0; row < view->n_rows; row += info->rows_together) {
        block += (size_t)info->row_scale_bytes * info->rows_together;
        for (uint64_t i = 0; i < n_blocks; i++, block += info->block_bytes)
            if (has_three(block + at, n)) return true;
    }
    return false;
}

/* Examines a tensor until everything that its twin depends on is known. Two-bit codes are all tested; the scales
 * usually differ, which ends the search after little more than the first row. */
static struct survey survey_blocks(const whit_ggml_view *view)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    unsigned n_groups = info->group_elems ? info->block_elems / info->group_elems : 1;
    struct survey seen = {.code_two = has_two_bits(view->kind) && has_code_two(view),
                          .one_scale = !info->has_offset,
                          .shifted_offsets_exact = view->kind == WHIT_GGML_Q4_1};
    int8_t codes[WHIT_GGML_BLOCK_ELEMS];
    float scales[WHIT_GGML_BLOCK_GROUPS], offsets[WHIT_GGML_BLOCK_GROUPS];
    if (!view->n_rows || !view->n_cols) return seen;
    (void)whit_ggml_block_codes(view, 0, 0, codes, scales, offsets);
    seen.scale = scales[0];
    if (info->scales == WHIT_GGML_SCALES_TENSOR) return seen;
    for (uint64_t row = 0; row < view->n_rows; row++)
        for (uint64_t column = 0, index = 0; column < view->n_cols; index++) {
            if (!seen.one_scale && !seen.shifted_offsets_exact) return seen;
            column += whit_ggml_block_codes(view, row, index, codes, scales, offsets);
            for (unsigned g = 0; g < n_groups; g++) {
                seen.one_scale &= whit_f32_bits(scales[g]) == whit_f32_bits(seen.scale);
                if (info->has_offset) seen.shifted_offsets_exact &= sum_is_exact(8 * scales[g], offsets[g]);
            }
        }
    return seen;
}

/* Chooses t5 or t2 for ternary codes. t5 cannot represent a code of 2, and its group scales must be for 128 or 256
 * columns or a whole row. */
static whit_codec ternary_codec(const struct survey *seen, unsigned group)
{
    bool fits = !seen->code_two && (group == 0 || group == 128 || group == 256);
    return fits ? WHIT_CODEC_T5 : WHIT_CODEC_T2;
}

/* Sets the codec and scale type of a twin that has byte-sized group scales. */
static void use_native(whit_tensor_type *type, whit_codec codec, whit_scale_type scale_type)
{
    type->codec = (uint8_t)codec;
    type->scale_type = (uint8_t)scale_type;
}

/* Computes the factors that the twin of an IQ3 block needs. Returns false if a factor is not exact in f16. */
static bool iq3_factors(whit_ggml_kind kind, const uint8_t *block, float factors[2])
{
    const float d = whit_f32_from_f16(whit_load_u16(block));
    const bool has_offset = kind == WHIT_GGML_IQ3_S;
    factors[0] = has_offset ? d : d / 2;
    factors[1] = has_offset ? 16 * d : 0;
    return isfinite(d) && whit_f32_from_f16(whit_f16_from_f32(factors[0])) == factors[0] &&
        whit_f32_from_f16(whit_f16_from_f32(factors[1])) == factors[1];
}

/* Chooses the twin of an IQ3 tensor: u5 for IQ3_S, i6 for IQ3_XXS. With s a group's scale, IQ3_S has odd levels 2 u -
 * 15, and d s (2 u - 15) = d s (2 u + 1) - 16 d s is a u5 code with an offset. IQ3_XXS has even levels, and d / 4 s
 * level = d / 2 s (level / 2) is an i6 code. Returns true if all factors are exact in f16. */
static bool use_iq3(const whit_ggml_view *view, whit_tensor_type *type)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    const uint64_t n_blocks = view->n_rows * (view->n_cols / info->block_elems);
    float factors[2];
    if (view->kind != WHIT_GGML_IQ3_S && view->kind != WHIT_GGML_IQ3_XXS) return false;
    for (uint64_t i = 0; i < n_blocks; i++)
        if (!iq3_factors(view->kind, view->data + i * info->block_bytes, factors)) return false;
    type->has_offset = view->kind == WHIT_GGML_IQ3_S;
    if (type->has_offset) {
        use_native(type, WHIT_CODEC_U5, WHIT_SCALE_K16);
    } else {
        use_native(type, WHIT_CODEC_I6, WHIT_SCALE_K8);
        type->group = 16; /* half of the kind's group size, to share the kernels of Q6_K */
    }
    return true;
}

/* Converts an IQ3 block to its twin: writes group scales (`bytes`) and factors, and replaces the kind's levels in
 * `codes` by the twin's codes. */
static void iq3_block(whit_ggml_kind kind, const uint8_t *block, int8_t *codes, uint8_t *bytes, float factors[2])
{
    const bool is_s = kind == WHIT_GGML_IQ3_S;
    (void)iq3_factors(kind, block, factors);
    for (int k = 0; k < 256; k++) codes[k] = (int8_t)(is_s ? codes[k] + 16 : codes[k] / 2);
    for (int j = 0; j < 8; j++) {
        unsigned half = is_s ? block[106 + j / 2] >> 4 * (j & 1) & 15u : block[66 + 4 * j + 3] >> 4;
        bytes[2 * j] = bytes[2 * j + 1] = (uint8_t)((is_s ? 0 : 128) + 2 * half + 1);
    }
}

whit_status whit_ggml_find_twin(const whit_ggml_view *view, const char *name, whit_ggml_twin *twin, whit_error *error)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    if (view->n_cols > UINT32_MAX || view->n_rows > UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "tensor %s: has more than 2^32 rows or columns, the limit",
                         name);
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
    twin->one_scale = seen.one_scale;
    if (twin->one_scale) twin->scale = seen.scale;
    type->scale_type = WHIT_SCALE_F16;
    if (info->scales == WHIT_GGML_SCALES_GROUP)
        type->scale_kind = WHIT_SCALE_GROUP;
    else if (info->scales == WHIT_GGML_SCALES_ROW)
        type->scale_kind = WHIT_SCALE_ROW;
    else
        type->scale_kind = WHIT_SCALE_TENSOR;
    switch (view->kind) {
    case WHIT_GGML_Q8_0:
    case WHIT_GGML_Q5_0:
    case WHIT_GGML_Q5_1: type->codec = WHIT_CODEC_I8; break;
    case WHIT_GGML_IQ4_NL: type->codec = WHIT_CODEC_N4; break;
    case WHIT_GGML_Q2_K: use_native(type, WHIT_CODEC_U2, WHIT_SCALE_K4); break;
    case WHIT_GGML_Q3_K: use_native(type, WHIT_CODEC_I3, WHIT_SCALE_K8); break;
    case WHIT_GGML_Q4_K: use_native(type, WHIT_CODEC_U4, WHIT_SCALE_K16); break;
    case WHIT_GGML_Q5_K: use_native(type, WHIT_CODEC_U5, WHIT_SCALE_K16); break;
    case WHIT_GGML_Q6_K: use_native(type, WHIT_CODEC_I6, WHIT_SCALE_K8); break;
    case WHIT_GGML_IQ2_XXS: use_native(type, WHIT_CODEC_X8, WHIT_SCALE_ODD4); break;
    case WHIT_GGML_IQ2_XS: use_native(type, WHIT_CODEC_X9, WHIT_SCALE_ODD4); break;
    case WHIT_GGML_IQ2_S: use_native(type, WHIT_CODEC_X10, WHIT_SCALE_ODD4); break;
    case WHIT_GGML_IQ4_XS: use_native(type, WHIT_CODEC_N4, WHIT_SCALE_K8); break;
    case WHIT_GGML_MXFP4: use_native(type, WHIT_CODEC_F4, WHIT_SCALE_E8); break;
    case WHIT_GGML_NVFP4:
        use_native(type, WHIT_CODEC_F4, WHIT_SCALE_E4);
        type->scale = 1;
        break;
    case WHIT_GGML_Q4_0: type->codec = WHIT_CODEC_I4; break;
    case WHIT_GGML_Q4_1: /* i4's codes begin at -8, so the offset m becomes m + 8 d, exact in float32 */
        type->codec = seen.shifted_offsets_exact ? WHIT_CODEC_I4 : WHIT_CODEC_I8;
        if (type->codec == WHIT_CODEC_I4) type->scale_type = WHIT_SCALE_F32;
        break;
    case WHIT_GGML_IQ1_S: /* a scale is a product of two factors, which needs float32 */
    case WHIT_GGML_IQ1_M:
    case WHIT_GGML_IQ3_XXS:
    case WHIT_GGML_IQ3_S:
        if (use_iq3(view, type)) break;
        type->codec = WHIT_CODEC_I8;
        type->scale_type = WHIT_SCALE_F32;
        break;
    case WHIT_GGML_Q1_0: type->codec = WHIT_CODEC_B1; break;
    case WHIT_GGML_I2_S:
        if (seen.code_two)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "tensor %s: contains the code 3, which I2_S cannot have: damaged, or another "
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
    if (!twin->one_scale || !(whit_codec_find(type->codec)->scale_types & WHIT_SCALE_BIT(F32))) return;
    if (twin->is_ternary && type->codec == WHIT_CODEC_T2) type->codec = WHIT_CODEC_T5;
    type->scale_kind = WHIT_SCALE_TENSOR;
    type->scale_type = WHIT_SCALE_F32;
    type->group = 0;
    type->scale = twin->scale;
}

/* Writes the byte-sized scales of a block's groups and its f16 factors in the form of the twin's scale type. */
static void native_scales(whit_ggml_kind kind, const uint8_t *b, uint8_t *bytes, float factors[2])
{
    unsigned n = whit_ggml_kind_info(kind)->block_elems / whit_ggml_kind_info(kind)->group_elems;
    unsigned high = kind == WHIT_GGML_IQ4_XS ? whit_load_u16(b + 2) : 0;
    int at = 0;
    if (kind == WHIT_GGML_Q2_K)
        at = 80;
    else if (kind == WHIT_GGML_Q3_K)
        at = 108;
    else if (kind == WHIT_GGML_Q6_K)
        at = 208;
    factors[0] = whit_f32_from_f16(whit_load_u16(b + at));
    if (whit_ggml_kind_info(kind)->has_offset) factors[1] = whit_f32_from_f16(whit_load_u16(b + at + 2));
    if (kind == WHIT_GGML_Q4_K || kind == WHIT_GGML_Q5_K) {
        whit_ggml_k_numbers(b, bytes);
        return;
    }
    for (unsigned j = 0; j < n; j++) {
        unsigned first = 4;
        if (kind == WHIT_GGML_IQ2_XS)
            first = 66;
        else if (kind == WHIT_GGML_IQ2_S)
            first = 74;
        unsigned nibble = b[first + j / 2] >> 4 * (j & 1) & 15u;
        switch (kind) {
        case WHIT_GGML_Q3_K:
            bytes[j] = (uint8_t)(96 + (b[96 + j % 8] >> j / 8 * 4 & 15) + 16 * (b[104 + j % 4] >> j / 4 * 2 & 3));
            break;
        case WHIT_GGML_Q6_K: bytes[j] = (uint8_t)(b[192 + j] ^ 128); break;
        case WHIT_GGML_IQ2_XXS: bytes[j] = b[2 + 8 * j + 7] >> 4; break;
        case WHIT_GGML_IQ2_S:
        case WHIT_GGML_IQ2_XS: bytes[j] = (uint8_t)nibble; break;
        case WHIT_GGML_IQ4_XS: bytes[j] = (uint8_t)(96 + (nibble | (high >> 2 * j & 3) << 4)); break;
        default: bytes[j] = b[j]; break; /* Q2_K, MXFP4, NVFP4 */
        }
    }
}

static void native_row(const whit_ggml_view *view, const whit_ggml_twin *twin, uint64_t row, const whit_rows *rows)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    uint64_t n_blocks = view->n_cols / info->block_elems;
    const uint8_t *block = view->data + row * n_blocks * info->block_bytes;
    bool super = whit_scale_in_superblocks(twin->type.scale_type);
    size_t block_bytes = whit_codec_geometry(&twin->type).row_bytes / n_blocks;
    float unused[WHIT_GGML_BLOCK_GROUPS], offsets[WHIT_GGML_BLOCK_GROUPS], factors[2];
    for (uint64_t i = 0; i < n_blocks; i++, block += info->block_bytes) {
        int8_t *codes = (int8_t *)rows->elems + i * info->block_elems;
        uint8_t *bytes = rows->fields_u8 + i * block_bytes;
        whit_ggml_block_codes(view, row, i, codes, unused, offsets);
        if (view->kind == WHIT_GGML_IQ3_S || view->kind == WHIT_GGML_IQ3_XXS)
            iq3_block(view->kind, block, codes, bytes, factors);
        else
            native_scales(view->kind, block, bytes, factors);
        for (unsigned f = 0; super && f < 1u + twin->type.has_offset; f++)
            rows->fields[i * (1u + twin->type.has_offset) + f] = factors[f];
    }
}

void whit_ggml_row_twin(const whit_ggml_view *view, const whit_ggml_twin *twin, uint64_t row, const whit_rows *rows)
{
    int8_t *codes = rows->elems;
    float *fields = rows->fields;
    if (twin->type.scale_type > WHIT_SCALE_U8) {
        native_row(view, twin, row, rows);
        return;
    }
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    unsigned n_groups = info->group_elems ? info->block_elems / info->group_elems : 1;
    if (twin->type.scale_kind != WHIT_SCALE_GROUP) n_groups = 1; /* a row or tensor has one scale */
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
