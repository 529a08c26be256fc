/* SPDX-License-Identifier: MIT
 * Writes GGUF v3 files: all metadata, then all tensor infos, then the data as a stream.
 *
 *     whit_gguf_writer writer;
 *     whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, allocator);
 *     whit_gguf_put_string(&writer, "general.architecture", "llama", 5); ...
 *     whit_gguf_put_tensor(&writer, "output.weight", id, 2, dims, size_bytes); ...
 *     whit_gguf_write_head(&writer, &file, error);
 *     whit_gguf_write_data(&writer, bytes, n_bytes, error); ... in the order of the infos
 *     whit_gguf_write_end(&writer, error);
 *     whit_gguf_writer_close(&writer);
 *
 * The put functions never fail; a failed allocation is reported by whit_gguf_write_head. The file (a whit_writer, for
 * atomic replacement) stays the caller's: commit or discard it afterwards. */
#ifndef WHIT_FORMAT_GGUF_WRITE_H
#define WHIT_FORMAT_GGUF_WRITE_H

#include "format/gguf.h"

typedef struct whit_gguf_writer {
    whit_buf keys, infos, sizes; /* sizes: uint64_t per tensor */
    uint64_t n_keys, n_tensors, alignment_bytes, data_bytes;
    whit_writer *file;
    uint64_t tensor, written_bytes; /* the tensor that is being written, and how many of its bytes are written */
} whit_gguf_writer;

/* Initialises a writer. alignment_bytes is a multiple of 8, or a power of two; any value except 32 is written as a
 * key. */
void whit_gguf_writer_init(whit_gguf_writer *writer, uint32_t alignment_bytes, const whit_allocator *allocator);
void whit_gguf_writer_close(whit_gguf_writer *writer);

/* Adds a key with a number or bool: the bytes at `value`, as many as the type has. */
void whit_gguf_put(whit_gguf_writer *writer, const char *name, whit_gguf_type type, const void *value);
void whit_gguf_put_u32(whit_gguf_writer *writer, const char *name, uint32_t value);
void whit_gguf_put_f32(whit_gguf_writer *writer, const char *name, float value);
void whit_gguf_put_bool(whit_gguf_writer *writer, const char *name, bool value);
void whit_gguf_put_string(whit_gguf_writer *writer, const char *name, const char *text, size_t text_bytes);
/* Adds a key with an array of numbers: n_elems of the (fixed-size) type, packed. */
void whit_gguf_put_array(whit_gguf_writer *writer, const char *name, whit_gguf_type element_type, const void *elements,
                         uint64_t n_elems);
/* Announces an array of n_elems strings, which must follow one by one. */
void whit_gguf_put_strings(whit_gguf_writer *writer, const char *name, uint64_t n_elems);
void whit_gguf_put_element(whit_gguf_writer *writer, const char *text, size_t text_bytes);
/* Adds a tensor's info. dims (n_dims, 1 to 4) begins with the row's length. */
void whit_gguf_put_tensor(whit_gguf_writer *writer, const char *name, uint32_t id, uint32_t n_dims,
                          const uint64_t *dims, uint64_t size_bytes);

whit_status whit_gguf_write_head(whit_gguf_writer *writer, whit_writer *file, whit_error *error);
/* Writes any number of bytes of the current tensor; padding is put between tensors. More bytes than all tensors have is
 * an argument error. */
whit_status whit_gguf_write_data(whit_gguf_writer *writer, const void *data, size_t n_bytes, whit_error *error);
/* Checks that every tensor was written to its end. */
whit_status whit_gguf_write_end(whit_gguf_writer *writer, whit_error *error);

#endif
