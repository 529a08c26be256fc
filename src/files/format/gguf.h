/* SPDX-License-Identifier: MIT
 * Reads GGUF files in place: versions 2 and 3, little-endian, one file or a split set.
 *
 * Opening checks everything that later use relies on: names, types, array bounds, tensor bounds, overlaps, duplicates,
 * sizes. Names, strings and tensors then point into the mapped files and are valid until the file is closed. An open
 * file is read-only and may be shared by threads.
 *
 * Memory use is bounded by the bytes present, never by counts that the file claims. Errors of opening name the file and
 * the reason and, if possible, the byte, key or tensor. */
#ifndef WHIT_FORMAT_GGUF_H
#define WHIT_FORMAT_GGUF_H

#include "base/file.h"
#include "format/ggml_types.h"

#define WHIT_GGUF_VERSION         3
#define WHIT_GGUF_ALIGNMENT_BYTES 32 /* default if the key general.alignment is absent */

typedef enum whit_gguf_type { /* the values are those stored in files */
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

/* Returns the size of one number or bool of this type; 0 for strings, arrays and unknown types. */
size_t whit_gguf_type_bytes(uint32_t type);

/* One metadata entry. `name` is not terminated. `data` points to a number's bytes (at any alignment), a string's bytes
 * (not terminated), or the elements of an array, as the file stores them. */
typedef struct whit_gguf_key {
    const char *name;
    size_t name_bytes;
    whit_gguf_type type;
    whit_gguf_type element_type; /* type of an array's elements */
    uint64_t n_elems;            /* number of elements of an array; 1 for other types */
    const uint8_t *data;
    uint64_t size_bytes;
} whit_gguf_key;

typedef struct whit_gguf_tensor {
    const char *name; /* not terminated */
    size_t name_bytes;
    uint32_t id; /* the type id that the file states */
    whit_ggml_kind kind;
    uint32_t n_dims;
    uint64_t dims[4];    /* number of columns first; 1 for dimensions beyond n_dims */
    const uint8_t *data; /* aligned only to the file's stated alignment */
    uint64_t size_bytes;
    uint64_t offset_bytes; /* offset in the data section of its file */
    uint32_t file;         /* index into `files` of whit_gguf */
} whit_gguf_tensor;

typedef struct whit_gguf_file {
    whit_map map; /* unused if the file is in the caller's memory */
    const uint8_t *data;
    uint64_t size_bytes;
    char *path;
    uint64_t data_start_bytes, alignment_bytes;
} whit_gguf_file;

/* An open file or split set. Users only read the members. */
typedef struct whit_gguf {
    const whit_allocator *allocator;
    whit_gguf_file *files;
    size_t n_files, n_files_allocated;
    uint32_t version;
    whit_gguf_key *keys; /* keys of the first file, in file order, then keys that whit_gguf_override has added */
    size_t n_keys;
    uint32_t *keys_by_name;
    whit_gguf_tensor *tensors; /* tensors of all files, in file order */
    size_t n_tensors;
    uint32_t *tensors_by_name;
    whit_buf key_memory, tensor_memory; /* memory of `keys` and of `tensors` */
    whit_buf override_memory;           /* names and values of the keys that whit_gguf_override sets */
    whit_buf notes;
} whit_gguf;

/* Opens a file. If its key split.count says that it is one of several files (named like NAME-00001-of-00003.gguf), all
 * files of this split set are opened. */
whit_status whit_gguf_open(const char *path, const whit_allocator *allocator, whit_gguf **gguf, whit_error *error);
/* Opens an unsplit file that is in the caller's memory, which must outlive `gguf`. `name` is for messages. */
whit_status whit_gguf_open_memory(const void *data, size_t size_bytes, const char *name,
                                  const whit_allocator *allocator, whit_gguf **gguf, whit_error *error);
void whit_gguf_close(whit_gguf *gguf);

/* Replaces or adds metadata keys; the type in the file does not matter. Each text is KEY=TYPE:VALUE, or several of them
 * separated by commas, as for llama.cpp's --override-kv; TYPE is int, float, bool or str. The texts are copied. If a
 * key has two values, the later one counts. The error is WHIT_ERROR_ARGUMENT for a malformed text, and for keys that
 * determine the positions of tensors or files; after an error the file may only be closed. May be called only once for
 * a file. Pointers to keys that were found before become invalid. */
whit_status whit_gguf_override(whit_gguf *gguf, const char *const *texts, size_t n_texts, whit_error *error);

/* Returns one line per type id of the tensors that has several meanings (whit_ggml_id_collides), reporting the meaning
 * that was chosen; "" without such ids. */
const char *whit_gguf_notes(const whit_gguf *gguf);

/* ---- metadata ------------------------------------------------------------------------------ */

const whit_gguf_key *whit_gguf_find(const whit_gguf *gguf, const char *name); /* NULL if absent */

/* Read the value of a key as the given type. If the key is absent, *value is unchanged and the result is WHIT_OK. A
 * value of another type, or a number out of range, is a format error that names the file and the key. u64 and i64
 * accept any integer type, f64 any number. */
whit_status whit_gguf_u64(const whit_gguf *gguf, const char *name, uint64_t *value, whit_error *error);
whit_status whit_gguf_i64(const whit_gguf *gguf, const char *name, int64_t *value, whit_error *error);
whit_status whit_gguf_f64(const whit_gguf *gguf, const char *name, double *value, whit_error *error);
whit_status whit_gguf_bool(const whit_gguf *gguf, const char *name, bool *value, whit_error *error);
whit_status whit_gguf_string(const whit_gguf *gguf, const char *name, const char **text, size_t *text_bytes,
                             whit_error *error);
/* Finds an array with elements of this type; *array is NULL if the key is absent. A value of another type is a format
 * error. Read number elements by whit_gguf_element_*. */
whit_status whit_gguf_array(const whit_gguf *gguf, const char *name, whit_gguf_type element_type,
                            const whit_gguf_key **array, whit_error *error);

/* Read element i of an array of numbers, or, with i = 0, a single number. Return false if there is no such element, its
 * type is not a number (for i64: not an integer), or the value does not fit. */
bool whit_gguf_element_i64(const whit_gguf_key *key, uint64_t i, int64_t *value);
bool whit_gguf_element_f64(const whit_gguf_key *key, uint64_t i, double *value);

/* Iterates over the elements of an array of strings, in order:
 *    whit_gguf_strings strings = whit_gguf_strings_of(key);
 *    while (whit_gguf_strings_next(&strings, &text, &text_bytes)) ... */
typedef struct whit_gguf_strings {
    const uint8_t *at, *end;
    uint64_t n_left;
} whit_gguf_strings;
whit_gguf_strings whit_gguf_strings_of(const whit_gguf_key *array); /* other types than arrays of strings, and NULL,
                                                                     * have no elements */
bool whit_gguf_strings_next(whit_gguf_strings *strings, const char **text, size_t *text_bytes);

/* ---- tensors ------------------------------------------------------------------------------- */

const whit_gguf_tensor *whit_gguf_find_tensor(const whit_gguf *gguf, const char *name);
/* Returns the tensor as a matrix: dims[0] is the number of columns, the product of the other dimensions the number of
 * rows. */
whit_ggml_view whit_gguf_view(const whit_gguf_tensor *tensor);

#endif
