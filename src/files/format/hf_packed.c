/* SPDX-License-Identifier: MIT */
#include "format/hf_packed.h"

#include <math.h>
#include <stdio.h>

#include "base/fp8.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- names ---------------------------------------------------------------------------------- */

/* The tensors that a module may have. The suffix of a tensor's name determines which it is. */
enum part { PART_CODES, PART_SCALES, PART_ZEROS, PART_INPUT_SCALE, PART_OUTPUT_SCALE, PART_OTHER };

struct ending {
    whit_hf_form form;
    enum part part;
    const char *text;
};

/* A form may have several suffixes for a part; the first one for which a tensor exists counts. */
static const struct ending endings[] = {
    {WHIT_HF_COMPRESSED, PART_CODES, ".weight_packed"},
    {WHIT_HF_COMPRESSED, PART_CODES, ".weight"},
    {WHIT_HF_COMPRESSED, PART_SCALES, ".weight_scale"},
    {WHIT_HF_COMPRESSED, PART_ZEROS, ".weight_zero_point"},
    {WHIT_HF_COMPRESSED, PART_INPUT_SCALE, ".input_scale"},
    {WHIT_HF_COMPRESSED, PART_OUTPUT_SCALE, ".output_scale"},
    {WHIT_HF_COMPRESSED, PART_OTHER, ".weight_shape"},
    {WHIT_HF_GEMMA, PART_CODES, ".weight"},
    {WHIT_HF_GEMMA, PART_CODES, ".embedding_quantized"},
    {WHIT_HF_GEMMA, PART_SCALES, ".weight_scale"},
    {WHIT_HF_GEMMA, PART_SCALES, ".embedding_scale"},
    {WHIT_HF_GEMMA, PART_INPUT_SCALE, ".input_activation_scale"},
    {WHIT_HF_GEMMA, PART_OUTPUT_SCALE, ".output_activation_scale"},
    {WHIT_HF_GEMMA, PART_OTHER, ".k_cache_scale"}, /* another runtime uses these two tensors for its int8 cache */
    {WHIT_HF_GEMMA, PART_OTHER, ".v_cache_scale"},
    {WHIT_HF_GPTQ, PART_CODES, ".qweight"},
    {WHIT_HF_GPTQ, PART_ZEROS, ".qzeros"},
    {WHIT_HF_GPTQ, PART_SCALES, ".scales"},
    {WHIT_HF_GPTQ, PART_OTHER, ".g_idx"},
    {WHIT_HF_MLX, PART_CODES, ".weight"},
    {WHIT_HF_MLX, PART_SCALES, ".scales"},
    {WHIT_HF_MLX, PART_ZEROS, ".biases"},
    {WHIT_HF_FP8, PART_CODES, ".weight"},
    {WHIT_HF_FP8, PART_SCALES, ".weight_scale_inv"},
    {WHIT_HF_FP8, PART_SCALES, ".weight_scale"},
};

/* Returns the form whose rows in `endings` apply to `form`. */
static whit_hf_form naming_form(whit_hf_form form)
{
    return form == WHIT_HF_GPTQ_V2 || form == WHIT_HF_AWQ ? WHIT_HF_GPTQ : form;
}

whit_hf_role whit_hf_packed_role(whit_hf_form form, const char *name, size_t *module_bytes)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < COUNT(endings); i++) {
        size_t m = strlen(endings[i].text);
        if (endings[i].form != naming_form(form) || n <= m || strcmp(name + n - m, endings[i].text) != 0) continue;
        *module_bytes = n - m;
        return endings[i].part == PART_CODES ? WHIT_HF_CODES : WHIT_HF_BESIDE;
    }
    return WHIT_HF_OTHER;
}

bool whit_hf_is_packed(whit_hf_form form, const whit_safetensor *tensor)
{
    switch (form) {
    case WHIT_HF_PLAIN: return false;
    case WHIT_HF_FP8: return tensor->dtype == WHIT_DTYPE_F8_E4M3;
    case WHIT_HF_GEMMA: return tensor->dtype == WHIT_DTYPE_U8 || tensor->dtype == WHIT_DTYPE_I8;
    case WHIT_HF_COMPRESSED:
        if (tensor->dtype == WHIT_DTYPE_I8) return true;
        break;
    default: break;
    }
    return tensor->dtype == WHIT_DTYPE_I32 || tensor->dtype == WHIT_DTYPE_U32;
}

/* ---- elements ------------------------------------------------------------------------------- */

static uint32_t word_at(const whit_safetensor *tensor, uint64_t i)
{
    return whit_load_u32(tensor->data + 4 * i);
}

/* Returns code `i` of a sequence packed into words. The sequence begins at word `first`; its words are `stride` words
 * apart. */
static unsigned code_in(const whit_safetensor *tensor, unsigned bits, uint64_t first, uint64_t stride, uint64_t i)
{
    uint64_t per_word = 32 / bits;
    return word_at(tensor, first + i / per_word * stride) >> bits * (i % per_word) & ((1u << bits) - 1);
}

/* Returns which of the eight codes of an AWQ word belongs to column c (0..7). */
static uint64_t awq_place(uint64_t c)
{
    return c % 2 * 4 + c / 2;
}

/* Returns a code from a matrix that is packed along its rows, in words or bytes. Signed bytes become unsigned by adding
 * 128. */
static unsigned byte_code(const whit_hf_packed *p, uint64_t row, uint64_t col)
{
    const uint8_t *bytes = p->codes->data + row * (p->codes->size_bytes / p->n_rows);
    unsigned code = bytes[col * p->bits / 8] >> col * p->bits % 8 & ((1u << p->bits) - 1);
    return p->codes->dtype == WHIT_DTYPE_I8 ? code ^ 0x80 : code;
}

static unsigned code_at(const whit_hf_packed *p, uint64_t row, uint64_t col)
{
    switch (p->form) {
    case WHIT_HF_GPTQ:
    case WHIT_HF_GPTQ_V2: return code_in(p->codes, p->bits, row, p->n_rows, col);
    case WHIT_HF_AWQ: return word_at(p->codes, col * (p->n_rows / 8) + row / 8) >> 4 * awq_place(row % 8) & 15;
    default: return byte_code(p, row, col);
    }
}

/* Reads the scale or bias of a row's group. The tensor's shape is (rows, groups), in fp8 (groups of rows, groups of
 * columns), in GPTQ and AWQ (groups, rows). */
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
    case WHIT_HF_COMPRESSED: { /* zero points are packed along the output rows */
        uint64_t n_groups = (p->n_cols + p->group_cols - 1) / p->group_cols;
        return code_in(p->zeros, p->bits, group, n_groups, row);
    }
    case WHIT_HF_AWQ: return word_at(p->zeros, group * (p->n_rows / 8) + row / 8) >> 4 * awq_place(row % 8) & 15;
    default: return code_in(p->zeros, p->bits, group * (p->n_rows / per_word), 1, row) + (p->form == WHIT_HF_GPTQ);
    }
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Returns the stored code that corresponds to code 0 of `type`. */
static int type_bias(const whit_hf_packed *p)
{
    if (p->type.codec == WHIT_CODEC_I4) return 8;
    if (p->type.codec == WHIT_CODEC_I8) return p->bits == 8 ? 128 : 0;
    return p->type.has_offset ? 1 : 2;
}

/* Computes the scale (fields[0]) and offset (fields[1]) of a group, so that value = code * scale + offset. *exact: the
 * offset needs no rounding. Two-bit symmetric codes -2 to 1 are negated to -1 to 2, the range of t2, and their scale is
 * negated too. */
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
    if (p->bits == 8)
        type->codec = WHIT_CODEC_I8;
    else if (p->bits == 4)
        type->codec = WHIT_CODEC_I4;
    else
        type->codec = WHIT_CODEC_T2;
    p->exact = all_exact(p);
    if (p->exact || p->bits == 8) return;
    type->codec = WHIT_CODEC_I8; /* Codes of i8 begin at 0 here, so that the offset is not shifted. */
    p->exact = all_exact(p);
}

/* ---- opening -------------------------------------------------------------------------------- */

static whit_status refuse_module(const char *module, whit_error *error, const char *why)
{
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "matrix '%s': %s", module, why);
}

static const whit_safetensor *find_part(const whit_safetensors *weights, const char *module, const char *end)
{
    char name[192];
    if (snprintf(name, sizeof name, "%s%s", module, end) >= (int)sizeof name) return NULL;
    return whit_safetensors_find(weights, name);
}

/* Returns the tensor of the module that is this part in this form; NULL if not found. */
static const whit_safetensor *find_by_role(const whit_safetensors *weights, whit_hf_form form, const char *module,
                                           enum part part)
{
    const whit_safetensor *found = NULL;
    for (size_t i = 0; !found && i < COUNT(endings); i++)
        if (endings[i].form == naming_form(form) && endings[i].part == part)
            found = find_part(weights, module, endings[i].text);
    return found;
}

static bool has_shape(const whit_safetensor *tensor, uint64_t rows, uint64_t cols)
{
    return tensor && tensor->n_dims == 2 && tensor->dims[0] == rows && tensor->dims[1] == cols;
}

/* Returns the number of bits (2, 4 or 8) for which n_cols codes fill `words` words, the last one perhaps partly; 0 if
 * no number or several fit. */
static uint32_t bits_of_words(uint64_t words, uint64_t n_cols)
{
    uint32_t found = 0, n_fitting = 0;
    for (uint32_t bits = 2; bits <= 8; bits *= 2) {
        if (words != (n_cols * bits + 31) / 32) continue;
        found = bits;
        n_fitting++;
    }
    return n_fitting == 1 ? found : 0;
}

/* Determines the number of rows, of columns and of bits of a code from the tensors' shapes; the bits are the argument
 * `bits` where the shapes do not determine them. */
static whit_status read_shape(const whit_safetensors *weights, const char *module, uint32_t bits, whit_hf_packed *p,
                              whit_error *error)
{
    const whit_safetensor *codes = p->codes, *index = find_part(weights, module, ".g_idx");
    double cols = 0, rows = 0;
    if (codes->n_dims != 2 || !codes->size_bytes)
        return refuse_module(module, error, "its codes are not a matrix: the folder is damaged");
    switch (p->form) {
    case WHIT_HF_COMPRESSED: {
        p->n_rows = codes->dims[0];
        if (codes->dtype == WHIT_DTYPE_I8) {
            p->bits = 8;
            cols = (double)codes->dims[1];
            break;
        }
        const whit_safetensor *shape = find_part(weights, module, ".weight_shape");
        if (!shape || !whit_safetensor_f64(shape, 0, &rows) || !whit_safetensor_f64(shape, 1, &cols) || !(cols > 0) ||
            rows != (double)codes->dims[0])
            return refuse_module(module, error,
                                 "its weight_shape is missing or does not match the matrix: the folder is damaged");
        break;
    }
    case WHIT_HF_GPTQ:
    case WHIT_HF_GPTQ_V2:
        if (!index || index->n_dims != 1)
            return refuse_module(module, error, "its g_idx is missing: the folder is incomplete");
        p->n_rows = codes->dims[1];
        cols = (double)index->dims[0];
        break;
    case WHIT_HF_AWQ:
        if (codes->dims[1] > UINT32_MAX / 8) return refuse_module(module, error, "has more than 2^32 rows, the limit");
        p->n_rows = 8 * codes->dims[1];
        p->bits = 4;
        cols = (double)codes->dims[0];
        break;
    case WHIT_HF_MLX:
        p->n_rows = codes->dims[0];
        p->bits = bits;
        if (bits == 2 || bits == 4 || bits == 8) cols = (double)codes->dims[1] * (32 / bits);
        break;
    case WHIT_HF_GEMMA:
        p->n_rows = codes->dims[0];
        p->bits = codes->dtype == WHIT_DTYPE_I8 ? 8 : bits;
        if (p->bits == 2 || p->bits == 4 || p->bits == 8) cols = (double)codes->dims[1] * (8 / p->bits);
        break;
    default:
        p->n_rows = codes->dims[0];
        p->bits = 8;
        cols = (double)codes->dims[1];
        break;
    }
    if (p->n_rows > UINT32_MAX || !(cols >= 1) || cols > WHIT_MAX_COLS)
        return refuse_module(module, error, "has no columns, more than 65536, or more than 2^32 rows: the limits");
    p->n_cols = (uint64_t)cols;
    if (p->form == WHIT_HF_COMPRESSED && !p->bits) p->bits = bits_of_words(codes->dims[1], p->n_cols);
    if (p->form == WHIT_HF_GPTQ || p->form == WHIT_HF_GPTQ_V2) p->bits = bits_of_words(codes->dims[0], p->n_cols);
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return refuse_module(module, error, "its codes are not of 2, 4 or 8 bits, and others are not supported");
    return WHIT_OK;
}

/* Determines the number of columns per group from the shape of the scales, for packed integers. Checks the scales, the
 * zero points, and that groups consist of consecutive columns. */
static whit_status read_groups(const whit_safetensors *weights, const char *module, whit_hf_packed *p,
                               whit_error *error)
{
    bool transposed = p->form == WHIT_HF_GPTQ || p->form == WHIT_HF_GPTQ_V2 || p->form == WHIT_HF_AWQ;
    const whit_safetensor *scales = p->scales;
    if (!scales || scales->n_dims != 2 || !scales->size_bytes)
        return refuse_module(module, error, "its scales are missing: the folder is incomplete");
    uint64_t n_groups = scales->dims[transposed ? 0 : 1], per_word = 32 / p->bits;
    if (scales->dims[transposed ? 1 : 0] != p->n_rows || n_groups > p->n_cols)
        return refuse_module(module, error, "its scales do not match the matrix: the folder is damaged");
    p->group_rows = 1;
    p->group_cols = p->n_cols / n_groups;
    bool power = (p->group_cols & (p->group_cols - 1)) == 0 && p->group_cols >= 16 && p->group_cols <= 256;
    if (p->n_cols % n_groups || (n_groups > 1 && !power))
        return refuse_module(module, error,
                             "its groups are not of 16, 32, 64, 128 or 256 columns, and others are not supported");
    if (scales->dtype != WHIT_DTYPE_F16 && scales->dtype != WHIT_DTYPE_BF16 && scales->dtype != WHIT_DTYPE_F32)
        return refuse_module(module, error, "its scales are not floats of 16 or 32 bits, and others are not supported");
    double scale;
    for (uint64_t i = 0; i < p->n_rows * n_groups; i++)
        if (!whit_safetensor_f64(scales, i, &scale) || !isfinite(scale))
            return refuse_module(module, error, "its scales are not finite numbers: the folder is damaged");
    if (p->form == WHIT_HF_MLX) {
        if (!has_shape(p->zeros, p->n_rows, n_groups) || p->zeros->dtype != scales->dtype)
            return refuse_module(
                module, error,
                "its biases are missing or differ from its scales in shape or type: the folder is damaged");
    } else if (p->zeros) {
        bool fits = p->form == WHIT_HF_COMPRESSED ? has_shape(p->zeros, (p->n_rows + per_word - 1) / per_word, n_groups)
                                                  : has_shape(p->zeros, n_groups, p->n_rows / per_word);
        if (!fits || (p->zeros->dtype != WHIT_DTYPE_I32 && p->zeros->dtype != WHIT_DTYPE_U32) ||
            (transposed && p->n_rows % per_word))
            return refuse_module(module, error, "its zero points do not fit its scales: the folder is damaged");
    } else if (transposed) {
        return refuse_module(module, error, "its qzeros are missing: the folder is incomplete");
    }
    const whit_safetensor *index = find_part(weights, module, transposed ? ".g_idx" : ".weight_g_idx");
    double group;
    for (uint64_t i = 0; index && i < p->n_cols; i++)
        if (!whit_safetensor_f64(index, i, &group) || group != (double)(i / p->group_cols))
            return refuse_module(module, error,
                                 "columns are grouped by activation order (desc_act, actorder); use a file without it");
    return WHIT_OK;
}

whit_status whit_hf_fixed_scales(const whit_safetensors *weights, whit_hf_form form, const char *module,
                                 float scales[2], whit_error *error)
{
    for (int i = 0; i < 2; i++) {
        const whit_safetensor *tensor = find_by_role(weights, form, module, i ? PART_OUTPUT_SCALE : PART_INPUT_SCALE);
        double value = 0;
        if (tensor &&
            (tensor->size_bytes != whit_dtype_bytes(tensor->dtype) || !whit_safetensor_f64(tensor, 0, &value) ||
             !(value >= 0) || !isfinite(value)))
            return refuse_module(module, error,
                                 i ? "the scale of its outputs is not one positive number: the folder is damaged"
                                   : "the scale of its inputs is not one positive number: the folder is damaged");
        scales[i] = (float)value;
    }
    return WHIT_OK;
}

/* Determines the rows and columns per scale from the shape of the scales, for eight-bit floats. */
static whit_status read_blocks(const char *module, whit_hf_packed *p, whit_error *error)
{
    const whit_safetensor *scales = p->scales;
    if (!scales)
        return refuse_module(module, error,
                             "its weight_scale or weight_scale_inv is missing: the folder is incomplete");
    uint64_t n = scales->size_bytes / whit_dtype_bytes(scales->dtype);
    double value;
    for (uint64_t i = 0; i < n; i++)
        if (!whit_safetensor_f64(scales, i, &value) || !isfinite(value))
            return refuse_module(module, error, "its scales are not finite numbers: the folder is damaged");
    p->group_rows = p->n_rows, p->group_cols = p->n_cols;
    if (n == 1) return WHIT_OK;
    if (scales->n_dims == 2 && scales->dims[0] && scales->dims[1]) {
        p->group_rows = scales->dims[0] == p->n_rows ? 1 : 128;
        p->group_cols = scales->dims[1] == 1 ? p->n_cols : 128;
        if ((p->n_rows + p->group_rows - 1) / p->group_rows == scales->dims[0] &&
            (p->n_cols + p->group_cols - 1) / p->group_cols == scales->dims[1])
            return WHIT_OK;
    }
    return refuse_module(
        module, error,
        "its scales are neither one, nor one per row or block of 128 x 128, and others are not supported");
}

whit_status whit_hf_packed_open(const whit_safetensors *weights, whit_hf_form form, const char *module, uint32_t bits,
                                whit_hf_packed *packed, whit_error *error)
{
    float scales[2];
    *packed = (whit_hf_packed){.form = form};
    packed->codes = find_by_role(weights, form, module, PART_CODES);
    if (!packed->codes || !whit_hf_is_packed(form, packed->codes))
        return refuse_module(module, error, "its packed weights are missing: the folder is incomplete");
    packed->scales = find_by_role(weights, form, module, PART_SCALES);
    packed->zeros = find_by_role(weights, form, module, PART_ZEROS);
    WHIT_TRY(read_shape(weights, module, bits, packed, error));
    WHIT_TRY(form == WHIT_HF_FP8 ? read_blocks(module, packed, error) : read_groups(weights, module, packed, error));
    choose_type(packed);
    WHIT_TRY(whit_hf_fixed_scales(weights, form, module, scales, error));
    if (scales[0] == 0 && scales[1] == 0) return WHIT_OK;
    if (packed->type.scale_kind != WHIT_SCALE_ROW || packed->zeros)
        return refuse_module(
            module, error,
            "fixed scales of activations are supported only for weights with one scale per row and no zero points");
    packed->type.act = WHIT_TENSOR_ACT_FIXED;
    packed->type.scale = scales[0];
    packed->type.scale_b = scales[1];
    return WHIT_OK;
}

static bool same_bytes(const whit_safetensor *a, const whit_safetensor *b)
{
    return a == b ||
        (a && b && a->dtype == b->dtype && a->size_bytes == b->size_bytes && !memcmp(a->data, b->data, a->size_bytes));
}

bool whit_hf_packed_equal(const whit_hf_packed *a, const whit_hf_packed *b)
{
    return !memcmp(&a->type, &b->type, sizeof a->type) && same_bytes(a->codes, b->codes) &&
        same_bytes(a->scales, b->scales) && same_bytes(a->zeros, b->zeros);
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
