/* SPDX-License-Identifier: MIT */
#include "format/gguf_write.h"

void whit_gguf_writer_init(whit_gguf_writer *writer, uint32_t alignment_bytes, const whit_allocator *allocator)
{
    *writer = (whit_gguf_writer){.keys.allocator = allocator,
                                 .infos.allocator = allocator,
                                 .sizes.allocator = allocator,
                                 .alignment_bytes = alignment_bytes};
    if (alignment_bytes != WHIT_GGUF_ALIGNMENT_BYTES) whit_gguf_put_u32(writer, "general.alignment", alignment_bytes);
}

void whit_gguf_writer_close(whit_gguf_writer *writer)
{
    whit_buf_free(&writer->keys);
    whit_buf_free(&writer->infos);
    whit_buf_free(&writer->sizes);
}

static void append_u32(whit_buf *buf, uint32_t value)
{
    whit_buf_append(buf, &value, sizeof value);
}

static void append_u64(whit_buf *buf, uint64_t value)
{
    whit_buf_append(buf, &value, sizeof value);
}

static void append_text(whit_buf *buf, const char *text, size_t text_bytes)
{
    append_u64(buf, text_bytes);
    whit_buf_append(buf, text, text_bytes);
}

static void put_name(whit_gguf_writer *writer, const char *name, size_t name_bytes, whit_gguf_type type)
{
    append_text(&writer->keys, name, name_bytes);
    append_u32(&writer->keys, type);
    writer->n_keys++;
}

void whit_gguf_put(whit_gguf_writer *writer, const char *name, whit_gguf_type type, const void *value)
{
    put_name(writer, name, strlen(name), type);
    whit_buf_append(&writer->keys, value, whit_gguf_type_bytes(type));
}

void whit_gguf_put_u32(whit_gguf_writer *writer, const char *name, uint32_t value)
{
    whit_gguf_put(writer, name, WHIT_GGUF_U32, &value);
}

void whit_gguf_put_f32(whit_gguf_writer *writer, const char *name, float value)
{
    whit_gguf_put(writer, name, WHIT_GGUF_F32, &value);
}

void whit_gguf_put_bool(whit_gguf_writer *writer, const char *name, bool value)
{
    whit_gguf_put(writer, name, WHIT_GGUF_BOOL, &(uint8_t){value});
}

void whit_gguf_put_string(whit_gguf_writer *writer, const char *name, const char *text, size_t text_bytes)
{
    put_name(writer, name, strlen(name), WHIT_GGUF_STRING);
    append_text(&writer->keys, text, text_bytes);
}

static void put_array_head(whit_gguf_writer *writer, const char *name, whit_gguf_type element_type, uint64_t n_elems)
{
    put_name(writer, name, strlen(name), WHIT_GGUF_ARRAY);
    append_u32(&writer->keys, element_type);
    append_u64(&writer->keys, n_elems);
}

void whit_gguf_put_array(whit_gguf_writer *writer, const char *name, whit_gguf_type element_type, const void *elements,
                         uint64_t n_elems)
{
    put_array_head(writer, name, element_type, n_elems);
    whit_buf_append(&writer->keys, elements, n_elems * whit_gguf_type_bytes(element_type));
}

void whit_gguf_put_strings(whit_gguf_writer *writer, const char *name, uint64_t n_elems)
{
    put_array_head(writer, name, WHIT_GGUF_STRING, n_elems);
}

void whit_gguf_put_element(whit_gguf_writer *writer, const char *text, size_t text_bytes)
{
    append_text(&writer->keys, text, text_bytes);
}

static uint64_t padding(uint64_t at, uint64_t alignment_bytes)
{
    uint64_t rest = at % alignment_bytes;
    return rest ? alignment_bytes - rest : 0;
}

void whit_gguf_put_tensor(whit_gguf_writer *writer, const char *name, uint32_t id, uint32_t n_dims,
                          const uint64_t *dims, uint64_t size_bytes)
{
    append_text(&writer->infos, name, strlen(name));
    append_u32(&writer->infos, n_dims);
    whit_buf_append(&writer->infos, dims, n_dims * sizeof *dims);
    append_u32(&writer->infos, id);
    append_u64(&writer->infos, writer->data_bytes);
    append_u64(&writer->sizes, size_bytes);
    writer->n_tensors++;
    writer->data_bytes += size_bytes + padding(size_bytes, writer->alignment_bytes);
}

static whit_status write_padding(whit_gguf_writer *writer, uint64_t n_bytes, whit_error *error)
{
    static const uint8_t zeros[4096];
    while (n_bytes) {
        size_t part = n_bytes < sizeof zeros ? (size_t)n_bytes : sizeof zeros;
        WHIT_TRY(whit_writer_append(writer->file, zeros, part, error));
        n_bytes -= part;
    }
    return WHIT_OK;
}

whit_status whit_gguf_write_head(whit_gguf_writer *writer, whit_writer *file, whit_error *error)
{
    if (writer->keys.failed || writer->infos.failed || writer->sizes.failed)
        return whit_fail_memory(error, "the metadata of the GGUF file",
                                writer->keys.size_bytes + writer->infos.size_bytes);
    uint8_t head[24] = "GGUF";
    head[4] = WHIT_GGUF_VERSION;
    memcpy(head + 8, &writer->n_tensors, 8);
    memcpy(head + 16, &writer->n_keys, 8);
    writer->file = file;
    WHIT_TRY(whit_writer_append(file, head, sizeof head, error));
    WHIT_TRY(whit_writer_append(file, writer->keys.data, writer->keys.size_bytes, error));
    WHIT_TRY(whit_writer_append(file, writer->infos.data, writer->infos.size_bytes, error));
    return write_padding(writer, padding(file->offset_bytes, writer->alignment_bytes), error);
}

whit_status whit_gguf_write_data(whit_gguf_writer *writer, const void *data, size_t n_bytes, whit_error *error)
{
    const uint8_t *bytes = data;
    while (n_bytes) {
        if (writer->tensor == writer->n_tensors)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "GGUF writer: more data was added than the declared tensors have");
        uint64_t size = whit_load_u64(writer->sizes.data + 8 * writer->tensor);
        uint64_t part = size - writer->written_bytes < n_bytes ? size - writer->written_bytes : n_bytes;
        WHIT_TRY(whit_writer_append(writer->file, bytes, (size_t)part, error));
        bytes += part;
        n_bytes -= (size_t)part;
        writer->written_bytes += part;
        if (writer->written_bytes < size) continue;
        WHIT_TRY(write_padding(writer, padding(size, writer->alignment_bytes), error));
        writer->written_bytes = 0;
        writer->tensor++;
    }
    return WHIT_OK;
}

whit_status whit_gguf_write_end(whit_gguf_writer *writer, whit_error *error)
{
    if (writer->tensor == writer->n_tensors) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "GGUF writer: tensor %llu of %llu was not written to its end",
                     (unsigned long long)writer->tensor, (unsigned long long)writer->n_tensors);
}
