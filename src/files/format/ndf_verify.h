/* SPDX-License-Identifier: MIT
 * Checks every byte of an open container against its hashes, on many threads. */
#ifndef WHIT_FORMAT_NDF_VERIFY_H
#define WHIT_FORMAT_NDF_VERIFY_H

#include "format/ndf.h"

/* Describes one damaged place. Strings are valid only during the call. */
typedef struct whit_ndf_damage {
    const char *path;
    uint32_t frame, type;        /* type: whit_ndf_frame_type; 0: not a frame, but the bytes after the last commit */
    uint64_t offset, size_bytes; /* in the file */
    const char *what;            /* e.g. "chunk 3: tensors 'a', 'b' and 2 more" */
} whit_ndf_damage;

typedef void whit_ndf_damage_fn(void *user, const whit_ndf_damage *damage);

typedef struct whit_ndf_verify_result {
    uint64_t n_bytes;   /* payload bytes hashed */
    uint64_t n_damaged; /* number of damaged places */
} whit_ndf_verify_result;

/* Hashes all payloads of all files, then checks padding, the seal, the identity and the appended frames; a torn tail
 * counts as one damaged place. `on_damage` (may be NULL) is called for every place, in the order of files and bytes,
 * from the calling thread, for any n_threads (0: one per core). The result is WHIT_OK if nothing is damaged; else
 * WHIT_ERROR_FORMAT with the first place. */
whit_status whit_ndf_verify(const whit_ndf *ndf, uint32_t n_threads, whit_ndf_damage_fn *on_damage, void *user,
                            whit_ndf_verify_result *result, whit_error *error);

#endif
