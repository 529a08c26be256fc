/* SPDX-License-Identifier: MIT
 * Writes GGUF v3 files: first all metadata, then all tensor infos, then the tensors' data as a stream.
 *
 *    whit_gguf_writer writer;
 *    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, allocator);
 *    whit_gguf_put_string(&writer, "general.architecture", "llama", 5); ...
 *    whit_gguf_put_tensor(&writer, "output.weight", id, 2, dims, size_bytes); ...
 *    whit_gguf_write_head(&writer, &file, error);
 *    whit_gguf_write_data(&writer, bytes, n_bytes, error); ... in the order of the infos
 *    whit_gguf_write_end(&writer, error);
 *    whit_gguf_writer_close(&writer);
 *
 * The put functions return no status: whit_gguf_write_head reports an earlier failed allocation. The file (a
 * whit_writer, which replaces a file atomically) remains the caller's, who commits or discards it afterwards. */
#ifndef WHIT_FORMAT_GGUF_WRITE_H
#define WHIT_FORMAT_GGUF_WRITE_H

#include "format/gguf.h"

typedef struct whit_gguf_writer {
    whit_buf keys, infos, sizes; /* sizes: array of uint64_t, one per tensor */
    uint64_t n_keys, n_tensors, alignment_bytes, data_bytes;
    whit_writer *file;
    uint64_t tensor, written_bytes; /* index of the tensor that is being written, and the number of its bytes written so
                                     * far */
} whit_gguf_writer;

/* Initialises a writer. alignment_bytes is a multiple of 8, or a power of two. Any value except 32 is also written as
 * the key general.alignment. */
void whit_gguf_writer_init(whit_gguf_writer *writer, uint32_t alignment_bytes, const whit_allocator *allocator);
void whit_gguf_writer_close(whit_gguf_writer *writer);

/* Adds a key with a number or bool. `value` points to it and has the size of the type. */
void whit_gguf_put(whit_gguf_writer *writer, const char *name, whit_gguf_type type, const void *value);
void whit_gguf_put_u32(whit_gguf_writer *writer, const char *name, uint32_t value);
void whit_gguf_put_f32(whit_gguf_writer *writer, const char *name, float value);
void whit_gguf_put_bool(whit_gguf_writer *writer, const char *name, bool value);
void whit_gguf_put_string(whit_gguf_writer *writer, const char *name, const char *text, size_t text_bytes);
/* Adds a key with an array of n_elems numbers or bools of a fixed-size type, stored contiguously. */
void whit_gguf_put_array(whit_gguf_writer *writer, const char *name, whit_gguf_type element_type, const void *elements,
                         uint64_t n_elems);
/* Begins a key with an array of n_elems strings. The caller then adds each by whit_gguf_put_element. */
void whit_gguf_put_strings(whit_gguf_writer *writer, const char *name, uint64_t n_elems);
void whit_gguf_put_element(whit_gguf_writer *writer, const char *text, size_t text_bytes);
/* Adds a tensor's info. dims (n_dims, 1 to 4) has the number of columns first. */
void whit_gguf_put_tensor(whit_gguf_writer *writer, const char *name, uint32_t id, uint32_t n_dims,
                          const uint64_t *dims, uint64_t size_bytes);

whit_status whit_gguf_write_head(whit_gguf_writer *writer, whit_writer *file, whit_error *error);
/* Writes the next bytes of the tensors' data, which may end anywhere, also inside the next tensor; padding after each
 * tensor is inserted. More bytes than the tensors have are an argument error. */
whit_status whit_gguf_write_data(whit_gguf_writer *writer, const void *data, size_t n_bytes, whit_error *error);
/* Checks that the data of all tensors was written completely. */
whit_status whit_gguf_write_end(whit_gguf_writer *writer, whit_error *error);

#endif
