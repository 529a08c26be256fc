/* SPDX-License-Identifier: MIT
 * Reads an .ndf file as a source, for changing its codecs: names and layouts are already canonical. The record of its
 * origin is kept: "whit.*" entries become "whit.previous.*". */
#include "kernels/corrections.h"
#include "model/source.h"

#include <stdio.h>

struct ndf_import {
    whit_tensor tensor;
};

struct ndf_importer {
    whit_ndf *file;
    struct ndf_import *imports;
    uint32_t n;
};

static whit_status read_row(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct ndf_import *import = tensor->context;
    (void)error;
    whit_codec_unpack(&import->tensor, row, 1, rows);
    return WHIT_OK;
}

static whit_status read_corrected_row(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                      whit_error *error)
{
    const struct ndf_import *import = tensor->context;
    const int32_t id = (int32_t)row;
    (void)error;
    whit_codec_get_rows(&import->tensor, &id, 1, rows->elems, tensor->type.n_cols);
    return WHIT_OK;
}

/* Sets *type to the type as which a tensor is read. A t2 tensor that t5 can represent is read as t5: a conversion then
 * stores t5 unless t2 is requested again. */
static whit_status find_type(const whit_source *source, const whit_tensor *tensor, whit_tensor_type *type,
                             whit_error *error)
{
    *type = tensor->type;
    if (type->codec != WHIT_CODEC_T2) return WHIT_OK;
    whit_tensor_type t5 = *type;
    t5.codec = WHIT_CODEC_T5;
    if (whit_tensor_type_check(&t5, NULL) != WHIT_OK) return WHIT_OK;
    whit_geometry g = whit_codec_geometry(type);
    size_t n_fields = (size_t)g.n_groups * g.n_fields + 1;
    int8_t *codes = whit_alloc(source->allocator, type->n_cols);
    float *fields = whit_alloc(source->allocator, n_fields * sizeof *fields);
    uint8_t *fields_u8 = whit_alloc(source->allocator, n_fields); /* used only if scales are u8 */
    whit_status status =
        codes && fields && fields_u8 ? WHIT_OK : whit_fail_memory(error, "a row of a matrix", type->n_cols);
    bool ternary = true;
    for (uint32_t row = 0; status == WHIT_OK && ternary && row < type->n_rows; row++) {
        whit_codec_unpack(tensor, row, 1, &(whit_rows){.elems = codes, .fields = fields, .fields_u8 = fields_u8});
        for (uint32_t k = 0; k < type->n_cols; k++) ternary &= codes[k] <= 1;
    }
    if (status == WHIT_OK && ternary) *type = t5;
    whit_free(source->allocator, codes, type->n_cols);
    whit_free(source->allocator, fields, n_fields * sizeof *fields);
    whit_free(source->allocator, fields_u8, n_fields);
    return status;
}

static whit_status add_tensor(whit_source *source, struct ndf_importer *importer, uint32_t i, whit_error *error)
{
    struct ndf_import *import = &importer->imports[i];
    const char *name = whit_ndf_tensor_name(importer->file, i);
    whit_error inner = {0};
    whit_ndf_tensor(importer->file, i, &import->tensor);
    if (whit_tensor_check(&import->tensor, &inner) != WHIT_OK)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%s': %s", source->path, name, inner.message);
    bool is_corrected = whit_is_corrected(&import->tensor);
    if (is_corrected && !source->options->reads_values)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor '%s' has corrections added to its codes, which only whit compress makes; start "
                         "from the original",
                         source->path, name);
    if (strlen(name) >= WHIT_VALUE_NAME_BYTES)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the name of tensor '%s' is longer than 47 bytes, the limit",
                         source->path, name);
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    tensor->context = import;
    tensor->read_row = read_row;
    if (is_corrected) {
        const whit_tensor_type *from = &import->tensor.type;
        tensor->read_row = read_corrected_row;
        tensor->type = (whit_tensor_type){
            .codec = WHIT_CODEC_F32, .layout = WHIT_LAYOUT_TILE16, .n_rows = from->n_rows, .n_cols = from->n_cols};
        return WHIT_OK;
    }
    return find_type(source, &import->tensor, &tensor->type, error);
}

static whit_status write_metadata(const whit_source *source, whit_ndf_writer *writer, whit_error *error)
{
    const struct ndf_importer *importer = source->importer;
    const whit_table *old = whit_ndf_meta(importer->file);
    whit_table_builder *meta = whit_ndf_writer_meta(writer);
    for (uint32_t i = 0; i < whit_table_count(old); i++) {
        whit_value value;
        char renamed[256];
        const char *key = whit_table_at(old, i, &value);
        bool ours = strncmp(key, "whit.", 5) == 0;
        if (ours && (size_t)snprintf(renamed, sizeof renamed, "whit.previous.%s", key + 5) >= sizeof renamed)
            return whit_fail(
                error, WHIT_ERROR_LIMIT,
                "%s: the model was converted so often that its key '%s' is too long: start from the original",
                source->path, key);
        whit_table_set_value(meta, ours ? renamed : key, &value);
    }
    return WHIT_OK;
}

static void close_importer(whit_source *source)
{
    struct ndf_importer *importer = source->importer;
    if (!importer) return;
    whit_free(source->allocator, importer->imports, importer->n * sizeof *importer->imports);
    whit_ndf_close(importer->file);
    whit_free(source->allocator, importer, sizeof *importer);
    source->importer = NULL;
}

static whit_status read_texts(whit_source *source, const whit_ndf *file, whit_error *error)
{
    const whit_table *templates = whit_ndf_templates(file);
    size_t n;
    const void *image = whit_ndf_tokenizer(file, &n);
    if (image && !whit_buf_append(&source->tokenizer, image, n)) return whit_fail_memory(error, "the tokenizer", n);
    for (uint32_t i = 0; i < whit_table_count(templates); i++) {
        whit_value text;
        const char *name = whit_table_at(templates, i, &text);
        if (text.type == WHIT_VALUE_STRING)
            WHIT_TRY(whit_source_add_template(source, name, strlen(name), text.string, text.count, error));
    }
    return WHIT_OK;
}

whit_status whit_import_ndf(whit_source *source, whit_error *error)
{
    struct ndf_importer *importer = whit_zalloc(source->allocator, sizeof *importer);
    if (!importer) return whit_fail_memory(error, "reading the model", sizeof *importer);
    source->importer = importer;
    source->close = close_importer;
    source->write_metadata = write_metadata;
    WHIT_TRY(whit_ndf_open(source->path, source->allocator, &importer->file, error));
    WHIT_TRY(whit_config_load(importer->file, &source->config, error));
    uint32_t n = whit_ndf_n_tensors(importer->file);
    importer->imports = whit_zalloc_array(source->allocator, n, sizeof *importer->imports);
    if (!importer->imports && n) return whit_fail_memory(error, "reading the model", n * sizeof *importer->imports);
    importer->n = n;
    for (uint32_t i = 0; i < n; i++) WHIT_TRY(add_tensor(source, importer, i, error));
    return read_texts(source, importer->file, error);
}
