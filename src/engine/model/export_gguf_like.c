/* SPDX-License-Identifier: MIT
 * Copies a GGUF file, replacing some of its matrices by others of the same types. */
#include "format/ggml_encode.h"
#include "format/gguf.h"
#include "model/export_gguf.h"
#include "model/import_gguf.h"

struct like {
    const whit_source *source, *file;
    whit_gguf *gguf;
    whit_writer writer;
    uint64_t written_bytes; /* number of bytes written to the new file so far */
    uint8_t *encoded;       /* buffer for the encoded bytes of one tensor */
    int8_t *codes;          /* buffer for the codes of one row */
    float *fields;
    uint8_t *fields_u8;
    whit_error *error;
};

/* Encodes a row of `type` as blocks of `kind`; returns false if they cannot represent the row exactly. */
static bool encode_row(whit_ggml_kind kind, const whit_tensor_type *type, const whit_rows *rows, uint8_t *out)
{
    whit_ggml_kind own;
    if (whit_ggml_native_kind(type, &own)) return own == kind && whit_ggml_encode_native(kind, type->n_cols, rows, out);
    return whit_ggml_encode_codes(kind, type->n_cols, rows->elems, rows->fields, whit_codec_geometry(type).group_cols,
                                  out);
}

/* Returns the new tensor that replaces a tensor of the file, and sets *from to the original one; NULL if the tensor
 * stays. */
static const whit_source_tensor *find_replacement(const struct like *l, const whit_gguf_tensor *tensor,
                                                  const whit_source_tensor **from)
{
    for (uint32_t i = 0; i < l->source->n_tensors; i++) {
        const whit_source_tensor *with = &l->source->tensors[i];
        char name[96];
        bool rotary;
        if (with->type.scale_kind != WHIT_SCALE_GROUP || strncmp(with->name, "layers.", 7) != 0 ||
            !whit_gguf_tensor_name(with->name, name, &rotary) || strlen(name) != tensor->name_bytes ||
            memcmp(name, tensor->name, tensor->name_bytes) != 0)
            continue;
        *from = whit_source_find(l->file, with->name);
        bool same = *from && (*from)->type.codec == with->type.codec &&
            (*from)->type.scale_type == with->type.scale_type && (*from)->type.group == with->type.group &&
            (*from)->type.n_rows == with->type.n_rows && (*from)->type.n_cols == with->type.n_cols &&
            (*from)->type.n_cols == tensor->dims[0] && (*from)->type.n_rows == whit_gguf_view(tensor).n_rows;
        return same && !(*from)->orders_columns ? with : NULL;
    }
    return NULL;
}

/* Encodes all rows of a tensor in the order of the file. Sets *fits to false if the kind cannot represent a row
 * exactly. */
static whit_status encode_tensor(struct like *l, const whit_gguf_tensor *tensor, const whit_source_tensor *with,
                                 const whit_source_tensor *from, bool *fits)
{
    uint64_t row_bytes = 0;
    whit_rows rows = {.elems = l->codes, .fields = l->fields, .fields_u8 = l->fields_u8};
    *fits = whit_ggml_size(tensor->kind, tensor->dims[0], 1, &row_bytes) &&
        row_bytes * with->type.n_rows == tensor->size_bytes;
    for (uint32_t row = 0; *fits && row < with->type.n_rows; row++) {
        uint32_t in_file = whit_source_row(from, row);
        if (in_file >= with->type.n_rows) {
            *fits = false;
            return WHIT_OK;
        }
        WHIT_TRY(with->read_row(with, row, &rows, l->error));
        *fits = encode_row(tensor->kind, &with->type, &rows, l->encoded + in_file * row_bytes);
    }
    return WHIT_OK;
}

/* Copies the bytes of the original file that are not yet written, up to offset `end`. */
static whit_status copy_until(struct like *l, uint64_t end)
{
    const whit_gguf_file *file = &l->gguf->files[0];
    uint64_t begin = l->written_bytes;
    l->written_bytes = end;
    return end > begin ? whit_writer_append(&l->writer, file->data + begin, end - begin, l->error) : WHIT_OK;
}

static whit_status write_tensors(struct like *l, uint32_t *n_replaced)
{
    const whit_gguf_file *file = &l->gguf->files[0];
    for (uint64_t at = 0;;) { /* visit tensors in the order of their data, which may differ from their order in the
                               * directory */
        const whit_gguf_tensor *next = NULL;
        for (size_t i = 0; i < l->gguf->n_tensors; i++) {
            const whit_gguf_tensor *tensor = &l->gguf->tensors[i];
            if (tensor->offset_bytes >= at && tensor->size_bytes &&
                (!next || tensor->offset_bytes < next->offset_bytes))
                next = tensor;
        }
        if (!next) return copy_until(l, file->size_bytes);
        const whit_source_tensor *from, *with = find_replacement(l, next, &from);
        bool fits = false;
        if (with) WHIT_TRY(encode_tensor(l, next, with, from, &fits));
        if (fits) {
            WHIT_TRY(copy_until(l, (uint64_t)(next->data - file->data)));
            WHIT_TRY(whit_writer_append(&l->writer, l->encoded, next->size_bytes, l->error));
            l->written_bytes += next->size_bytes;
            ++*n_replaced;
        }
        at = next->offset_bytes + 1;
    }
}

whit_status whit_export_gguf_like(const whit_source *source, const whit_source *like, const char *path,
                                  uint32_t *n_replaced, whit_error *error)
{
    const whit_allocator *a = source->allocator;
    struct like l = {.source = source, .file = like, .error = error};
    uint64_t most_bytes = 1, most_cols = 1;
    *n_replaced = 0;
    WHIT_TRY(whit_gguf_open(like->path, a, &l.gguf, error));
    if (l.gguf->n_files != 1) {
        whit_gguf_close(l.gguf);
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: a split set; merge it into one file first", like->path);
    }
    for (size_t i = 0; i < l.gguf->n_tensors; i++)
        if (l.gguf->tensors[i].size_bytes > most_bytes) most_bytes = l.gguf->tensors[i].size_bytes;
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (source->tensors[i].type.n_cols > most_cols) most_cols = source->tensors[i].type.n_cols;
    l.encoded = whit_alloc(a, most_bytes);
    l.codes = whit_zalloc_array(a, most_cols, 4);
    l.fields = whit_zalloc_array(a, most_cols, sizeof *l.fields);
    l.fields_u8 = whit_zalloc_array(a, most_cols, 1);
    whit_status status = l.encoded && l.codes && l.fields && l.fields_u8
        ? whit_writer_open(path, a, &l.writer, error)
        : whit_fail_memory(error, "the file", most_bytes);
    if (status == WHIT_OK) status = write_tensors(&l, n_replaced);
    if (status == WHIT_OK && !*n_replaced)
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: no matrix of its layers has a type that can be refined",
                           like->path);
    if (status == WHIT_OK) status = whit_writer_commit(&l.writer, error);
    whit_writer_discard(&l.writer);
    whit_free(a, l.encoded, most_bytes);
    whit_free(a, l.codes, most_cols * 4);
    whit_free(a, l.fields, most_cols * sizeof *l.fields);
    whit_free(a, l.fields_u8, most_cols);
    whit_gguf_close(l.gguf);
    return status;
}
