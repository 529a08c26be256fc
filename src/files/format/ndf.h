/* SPDX-License-Identifier: MIT
 * Reads the .ndf container (Neural Document Format) in place. docs/dev/format.md is the specification.
 *
 * Opening maps the file and checks its headers, directory and bounds; it parses no text and copies no tensor. Every
 * returned pointer is valid until whit_ndf_close. An open whit_ndf is never changed, so threads may share it. */
#ifndef WHIT_FORMAT_NDF_H
#define WHIT_FORMAT_NDF_H

#include "base/hash.h"
#include "base/tensor.h"
#include "format/ndf_table.h"

typedef struct whit_ndf whit_ndf;

/* Types of frames. Files store these numbers. Frames with a type >= WHIT_NDF_ADAPTER are appended after the model. */
typedef enum whit_ndf_frame_type {
    WHIT_NDF_HEAD = 1,
    WHIT_NDF_TOKENIZER = 2,
    WHIT_NDF_DATA = 3,
    WHIT_NDF_SEAL = 4,
    WHIT_NDF_COMMIT = 5,
    WHIT_NDF_PART = 6,
    WHIT_NDF_ADAPTER = 16,
    WHIT_NDF_SESSION = 17,
    WHIT_NDF_SIGNATURE = 18,
    WHIT_NDF_PROGRAM = 19,
    WHIT_NDF_MEMORY = 20,
    WHIT_NDF_JOURNAL = 21,
} whit_ndf_frame_type;

const char *whit_ndf_frame_type_name(uint32_t type);

/* Returns whether these first bytes of a file are the beginning of an .ndf file. */
bool whit_ndf_has_magic(const void *data, size_t size_bytes);

/* Opens a model and its part files, which must be in the folder of `path` or, if that is a symbolic link, of its
 * target. On failure *ndf is NULL and the error names the file and the reason. The sizes of a tensor's parts are not
 * checked against its type here, but by src/model, which knows the codecs. */
whit_status whit_ndf_open(const char *path, const whit_allocator *allocator, whit_ndf **ndf, whit_error *error);
/* Opens a model through an open file descriptor, such as that of a file in memory. The caller keeps the descriptor and
 * may close it afterwards. `name` is for messages. Such a model cannot have part files. */
whit_status whit_ndf_open_fd(int fd, const char *name, const whit_allocator *allocator, whit_ndf **ndf,
                             whit_error *error);
/* Opens a model whose bytes are in memory, 64-byte aligned. They are used in place and must outlive `ndf`. `name` is
 * for messages. */
whit_status whit_ndf_open_memory(const void *data, size_t size_bytes, const char *name, const whit_allocator *allocator,
                                 whit_ndf **ndf, whit_error *error);
/* Opens a *loose* file: appended frames and their commits without a model before them, such as a separate adapter or
 * session file. Only the functions for path, files, mapping, appended frames and verification may be used on it. */
whit_status whit_ndf_open_loose(const char *path, const whit_allocator *allocator, whit_ndf **ndf, whit_error *error);
bool whit_ndf_is_loose(const whit_ndf *ndf);
/* Returns whether the file at `path` begins with an appended frame, like a loose file. */
bool whit_ndf_begins_loose(const char *path);
void whit_ndf_close(whit_ndf *ndf);

const char *whit_ndf_path(const whit_ndf *ndf);
/* Returns the model's identity, 32 bytes. It is equal for equal weights, configuration and tokenizer, no matter how
 * they are stored. */
const uint8_t *whit_ndf_identity(const whit_ndf *ndf);

/* Return tables of the model. config: keys that define the computation and are part of the identity. meta: keys that
 * describe the model and are not part of it. */
const whit_table *whit_ndf_config(const whit_ndf *ndf);
const whit_table *whit_ndf_meta(const whit_ndf *ndf);
/* Returns the table of chat templates: texts by name. A template without a name has the key "default". */
const whit_table *whit_ndf_templates(const whit_ndf *ndf);
/* Returns the tokenizer's image, 64-byte aligned. Its content has not been checked. NULL, with size 0, if absent. */
const void *whit_ndf_tokenizer(const whit_ndf *ndf, size_t *size_bytes);

/* Number of tensors. Tensors are numbered from 0 in the order of their names. */
uint32_t whit_ndf_n_tensors(const whit_ndf *ndf);
const char *whit_ndf_tensor_name(const whit_ndf *ndf, uint32_t i);
const whit_tensor_type *whit_ndf_tensor_type(const whit_ndf *ndf, uint32_t i);
/* Sets *tensor to the type and to pointers to the parts in the map, each 64-byte aligned. */
void whit_ndf_tensor(const whit_ndf *ndf, uint32_t i, whit_tensor *tensor);
/* Returns the number of the tensor named `name`, or -1. */
int64_t whit_ndf_find(const whit_ndf *ndf, const char *name);
/* Returns the digest that the writer stored for tensor `i`, 32 bytes: over its type, row-major codes and scales, and
 * corrections. */
const uint8_t *whit_ndf_tensor_digest(const whit_ndf *ndf, uint32_t i);

/* Return the number of files, and the path and committed size of file i. File 0 is the main file, the others are its
 * part files. */
uint32_t whit_ndf_n_files(const whit_ndf *ndf);
const char *whit_ndf_file(const whit_ndf *ndf, uint32_t i, uint64_t *size_bytes);

/* Returns the address of the map of the whole file i. Returns false if there is no such file, or it is not mapped. */
bool whit_ndf_mapping(const whit_ndf *ndf, uint32_t i, const void **address, size_t *size_bytes, const char **path);

/* A frame that was appended after the model, such as an adapter or a session. Only committed frames count; they are
 * numbered in file order. */
typedef struct whit_ndf_appended {
    uint32_t type; /* whit_ndf_frame_type, or a number that this program does not know */
    const char *name;
    const uint8_t *data; /* 64-byte aligned */
    uint64_t size_bytes;
    const uint8_t *digest; /* 32-byte root hash of the payload, as the frame's header states it */
} whit_ndf_appended;

uint32_t whit_ndf_n_appended(const whit_ndf *ndf);
/* Returns the type of appended frame `i`; `i` must be less than whit_ndf_n_appended. */
uint32_t whit_ndf_appended_type(const whit_ndf *ndf, uint32_t i);
/* Checks the bounds of appended frame `i` and describes it; `i` must be less than whit_ndf_n_appended. */
whit_status whit_ndf_appended_at(const whit_ndf *ndf, uint32_t i, whit_ndf_appended *appended, whit_error *error);
/* Returns the number of bytes after the last complete commit of the main file: the remains of an interrupted append, or
 * damage. Readers ignore them. */
uint64_t whit_ndf_torn_bytes(const whit_ndf *ndf);

#endif
