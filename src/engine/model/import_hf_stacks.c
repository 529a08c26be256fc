/* SPDX-License-Identifier: MIT
 * Reads matrices of all experts of a layer from one tensor of a folder, in other orders than rows by columns
 * (gpt-oss). */
#include "model/import_hf.h"

#include "kernels/grids.h"

#include <stdio.h>

#define MXFP4_COLS 32

/* Reads a row in blocks of 32 weights. A block has one byte for its scale, and sixteen bytes with two codes each, the
 * first code in the low nibble. */
static whit_status read_mxfp4(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    static const int8_t levels[16] = WHIT_GRID_LEVELS_E2M1; /* levels of the codes times two, which are integers */
    const struct whit_hf_import *import = tensor->context;
    const uint32_t n_blocks = tensor->type.n_cols / MXFP4_COLS;
    const uint64_t first = (uint64_t)whit_source_row(tensor, row) * n_blocks;
    const uint8_t *nibbles = (const uint8_t *)import->codes + first * (MXFP4_COLS / 2);
    int8_t *codes = rows->elems;
    (void)error;
    memcpy(rows->fields_u8, import->scales + first, n_blocks);
    for (uint32_t i = 0; i < tensor->type.n_cols / 2; i++) {
        codes[2 * i] = levels[nibbles[i] & 15];
        codes[2 * i + 1] = levels[nibbles[i] >> 4];
    }
    return WHIT_OK;
}

const char *whit_hf_mxfp4_experts(const char *file_name, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    char name[160];
    const size_t n = strlen(file_name) - strlen("_blocks");
    snprintf(name, sizeof name, "%.*s_scales", (int)n, file_name);
    const whit_safetensor *scales = whit_safetensors_find(import->importer->hf->weights, name), *blocks = import->file;
    if (!scales) return "its scales (_scales) are missing";
    bool fits = blocks->n_dims == 4 && scales->n_dims == 3 && blocks->dims[3] == MXFP4_COLS / 2 && blocks->size_bytes &&
        blocks->dtype == WHIT_DTYPE_U8 && scales->dtype == WHIT_DTYPE_U8;
    for (uint32_t i = 0; fits && i < 3; i++) fits = blocks->dims[i] == scales->dims[i];
    if (!fits) return "its blocks and scales are not those of MXFP4 matrices, one for each expert";
    if (blocks->dims[2] > WHIT_MAX_COLS / MXFP4_COLS || blocks->dims[0] > INT32_MAX / blocks->dims[1])
        return "is too large";
    import->codes = (const int8_t *)blocks->data;
    import->scales = scales->data;
    tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_F4,
                                      .layout = WHIT_LAYOUT_TILE16,
                                      .scale_kind = WHIT_SCALE_GROUP,
                                      .scale_type = WHIT_SCALE_E8,
                                      .group = MXFP4_COLS,
                                      .n_rows = (uint32_t)(blocks->dims[0] * blocks->dims[1]),
                                      .n_cols = (uint32_t)blocks->dims[2] * MXFP4_COLS};
    tensor->read_row = read_mxfp4;
    return NULL;
}

/* Reads a row of an expert's matrix, which is a column in the file. Neighbouring columns share cache lines, so
 * consecutive rows are read from the caches. */
static whit_status read_column(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    const size_t n_rows = import->view.n_cols, n_cols = tensor->type.n_cols, from = whit_source_row(tensor, row),
                 elem_bytes = whit_codec_find(tensor->type.codec)->elem_bytes;
    const uint8_t *elem = import->view.data + (from / n_rows * n_cols * n_rows + from % n_rows) * elem_bytes;
    (void)error;
    for (size_t i = 0; i < n_cols; i++, elem += n_rows * elem_bytes)
        memcpy((uint8_t *)rows->elems + i * elem_bytes, elem, elem_bytes);
    return WHIT_OK;
}

const char *whit_hf_transpose_experts(const struct whit_hf_import *import, whit_source_tensor *tensor)
{
    const whit_safetensor *file = import->file;
    if (file->n_dims != 3) return "is not a matrix for each expert";
    if (file->dims[1] > WHIT_MAX_COLS || file->dims[0] > INT32_MAX / file->dims[2]) return "is too large";
    tensor->type.n_rows = (uint32_t)(file->dims[0] * file->dims[2]);
    tensor->type.n_cols = (uint32_t)file->dims[1];
    tensor->read_row = read_column;
    return NULL;
}
