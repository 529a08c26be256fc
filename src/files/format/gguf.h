/* SPDX-License-Identifier: MIT
 * Reads GGUF files in place: versions 2 and 3, little-endian, one file or a split set.
 *
 * Opening checks everything that later use relies on: names, types, array bounds, tensor bounds,
 * overlaps, duplicates, strides. Names, strings and tensors then point into the mapped files and
 * live until close. An open file is read-only and may be shared by threads.
 *
 * Memory is bounded by the bytes present, never by counts that the file claims. Errors name the
 * file, the place and the reason. */
#ifndef WHIT_FORMAT_GGUF_H
#define WHIT_FORMAT_GGUF_H

#include "base/file.h"
#include "format/ggml_types.h"

#define WHIT_GGUF_VERSION         3
#define WHIT_GGUF_ALIGNMENT_BYTES 32 /* used if general.alignment is absent */

typedef enum whit_gguf_type { /* numbers as stored in files */
                              WHIT_GGUF_U8 = 0,
                              WHIT_GGUF_I8 = 1,
                              WHIT_GGUF_U16 = 2,
                              WHIT_GGUF_I16 = 3,
                              WHIT_GGUF_U32 = 4,
                              WHIT_GGUF_I32 = 5,
                              WHIT_GGUF_F32 = 6,
                              WHIT_GGUF_BOOL = 7,
                              WHIT_GGUF_STRING = 8,
                              WHIT_GGUF_ARRAY = 9,
                              WHIT_GGUF_U64 = 10,
                              WHIT_GGUF_I64 = 11,
                              WHIT_GGUF_F64 = 12,
} whit_gguf_type;

/* Returns the bytes of one number of the type; 0 for strings, arrays and unknown types. */
size_t whit_gguf_type_bytes(uint32_t type);

/* Describes one metadata entry. `data` are a number's bytes (at any alignment), a string's bytes, or the elements of an
 * array. Text is not terminated. */
typedef struct whit_gguf_key {
    const char *name;
    size_t name_bytes;
    whit_gguf_type type;
    whit_gguf_type element_type; /* type of an array's elements */
    uint64_t n_elems;            /* elements of an array; else 1 */
    const uint8_t *data;
    uint64_t size_bytes;
} whit_gguf_key;

typedef struct whit_gguf_tensor {
    const char *name; /* not terminated */
    size_t name_bytes;
    uint32_t id; /* type id in the file */
    whit_ggml_kind kind;
    uint32_t n_dims;
    uint64_t dims[4];    /* the row's length first; 1 beyond n_dims */
    const uint8_t *data; /* aligned as the file states, no better */
    uint64_t size_bytes;
    uint64_t offset_bytes; /* in its file's data section */
    uint32_t file;         /* index into the files */
} whit_gguf_tensor;

typedef struct whit_gguf_file {
    whit_map map; /* not mapped if the data is the caller's */
    const uint8_t *data;
    uint64_t size_bytes;
    char *path;
    uint64_t data_start_bytes, alignment_bytes;
} whit_gguf_file;

/* Holds an open file; its members are only read. */
typedef struct whit_gguf {
    const whit_allocator *allocator;
    whit_gguf_file *files;
    size_t n_files, n_files_allocated;
    uint32_t version;
    whit_gguf_key *keys; /* keys of the first file, in file order */
    size_t n_keys;
    uint32_t *keys_by_name;
    whit_gguf_tensor *tensors; /* tensors of all files, in file order */
    size_t n_tensors;
    uint32_t *tensors_by_name;
    whit_buf key_memory, tensor_memory; /* memory of keys and tensors */
    whit_buf override_memory;           /* names and values of keys that the user gave */
    whit_buf notes;
} whit_gguf;

/* Opens a file. `path` may be any file of a split set (NAME-00001-of-00003.gguf): all are opened. */
whit_status whit_gguf_open(const char *path, const whit_allocator *allocator, whit_gguf **gguf, whit_error *error);
/* Opens a whole, unsplit file in the caller's memory, which must outlive `gguf`. */
whit_status whit_gguf_open_memory(const void *data, size_t size_bytes, const char *name,
                                  const whit_allocator *allocator, whit_gguf **gguf, whit_error *error);
void whit_gguf_close(whit_gguf *gguf);

/* Replaces or adds metadata keys, whatever their type in the file. Each of the texts is KEY=TYPE:VALUE, or several of
 * them with commas between, as for llama.cpp's --override-kv; TYPE is int, float, bool or str. The texts are copied; of
 * two values of a key the later one counts. The error is WHIT_ERROR_ARGUMENT for another form, and for keys that say
 * where the file's parts lie; after a failure the file may only be closed. */
whit_status whit_gguf_override(whit_gguf *gguf, const char *const *texts, size_t n_texts, whit_error *error);

/* Returns lines that report how type ids that forks use differently were resolved; "" without such ids. */
const char *whit_gguf_notes(const whit_gguf *gguf);

/* ---- metadata ------------------------------------------------------------------------------ */

const whit_gguf_key *whit_gguf_find(const whit_gguf *gguf, const char *name); /* NULL: absent */

/* Read a typed value. If the key is absent, *value stays as it was and the status is WHIT_OK; a key of another type, or
 * a number out of range, is a format error that names file and key. u64 and i64 take any integer type, f64 any
 * number. */
whit_status whit_gguf_u64(const whit_gguf *gguf, const char *name, uint64_t *value, whit_error *error);
whit_status whit_gguf_i64(const whit_gguf *gguf, const char *name, int64_t *value, whit_error *error);
whit_status whit_gguf_f64(const whit_gguf *gguf, const char *name, double *value, whit_error *error);
whit_status whit_gguf_bool(const whit_gguf *gguf, const char *name, bool *value, whit_error *error);
whit_status whit_gguf_string(const whit_gguf *gguf, const char *name, const char **text, size_t *text_bytes,
                             whit_error *error);
/* Finds an array whose elements have the type (for numbers see whit_gguf_element_*); NULL if absent. */
whit_status whit_gguf_array(const whit_gguf *gguf, const char *name, whit_gguf_type element_type,
                            const whit_gguf_key **array, whit_error *error);

/* Read element i of an array of numbers (or the value itself of a scalar); false if there is no such element, it is not
 * a number, or it does not fit. */
bool whit_gguf_element_i64(const whit_gguf_key *key, uint64_t i, int64_t *value);
bool whit_gguf_element_f64(const whit_gguf_key *key, uint64_t i, double *value);

/* Iterates over the strings of an array in order:
 *     whit_gguf_strings strings = whit_gguf_strings_of(key);
 *     while (whit_gguf_strings_next(&strings, &text, &text_bytes)) ... */
typedef struct whit_gguf_strings {
    const uint8_t *at, *end;
    uint64_t n_left;
} whit_gguf_strings;
whit_gguf_strings whit_gguf_strings_of(const whit_gguf_key *array); /* empty for other keys and NULL */
bool whit_gguf_strings_next(whit_gguf_strings *strings, const char **text, size_t *text_bytes);

/* ---- tensors ------------------------------------------------------------------------------- */

const whit_gguf_tensor *whit_gguf_find_tensor(const whit_gguf *gguf, const char *name);
/* Returns a view of the tensor as a matrix: dims[0] columns; the product of all other dimensions is the number of
 * rows. */
whit_ggml_view whit_gguf_view(const whit_gguf_tensor *tensor);

#endif
