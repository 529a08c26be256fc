/* SPDX-License-Identifier: MIT
 * Declares the bytes of an .ndf file as C structures (docs/dev/format.md is the specification).
 *
 * All numbers are little-endian. The structures have no compiler padding, and each is aligned where it is read in
 * place. */
#ifndef WHIT_FORMAT_NDF_LAYOUT_H
#define WHIT_FORMAT_NDF_LAYOUT_H

#include "base/hash.h"
#include "base/tensor.h"
#include "format/ndf_names.h"

#define WHIT_NDF_MAGIC       "whit.ndf" /* eight bytes, no terminator */
#define WHIT_NDF_VERSION     1u
#define WHIT_NDF_CHUNK_BYTES ((size_t)1 << 20)
#define WHIT_NDF_ALIGN_BYTES 64u
#define WHIT_NDF_MAX_FRAMES  65536u /* limit for files with a model or a part of it; loose files may have more */
#define WHIT_NDF_MAX_FILES   512u

/* Domains of the BLAKE2b hashes. With different domains, a leaf's hash can never be that of a node, or a frame's that
 * of a model. */
#define WHIT_NDF_DOMAIN_LEAF      "ndf.leaf"
#define WHIT_NDF_DOMAIN_NODE      "ndf.node"
#define WHIT_NDF_DOMAIN_FRAME     "ndf.frame"
#define WHIT_NDF_DOMAIN_SET       "ndf.set"
#define WHIT_NDF_DOMAIN_CONFIG    "ndf.config"
#define WHIT_NDF_DOMAIN_TOKENIZER "ndf.tokenizer"
#define WHIT_NDF_DOMAIN_MODEL     "ndf.model"

typedef struct whit_ndf_header {
    uint8_t magic[8];
    uint32_t version, type, flags, index;
    uint64_t payload_bytes;
    uint8_t previous[WHIT_HASH_BYTES]; /* frame hash of the previous frame; zeros in the first */
    uint8_t root[WHIT_HASH_BYTES];     /* root hash over the payload's leaf hashes */
    uint8_t hash[WHIT_HASH_BYTES];     /* frame hash over the 96 bytes before this member */
} whit_ndf_header;
_Static_assert(sizeof(whit_ndf_header) == 128, "frame header");
_Static_assert(offsetof(whit_ndf_header, hash) == 96, "what the frame hash covers");

/* ---- HEAD ---- */

typedef enum whit_ndf_section_kind {
    WHIT_NDF_CONFIG = 1,    /* table */
    WHIT_NDF_META = 2,      /* table */
    WHIT_NDF_TEMPLATES = 3, /* table of strings */
    WHIT_NDF_TENSORS = 4,
    WHIT_NDF_FILES = 5,
    WHIT_NDF_SECTION_COUNT /* sections of this kind or above are unknown and skipped */
} whit_ndf_section_kind;

typedef struct whit_ndf_head {
    uint32_t n_sections, reserved;
} whit_ndf_head;

typedef struct whit_ndf_section {
    uint32_t kind, reserved;
    uint64_t offset, size_bytes; /* `offset` counts from the payload's start and is a multiple of 64 */
} whit_ndf_section;
_Static_assert(sizeof(whit_ndf_section) == 24, "section");

/* ---- tables ---- */

typedef struct whit_ndf_table_header {
    uint32_t n_entries, n_buckets;
    uint64_t size_bytes;
} whit_ndf_table_header;
_Static_assert(sizeof(whit_ndf_table_header) == 16, "table header");

typedef struct whit_ndf_entry {
    whit_ndf_name name;
    uint32_t type;  /* whit_value_type */
    uint64_t count; /* number of bytes of a string or bytes value, or of elements of an array; 1 for single values */
    uint64_t value; /* the bits of a single value; for others the offset of the data in the table */
} whit_ndf_entry;
_Static_assert(sizeof(whit_ndf_entry) == 32, "table entry");

typedef struct whit_ndf_string {
    uint32_t offset, bytes;
} whit_ndf_string;

/* ---- tensor directory: header, tensors by name, parts by position, buckets, names ---- */

typedef struct whit_ndf_tensors_header {
    uint32_t n_tensors, n_parts, n_buckets, reserved;
} whit_ndf_tensors_header;

typedef struct whit_ndf_tensor_entry {
    whit_ndf_name name;
    uint32_t reserved;
    whit_tensor_type type;
    uint32_t part[WHIT_PART_COUNT]; /* index in the part table + 1, or 0 if the tensor lacks the part */
} whit_ndf_tensor_entry;
_Static_assert(sizeof(whit_ndf_tensor_entry) == 80, "tensor entry");

typedef struct whit_ndf_part_entry {
    uint64_t offset, size_bytes; /* `offset` counts from the start of the DATA payload and is a multiple of 64 */
    uint32_t file;               /* 0: the main file */
    uint32_t tensor;             /* index of the part's tensor in the directory */
    uint32_t part;               /* whit_part */
    uint32_t reserved;
} whit_ndf_part_entry;
_Static_assert(sizeof(whit_ndf_part_entry) == 32, "part entry");

/* ---- files ---- */

typedef struct whit_ndf_files_header {
    uint32_t n_files, reserved;
} whit_ndf_files_header;

typedef struct whit_ndf_file_entry {
    uint64_t data_bytes;  /* payload size of the file's DATA frame */
    whit_ndf_string name; /* its offset counts from the section's start; empty for file 0 */
} whit_ndf_file_entry;
_Static_assert(sizeof(whit_ndf_file_entry) == 16, "file entry");

/* ---- other payloads ---- */

typedef struct whit_ndf_seal {
    uint8_t identity[WHIT_HASH_BYTES], config[WHIT_HASH_BYTES], tokenizer[WHIT_HASH_BYTES];
    uint64_t n_tensors, n_part_files;
    uint8_t reserved[16];
    /* then a digest per tensor, in the order of names, and the hash of the commit of each part file */
} whit_ndf_seal;
_Static_assert(sizeof(whit_ndf_seal) == 128, "seal");

typedef struct whit_ndf_commit {
    uint64_t end_bytes; /* size of the file including this frame */
    uint64_t n_frames;  /* number of frames including this one */
} whit_ndf_commit;

typedef struct whit_ndf_part_file {
    uint8_t set[WHIT_HASH_BYTES]; /* hash of the main file's HEAD payload; equal in all part files of a model */
    uint32_t file, n_files;
} whit_ndf_part_file;
_Static_assert(sizeof(whit_ndf_part_file) == 40, "part file");

typedef struct whit_ndf_appended_header {
    uint32_t name_bytes, reserved;
    uint64_t data_offset, data_bytes; /* `data_offset` counts from the payload's start; the name follows this header */
} whit_ndf_appended_header;
_Static_assert(sizeof(whit_ndf_appended_header) == 24, "appended header");

#endif
