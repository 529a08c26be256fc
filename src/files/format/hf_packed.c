/* SPDX-License-Identifier: MIT */
#include "format/hf_packed.h"

#include <math.h>
#include <stdio.h>

#include "base/fp8.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- names ---------------------------------------------------------------------------------- */

/* Endings of the tensor names of a form, the codes' first. */
static const char *const *ends_of(whit_hf_form form)
{
    static const char *const compressed[] = {".weight_packed", ".weight_scale", ".weight_shape", ".weight_zero_point",
                                             NULL};
    static const char *const gptq[] = {".qweight", ".qzeros", ".scales", ".g_idx", NULL};
    static const char *const mlx[] = {".weight", ".scales", ".biases", NULL};
    static const char *const fp8[] = {".weight", ".weight_scale_inv", ".weight_scale", NULL};
    static const char *const plain[] = {NULL};
    return form == WHIT_HF_COMPRESSED                                            ? compressed
        : form == WHIT_HF_GPTQ || form == WHIT_HF_GPTQ_V2 || form == WHIT_HF_AWQ ? gptq
        : form == WHIT_HF_MLX                                                    ? mlx
        : form == WHIT_HF_FP8                                                    ? fp8
                                                                                 : plain;
}

whit_hf_role whit_hf_packed_role(whit_hf_form form, const char *name, size_t *module_bytes)
{
    const char *const *ends = ends_of(form);
    size_t n = strlen(name);
    for (size_t i = 0; ends[i]; i++) {
        size_t m = strlen(ends[i]);
        if (n <= m || strcmp(name + n - m, ends[i]) != 0) continue;
        *module_bytes = n - m;
        return i ? WHIT_HF_BESIDE : WHIT_HF_CODES;
    }
    return WHIT_HF_OTHER;
}

bool whit_hf_is_packed(whit_hf_form form, const whit_safetensor *tensor)
{
    if (form == WHIT_HF_FP8) return tensor->dtype == WHIT_DTYPE_F8_E4M3;
    return form != WHIT_HF_PLAIN && (tensor->dtype == WHIT_DTYPE_I32 || tensor->dtype == WHIT_DTYPE_U32);
}

/* ---- elements ------------------------------------------------------------------------------- */

static uint32_t word_at(const whit_safetensor *tensor, uint64_t i)
{
    return whit_load_u32(tensor->data + 4 * i);
}

/* Code `i` of a sequence of words, which begins at word `first` and is `stride` words apart. */
static unsigned code_in(const whit_safetensor *tensor, unsigned bits, uint64_t first, uint64_t stride, uint64_t i)
{
    uint64_t per_word = 32 / bits;
    return word_at(tensor, first + i / per_word * stride) >> bits * (i % per_word) & ((1u << bits) - 1);
}

/* Position of column c (0..7) in a word of AWQ. */
static uint64_t awq_place(uint64_t c)
{
    return c % 2 * 4 + c / 2;
}

static unsigned code_at(const whit_hf_packed *p, uint64_t row, uint64_t col)
{
    uint64_t n_words;
    switch (p->form) {
    case WHIT_HF_GPTQ:
    case WHIT_HF_GPTQ_V2: return code_in(p->codes, p->bits, row, p->n_rows, col);
    case WHIT_HF_AWQ: return word_at(p->codes, col * (p->n_rows / 8) + row / 8) >> 4 * awq_place(row % 8) & 15;
    default: n_words = p->n_cols * p->bits / 32; return code_in(p->codes, p->bits, row * n_words, 1, col);
    }
}

/* A scale or bias. Their shape is (out, groups), transposed in GPTQ and AWQ. */
static float number_at(const whit_hf_packed *p, const whit_safetensor *tensor, uint64_t row, uint64_t group)
{
    bool transposed = p->form == WHIT_HF_GPTQ || p->form == WHIT_HF_GPTQ_V2 || p->form == WHIT_HF_AWQ;
    uint64_t n_groups = (p->n_cols + p->group_cols - 1) / p->group_cols;
    double value = NAN;
    whit_safetensor_f64(tensor, transposed ? group * p->n_rows + row : row / p->group_rows * n_groups + group, &value);
    return (float)value;
}

static unsigned zero_at(const whit_hf_packed *p, uint64_t row, uint64_t group)
{
    uint64_t per_word = 32 / p->bits;
    switch (p->form) {
    case WHIT_HF_COMPRESSED: { /* packed along the rows */
        uint64_t n_groups = (p->n_cols + p->group_cols - 1) / p->group_cols;
        return code_in(p->zeros, p->bits, group, n_groups, row);
    }
    case WHIT_HF_AWQ: return word_at(p->zeros, group * (p->n_rows / 8) + row / 8) >> 4 * awq_place(row % 8) & 15;
    default: return code_in(p->zeros, p->bits, group * (p->n_rows / per_word), 1, row) + (p->form == WHIT_HF_GPTQ);
    }
}

/* ---- types ---------------------------------------------------------------------------------- */

/* The stored code that means 0 in the type's terms. */
static int type_bias(const whit_hf_packed *p)
{
    if (p->type.codec == WHIT_CODEC_I4) return 8;
    if (p->type.codec == WHIT_CODEC_I8) return p->bits == 8 ? 128 : 0;
    return p->type.has_offset ? 1 : 2;
}

/* Scale and offset of a group: value = code scale + offset, `exact` where the offset is not rounded. Two bits with
 * symmetric codes -2 to 1 are held as their negatives, -1 to 2, with a negative scale. */
static void fields_of(const whit_hf_packed *p, uint64_t row, uint64_t group, float fields[2], bool *exact)
{
    float scale = number_at(p, p->scales, row, group);
    bool negated = p->type.codec == WHIT_CODEC_T2 && !p->type.has_offset;
    fields[0] = negated ? -scale : scale;
    *exact = true;
    if (!p->type.has_offset) return;
    double offset = p->form == WHIT_HF_MLX
        ? (double)number_at(p, p->zeros, row, group) + (double)type_bias(p) * (double)scale
        : ((double)type_bias(p) - (double)zero_at(p, row, group)) * (double)scale;
    fields[1] = (float)offset;
    *exact = (double)fields[1] == offset || offset != offset;
}

static bool all_exact(const whit_hf_packed *p)
{
    uint64_t n_groups = (p->n_cols + p->group_cols - 1) / p->group_cols;
    bool exact = true;
    for (uint64_t row = 0; exact && row < p->n_rows; row++)
        for (uint64_t group = 0; exact && group < n_groups; group++) {
            float fields[2];
            fields_of(p, row, group, fields, &exact);
        }
    return exact;
}

static bool is_power_of_two(double value)
{
    int exponent;
    return frexp(fabs(value), &exponent) == 0.5;
}

static void choose_type(whit_hf_packed *p)
{
    whit_tensor_type *type = &p->type;
    *type =
        (whit_tensor_type){.layout = WHIT_LAYOUT_TILE16, .n_rows = (uint32_t)p->n_rows, .n_cols = (uint32_t)p->n_cols};
    if (p->form == WHIT_HF_FP8) {
        uint64_t n = p->scales ? p->scales->size_bytes / whit_dtype_bytes(p->scales->dtype) : 0;
        double scale;
        type->codec = WHIT_CODEC_F16;
        p->exact = true;
        for (uint64_t i = 0; i < n; i++) {
            p->exact &= whit_safetensor_f64(p->scales, i, &scale) && is_power_of_two(scale) && fabs(scale) >= 0x1p-15;
            if (fabs(scale) * 448 > 65504) type->codec = WHIT_CODEC_BF16;
        }
        return;
    }
    bool per_row = p->group_cols >= p->n_cols;
    type->scale_kind = per_row ? WHIT_SCALE_ROW : WHIT_SCALE_GROUP;
    type->group = per_row ? 0 : (uint16_t)p->group_cols;
    type->has_offset = p->zeros != NULL;
    type->scale_type = !p->zeros && p->scales->dtype == WHIT_DTYPE_F16 ? WHIT_SCALE_F16 : WHIT_SCALE_F32;
    type->codec = p->bits == 8 ? WHIT_CODEC_I8 : p->bits == 4 ? WHIT_CODEC_I4 : WHIT_CODEC_T2;
    p->exact = all_exact(p);
    if (p->exact || p->bits == 8) return;
    type->codec = WHIT_CODEC_I8; /* codes begin at 0, so they need no other offset */
    p->exact = all_exact(p);
}

/* ---- opening -------------------------------------------------------------------------------- */

static whit_status refuse(const char *module, whit_error *error, const char *why)
{
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "matrix '%s': %s", module, why);
}

static const whit_safetensor *find_part(const whit_safetensors *weights, const char *module, const char *end)
{
    char name[192];
    if (snprintf(name, sizeof name, "%s%s", module, end) >= (int)sizeof name) return NULL;
    return whit_safetensors_find(weights, name);
}

static bool has_shape(const whit_safetensor *tensor, uint64_t rows, uint64_t cols)
{
    return tensor && tensor->n_dims == 2 && tensor->dims[0] == rows && tensor->dims[1] == cols;
}

/* Reads the number of columns and the bits of the codes from the shapes of a form. */
static whit_status read_shape(const whit_safetensors *weights, const char *module, uint32_t mlx_bits, whit_hf_packed *p,
                              whit_error *error)
{
    const whit_safetensor *codes = p->codes, *index = find_part(weights, module, ".g_idx");
    double cols = 0, rows = 0;
    if (codes->n_dims != 2 || !codes->size_bytes) return refuse(module, error, "its codes are not a matrix");
    switch (p->form) {
    case WHIT_HF_COMPRESSED: {
        const whit_safetensor *shape = find_part(weights, module, ".weight_shape");
        if (!shape || !whit_safetensor_f64(shape, 0, &rows) || !whit_safetensor_f64(shape, 1, &cols) || !(cols > 0) ||
            rows != (double)codes->dims[0])
            return refuse(module, error, "its weight_shape is missing or another matrix's");
        p->n_rows = codes->dims[0];
        break;
    }
    case WHIT_HF_GPTQ:
    case WHIT_HF_GPTQ_V2:
        if (!index || index->n_dims != 1) return refuse(module, error, "its g_idx is missing");
        p->n_rows = codes->dims[1];
        cols = (double)index->dims[0];
        break;
    case WHIT_HF_AWQ:
        if (codes->dims[1] > UINT32_MAX / 8) return refuse(module, error, "is too large");
        p->n_rows = 8 * codes->dims[1];
        p->bits = 4;
        cols = (double)codes->dims[0];
        break;
    case WHIT_HF_MLX:
        p->n_rows = codes->dims[0];
        p->bits = mlx_bits;
        if (mlx_bits == 2 || mlx_bits == 4 || mlx_bits == 8) cols = (double)codes->dims[1] * (32 / mlx_bits);
        break;
    default:
        p->n_rows = codes->dims[0];
        p->bits = 8;
        cols = (double)codes->dims[1];
        break;
    }
    if (p->n_rows > UINT32_MAX || !(cols >= 1) || cols > WHIT_MAX_COLS)
        return refuse(module, error, "has no columns, or too many rows or columns");
    p->n_cols = (uint64_t)cols;
    uint64_t words = p->form == WHIT_HF_COMPRESSED ? codes->dims[1] : codes->dims[0];
    bool counted = p->form == WHIT_HF_COMPRESSED || p->form == WHIT_HF_GPTQ || p->form == WHIT_HF_GPTQ_V2;
    for (uint32_t bits = 2; counted && bits <= 8; bits *= 2)
        if (words * 32 == p->n_cols * bits) p->bits = bits;
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return refuse(module, error, "its codes are not of 2, 4 or 8 bits");
    return WHIT_OK;
}

/* Derives the groups of a matrix of packed integers from the shape of its scales. */
static whit_status read_groups(const whit_safetensors *weights, const char *module, whit_hf_packed *p,
                               whit_error *error)
{
    bool transposed = p->form == WHIT_HF_GPTQ || p->form == WHIT_HF_GPTQ_V2 || p->form == WHIT_HF_AWQ;
    const whit_safetensor *scales = p->scales;
    if (!scales || scales->n_dims != 2 || !scales->size_bytes) return refuse(module, error, "its scales are missing");
    uint64_t n_groups = scales->dims[transposed ? 0 : 1], per_word = 32 / p->bits;
    if (scales->dims[transposed ? 1 : 0] != p->n_rows || n_groups > p->n_cols)
        return refuse(module, error, "its scales are another matrix's");
    p->group_rows = 1;
    p->group_cols = p->n_cols / n_groups;
    bool power = (p->group_cols & (p->group_cols - 1)) == 0 && p->group_cols >= 16 && p->group_cols <= 256;
    if (p->n_cols % n_groups || (n_groups > 1 && !power))
        return refuse(module, error, "its groups are not of 16, 32, 64, 128 or 256 columns");
    if (scales->dtype != WHIT_DTYPE_F16 && scales->dtype != WHIT_DTYPE_BF16 && scales->dtype != WHIT_DTYPE_F32)
        return refuse(module, error, "its scales are not floats of 16 or 32 bits");
    if (p->form == WHIT_HF_MLX) {
        if (!has_shape(p->zeros, p->n_rows, n_groups) || p->zeros->dtype != scales->dtype)
            return refuse(module, error, "its biases are missing or unlike its scales");
    } else if (p->zeros) {
        bool fits = p->form == WHIT_HF_COMPRESSED ? has_shape(p->zeros, (p->n_rows + per_word - 1) / per_word, n_groups)
                                                  : has_shape(p->zeros, n_groups, p->n_rows / per_word);
        if (!fits || (p->zeros->dtype != WHIT_DTYPE_I32 && p->zeros->dtype != WHIT_DTYPE_U32) ||
            (transposed && p->n_rows % per_word))
            return refuse(module, error, "its zero points do not fit its scales");
    } else if (transposed) {
        return refuse(module, error, "its qzeros are missing");
    }
    const whit_safetensor *index = find_part(weights, module, transposed ? ".g_idx" : ".weight_g_idx");
    double group;
    for (uint64_t i = 0; index && i < p->n_cols; i++)
        if (!whit_safetensor_f64(index, i, &group) || group != (double)(i / p->group_cols))
            return refuse(module, error,
                          "columns are grouped by activation order (desc_act, actorder); use a file without it");
    return WHIT_OK;
}

/* Derives the blocks of an eight-bit float matrix. */
static whit_status read_blocks(const char *module, whit_hf_packed *p, whit_error *error)
{
    const whit_safetensor *scales = p->scales;
    if (!scales) return refuse(module, error, "its weight_scale or weight_scale_inv is missing");
    uint64_t n = scales->size_bytes / whit_dtype_bytes(scales->dtype);
    double value;
    for (uint64_t i = 0; i < n; i++)
        if (!whit_safetensor_f64(scales, i, &value) || !isfinite(value))
            return refuse(module, error, "its scales are not finite numbers");
    p->group_rows = p->n_rows, p->group_cols = p->n_cols;
    if (n == 1) return WHIT_OK;
    if (scales->n_dims == 2 && scales->dims[0] && scales->dims[1]) {
        p->group_rows = scales->dims[0] == p->n_rows ? 1 : 128;
        p->group_cols = scales->dims[1] == 1 ? p->n_cols : 128;
        if ((p->n_rows + p->group_rows - 1) / p->group_rows == scales->dims[0] &&
            (p->n_cols + p->group_cols - 1) / p->group_cols == scales->dims[1])
            return WHIT_OK;
    }
    return refuse(module, error, "its scales are neither one, nor one per row, nor one per block of 128 x 128");
}

whit_status whit_hf_packed_open(const whit_safetensors *weights, whit_hf_form form, const char *module,
                                uint32_t mlx_bits, whit_hf_packed *packed, whit_error *error)
{
    const char *const *ends = ends_of(form);
    *packed = (whit_hf_packed){.form = form};
    packed->codes = find_part(weights, module, ends[0]);
    if (!packed->codes || !whit_hf_is_packed(form, packed->codes))
        return refuse(module, error, "its packed weights are missing");
    bool gptq = form == WHIT_HF_GPTQ || form == WHIT_HF_GPTQ_V2 || form == WHIT_HF_AWQ;
    packed->scales = find_part(weights, module, gptq ? ".scales" : ends[1]);
    if (form == WHIT_HF_FP8 && !packed->scales) packed->scales = find_part(weights, module, ".weight_scale");
    packed->zeros = form == WHIT_HF_COMPRESSED ? find_part(weights, module, ".weight_zero_point")
        : gptq                                 ? find_part(weights, module, ".qzeros")
        : form == WHIT_HF_MLX                  ? find_part(weights, module, ".biases")
                                               : NULL;
    WHIT_TRY(read_shape(weights, module, mlx_bits, packed, error));
    WHIT_TRY(form == WHIT_HF_FP8 ? read_blocks(module, packed, error) : read_groups(weights, module, packed, error));
    choose_type(packed);
    return WHIT_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

void whit_hf_packed_row(const whit_hf_packed *p, uint64_t row, const whit_rows *rows)
{
    if (p->form == WHIT_HF_FP8) {
        uint16_t *halves = rows->elems;
        float scale = 0;
        for (uint64_t k = 0; k < p->n_cols; k++) {
            if (k % p->group_cols == 0) scale = number_at(p, p->scales, row, k / p->group_cols);
            float value = whit_f32_from_e4m3(p->codes->data[row * p->n_cols + k]) * scale;
            halves[k] = p->type.codec == WHIT_CODEC_F16 ? whit_f16_from_f32(value) : whit_bf16_from_f32(value);
        }
        return;
    }
    int8_t *codes = rows->elems;
    const int bias = type_bias(p);
    bool negated = p->type.codec == WHIT_CODEC_T2 && !p->type.has_offset, exact;
    for (uint64_t k = 0; k < p->n_cols; k++) {
        int code = (int)code_at(p, row, k) - bias;
        codes[k] = (int8_t)(negated ? -code : code);
    }
    float *fields = rows->fields;
    for (uint64_t k = 0; k < p->n_cols; k += p->group_cols, fields += 1 + p->type.has_offset) {
        float both[2] = {0};
        fields_of(p, row, k / p->group_cols, both, &exact);
        fields[0] = both[0];
        if (p->type.has_offset) fields[1] = both[1];
    }
}
