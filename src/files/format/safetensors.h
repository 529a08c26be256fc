/* SPDX-License-Identifier: MIT
 * Reads safetensors in place: one file, or shards with an index.
 *
 *    u64 header length | header (JSON: name -> {dtype, shape, data_offsets}) | data section
 *
 * Opening checks the type, shape, bounds and overlap of every tensor. Names and data are then valid until the set is
 * closed; data are in the mapped files. An open set is read-only and may be shared by threads. */
#ifndef WHIT_FORMAT_SAFETENSORS_H
#define WHIT_FORMAT_SAFETENSORS_H

#include "base/file.h"
#include "base/json.h"
#include "format/ggml_types.h"

typedef enum whit_dtype {
    WHIT_DTYPE_F64,
    WHIT_DTYPE_F32,
    WHIT_DTYPE_F16,
    WHIT_DTYPE_BF16,
    WHIT_DTYPE_F8_E4M3,
    WHIT_DTYPE_F8_E5M2,
    WHIT_DTYPE_I64,
    WHIT_DTYPE_I32,
    WHIT_DTYPE_I16,
    WHIT_DTYPE_I8,
    WHIT_DTYPE_U64,
    WHIT_DTYPE_U32,
    WHIT_DTYPE_U16,
    WHIT_DTYPE_U8,
    WHIT_DTYPE_BOOL,
    WHIT_DTYPE_COUNT
} whit_dtype;

size_t whit_dtype_bytes(whit_dtype dtype);

#define WHIT_SAFETENSORS_MAX_DIMS 8

typedef struct whit_safetensor {
    const char *name; /* not terminated */
    size_t name_bytes;
    whit_dtype dtype;
    uint32_t n_dims;
    uint64_t dims[WHIT_SAFETENSORS_MAX_DIMS]; /* number of columns last */
    const uint8_t *data;                      /* at any alignment */
    uint64_t size_bytes;
    uint32_t file; /* index into `files` of whit_safetensors */
} whit_safetensor;

typedef struct whit_safetensors_file {
    whit_map map; /* unused if the file is in the caller's memory */
    const uint8_t *data;
    uint64_t size_bytes;
    char *path;
    whit_json header;
} whit_safetensors_file;

/* An open file or set of shards. Users only read the members. */
typedef struct whit_safetensors {
    const whit_allocator *allocator;
    whit_buf file_memory, tensor_memory, index_text;
    whit_safetensors_file *files;
    size_t n_files;
    whit_safetensor *tensors; /* sorted by name */
    size_t n_tensors;
    whit_json index; /* parsed index file of a set of shards */
} whit_safetensors;

/* Opens a set. `path` is a .safetensors file, or an index (a .json file with a weight_map). With an index, every shard
 * that it names must exist, and the set has only the tensors that the index lists. */
whit_status whit_safetensors_open(const char *path, const whit_allocator *allocator, whit_safetensors **set,
                                  whit_error *error);
/* Opens one file that is in the caller's memory, which must outlive the set. `name` is for messages. Tests and fuzzers
 * use this function: a sanitizer detects reads beyond allocated memory, but not beyond a mapped file. */
whit_status whit_safetensors_open_memory(const void *data, size_t size_bytes, const char *name,
                                         const whit_allocator *allocator, whit_safetensors **set, whit_error *error);
void whit_safetensors_close(whit_safetensors *set);

const whit_safetensor *whit_safetensors_find(const whit_safetensors *set, const char *name);

/* Describes a tensor of F32, F16 or BF16 as a matrix: the last dimension is the number of columns, the product of the
 * others the number of rows (a scalar is 1 x 1). Returns false for other types and for tensors without elements. */
bool whit_safetensor_view(const whit_safetensor *tensor, whit_ggml_view *view);
/* Reads element i as a number, for scales and other small tensors. Returns false if there is no such element or its
 * type is an 8-bit float. */
bool whit_safetensor_f64(const whit_safetensor *tensor, uint64_t i, double *value);

#endif
