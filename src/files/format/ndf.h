/* SPDX-License-Identifier: MIT
 * Reads the .ndf container (Neural Document Format) in place. docs/dev/format.md is the specification.
 *
 * Opening maps the file and checks headers, directory and bounds; it parses no text and copies no
 * tensor. Every pointer that comes out points into the map and lives until whit_ndf_close. An open
 * whit_ndf is never changed, so threads may share it. */
#ifndef WHIT_FORMAT_NDF_H
#define WHIT_FORMAT_NDF_H

#include "base/hash.h"
#include "base/tensor.h"
#include "format/ndf_table.h"

typedef struct whit_ndf whit_ndf;

/* These are the types of frames; their numbers are stored in files. Frames from WHIT_NDF_ADAPTER on are appended after
 * the model. */
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

/* Returns whether these first bytes of a file look like an .ndf. */
bool whit_ndf_has_magic(const void *data, size_t size_bytes);

/* Opens a model and its part files, which lie in the folder of `path`. On failure *ndf is NULL and the error names the
 * file, the place and the reason. The sizes of a tensor's parts are not checked against its type here, but by the model
 * room, which knows the codecs. */
whit_status whit_ndf_open(const char *path, const whit_allocator *allocator, whit_ndf **ndf, whit_error *error);
/* Opens a model by an open descriptor (a memory file), which stays the caller's and may be closed at once. `name` is
 * for messages; such a model cannot have part files. */
whit_status whit_ndf_open_fd(int fd, const char *name, const whit_allocator *allocator, whit_ndf **ndf,
                             whit_error *error);
/* Opens a model in memory, 64-byte aligned, whose bytes are used in place and outlive the model. */
whit_status whit_ndf_open_memory(const void *data, size_t size_bytes, const char *name, const whit_allocator *allocator,
                                 whit_ndf **ndf, whit_error *error);
/* Opens a *loose* file: appended frames and their commits without a model before them (an adapter's own file, a
 * session). Only path, files, mapping, appended frames and verify are defined for such a file. */
whit_status whit_ndf_open_loose(const char *path, const whit_allocator *allocator, whit_ndf **ndf, whit_error *error);
bool whit_ndf_is_loose(const whit_ndf *ndf);
/* Returns whether the file at `path` begins like a loose file. */
bool whit_ndf_begins_loose(const char *path);
void whit_ndf_close(whit_ndf *ndf);

const char *whit_ndf_path(const whit_ndf *ndf);
/* Returns the identity, 32 bytes: equal for equal weights, configuration and tokenizer, however they are stored. */
const uint8_t *whit_ndf_identity(const whit_ndf *ndf);

/* Return the tables of a model: config defines the computation (part of the identity); meta describes the model (not
 * part of it). */
const whit_table *whit_ndf_config(const whit_ndf *ndf);
const whit_table *whit_ndf_meta(const whit_ndf *ndf);
/* Returns the chat templates: strings by name; the unnamed one is called "default". */
const whit_table *whit_ndf_templates(const whit_ndf *ndf);
/* Returns the tokenizer's image, 64-byte aligned, unchecked; NULL and 0 if absent. */
const void *whit_ndf_tokenizer(const whit_ndf *ndf, size_t *size_bytes);

/* Tensors are numbered in the order of their names. */
uint32_t whit_ndf_n_tensors(const whit_ndf *ndf);
const char *whit_ndf_tensor_name(const whit_ndf *ndf, uint32_t i);
const whit_tensor_type *whit_ndf_tensor_type(const whit_ndf *ndf, uint32_t i);
/* Returns type and parts in place, every part 64-byte aligned. */
void whit_ndf_tensor(const whit_ndf *ndf, uint32_t i, whit_tensor *tensor);
/* Returns the tensor's number, or -1. */
int64_t whit_ndf_find(const whit_ndf *ndf, const char *name);
/* Returns the digest of the row-major codes and scales, 32 bytes, as the writer received it. */
const uint8_t *whit_ndf_tensor_digest(const whit_ndf *ndf, uint32_t i);

/* Count and name the files. File 0 is the main file, the others are its part files. Sizes count the committed bytes. */
uint32_t whit_ndf_n_files(const whit_ndf *ndf);
const char *whit_ndf_file(const whit_ndf *ndf, uint32_t i, uint64_t *size_bytes);

/* Returns where file i is mapped as a whole; false if there is no such file, or it is not mapped. */
bool whit_ndf_mapping(const whit_ndf *ndf, uint32_t i, const void **address, size_t *size_bytes, const char **path);

/* Describes a frame that was appended after the model (an adapter, a session). Only committed frames are counted, in
 * order. */
typedef struct whit_ndf_appended {
    uint32_t type; /* whit_ndf_frame_type, or a number that this program does not know */
    const char *name;
    const uint8_t *data; /* 64-byte aligned */
    uint64_t size_bytes;
    const uint8_t *digest; /* root hash of its payload, 32 bytes, from its header */
} whit_ndf_appended;

uint32_t whit_ndf_n_appended(const whit_ndf *ndf);
/* Returns the type of appended frame `i` < n_appended. */
uint32_t whit_ndf_appended_type(const whit_ndf *ndf, uint32_t i);
/* Returns an appended frame, after a check of its bounds; `i` < n_appended. */
whit_status whit_ndf_appended_at(const whit_ndf *ndf, uint32_t i, whit_ndf_appended *appended, whit_error *error);
/* Returns the bytes after the last whole commit (a torn append); they are ignored. */
uint64_t whit_ndf_torn_bytes(const whit_ndf *ndf);

#endif
