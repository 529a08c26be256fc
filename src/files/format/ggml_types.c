/* SPDX-License-Identifier: MIT
 * Tables of GGUF weight types: block shapes, type ids and which of them several kinds use, and types that cannot be
 * read. */
#include "format/ggml_types.h"

static const whit_ggml_info infos[WHIT_GGML_KIND_COUNT] = {
    /*                     name     id  block bytes group rows head tail scales offset */
    [WHIT_GGML_F32] = {"F32", 0, 1, 4, 0, 1, 0, 0, WHIT_GGML_SCALES_NONE, false},
    [WHIT_GGML_F16] = {"F16", 1, 1, 2, 0, 1, 0, 0, WHIT_GGML_SCALES_NONE, false},
    [WHIT_GGML_BF16] = {"BF16", 30, 1, 2, 0, 1, 0, 0, WHIT_GGML_SCALES_NONE, false},
    [WHIT_GGML_Q4_0] = {"Q4_0", 2, 32, 18, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_Q4_1] = {"Q4_1", 3, 32, 20, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, true},
    [WHIT_GGML_Q5_0] = {"Q5_0", 6, 32, 22, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_Q5_1] = {"Q5_1", 7, 32, 24, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, true},
    [WHIT_GGML_Q8_0] = {"Q8_0", 8, 32, 34, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_Q4_K] = {"Q4_K", 12, 256, 144, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, true},
    [WHIT_GGML_Q5_K] = {"Q5_K", 13, 256, 176, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, true},
    [WHIT_GGML_Q6_K] = {"Q6_K", 14, 256, 210, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ4_NL] = {"IQ4_NL", 20, 32, 18, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_Q2_K] = {"Q2_K", 10, 256, 84, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, true},
    [WHIT_GGML_Q3_K] = {"Q3_K", 11, 256, 110, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ1_S] = {"IQ1_S", 19, 256, 50, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ1_M] = {"IQ1_M", 29, 256, 56, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ2_XXS] = {"IQ2_XXS", 16, 256, 66, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ2_XS] = {"IQ2_XS", 17, 256, 74, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ2_S] = {"IQ2_S", 22, 256, 82, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ3_XXS] = {"IQ3_XXS", 18, 256, 98, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ3_S] = {"IQ3_S", 21, 256, 110, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ4_XS] = {"IQ4_XS", 23, 256, 136, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_MXFP4] = {"MXFP4", 39, 32, 17, 32, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_NVFP4] = {"NVFP4", 40, 64, 36, 16, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_I2_S] = {"I2_S", 36, 128, 32, 0, 1, 0, 32, WHIT_GGML_SCALES_TENSOR, false},
    [WHIT_GGML_TQ1_0] = {"TQ1_0", 34, 256, 54, 256, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_TQ2_0] = {"TQ2_0", 35, 256, 66, 256, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_Q1_0] = {"Q1_0", 41, 128, 18, 128, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_Q2_0] = {"Q2_0", 42, 64, 18, 64, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_PQ2_0] = {"PQ2_0", 142, 128, 34, 128, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_PTQ1_0] = {"PTQ1_0", 143, 128, 28, 128, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_STQ1_0] = {"STQ1_0", 43, 256, 42, 256, 1, 0, 0, WHIT_GGML_SCALES_GROUP, false},
    [WHIT_GGML_IQ1_BN] = {"IQ1_BN", 134, 64, 13, 0, 1, 2, 0, WHIT_GGML_SCALES_ROW, false},
    [WHIT_GGML_IQ2_BN] = {"IQ2_BN", 135, 64, 16, 0, 1, 4, 0, WHIT_GGML_SCALES_ROW, false},
    [WHIT_GGML_IQ2_BN_R4] = {"IQ2_BN_R4", 335, 64, 16, 0, 4, 4, 0, WHIT_GGML_SCALES_ROW, false},
};

const whit_ggml_info *whit_ggml_kind_info(whit_ggml_kind kind)
{
    return &infos[kind];
}

size_t whit_ggml_candidates(uint32_t id, whit_ggml_kind kinds[WHIT_GGML_MAX_CANDIDATES])
{
    size_t n = 0;
    for (int kind = 0; kind < WHIT_GGML_KIND_COUNT; kind++)
        if (infos[kind].id == id) kinds[n++] = (whit_ggml_kind)kind;
    if (id == 42) { /* Prism's "Q2_0" had id 42 before it became PQ2_0; Tencent's fork uses 42 for STQ1_0 */
        kinds[n++] = WHIT_GGML_PQ2_0;
        kinds[n++] = WHIT_GGML_STQ1_0;
    }
    return n;
}

bool whit_ggml_id_collides(uint32_t id)
{
    return (id >= 36 && id <= 43) || id == 142 || id == 143;
}

#define REPACKED(name, plain)                                                                                          \
    name " was removed from the format (rows interleaved for one kind of processor); use a " plain " file of the "     \
         "model"

const char *whit_ggml_refusal(uint32_t id)
{
    static const struct {
        uint32_t id;
        const char *reason;
    } refusals[] = {
        {4, "Q4_2 was removed from the format; quantise the original again (Q4_0 or Q4_K)"},
        {5, "Q4_3 was removed from the format; quantise the original again (Q4_1 or Q4_K)"},
        {9, "Q8_1 is a type of intermediate results, not of weights"},
        {15, "Q8_K is a type of intermediate results, not of weights"},
        {24, "I8 integers without a scale are not weights"},
        {25, "I16 integers are not weights"},
        {26, "I32 integers are not weights"},
        {27, "I64 integers are not weights"},
        {28, "F64 is not supported"},
        {31, REPACKED("Q4_0_4_4", "Q4_0")},
        {32, REPACKED("Q4_0_4_8", "Q4_0")},
        {33, REPACKED("Q4_0_8_8", "Q4_0")},
        {36, REPACKED("IQ4_NL_4_4", "IQ4_NL")},
        {37, REPACKED("IQ4_NL_4_8", "IQ4_NL")},
        {38,
         "TL1 is permuted by a kernel configuration that is not in the file; convert the original "
         "to I2_S instead"},
        {39,
         "TL2 is permuted by a kernel configuration that is not in the file; convert the original "
         "to I2_S instead"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i].id == id) return refusals[i].reason;
    return NULL;
}

bool whit_ggml_size(whit_ggml_kind kind, uint64_t n_cols, uint64_t n_rows, uint64_t *size_bytes)
{
    const whit_ggml_info *info = &infos[kind];
    uint64_t per_row, total;
    if (kind == WHIT_GGML_I2_S) { /* a block of I2_S may continue in the next row */
        if (__builtin_mul_overflow(n_cols, n_rows, &total) || total % info->block_elems) return false;
        *size_bytes = total / info->block_elems * info->block_bytes + info->tail_bytes;
        return true;
    }
    if (n_cols % info->block_elems || n_rows % info->rows_together) return false;
    if (__builtin_mul_overflow(n_cols / info->block_elems, (uint64_t)info->block_bytes, &per_row) ||
        __builtin_add_overflow(per_row, (uint64_t)info->row_scale_bytes, &per_row) ||
        __builtin_mul_overflow(per_row, n_rows, &total))
        return false;
    *size_bytes = total;
    return true;
}
