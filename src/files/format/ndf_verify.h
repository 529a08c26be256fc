/* SPDX-License-Identifier: MIT
 * Checks every byte of an open container against its hashes, on several threads. */
#ifndef WHIT_FORMAT_NDF_VERIFY_H
#define WHIT_FORMAT_NDF_VERIFY_H

#include "format/ndf.h"

/* One damaged place. The strings are valid only during the call. */
typedef struct whit_ndf_damage {
    const char *path;
    uint32_t frame, type;        /* type: whit_ndf_frame_type; 0: the bytes after the last commit, which are not a
                                  * frame */
    uint64_t offset, size_bytes; /* position in the file */
    const char *what;            /* description, such as "chunk 3: tensors 'a', 'b' and 2 more" */
} whit_ndf_damage;

typedef void whit_ndf_damage_fn(void *user, const whit_ndf_damage *damage);

typedef struct whit_ndf_verify_result {
    uint64_t n_bytes;   /* payload bytes hashed */
    uint64_t n_damaged; /* number of damaged places */
} whit_ndf_verify_result;

/* Hashes all payloads of all files and compares them, then checks padding and, if nothing was damaged so far, the seal,
 * the identity and the appended frames. Bytes after the last commit count as one damaged place. `on_damage` (may be
 * NULL) is called for every damaged place, in the order of files and positions, always on the calling thread. n_threads
 * 0: one thread per core. Damage is a WHIT_ERROR_FORMAT that names the first damaged place. `result` may be NULL. */
whit_status whit_ndf_verify(const whit_ndf *ndf, uint32_t n_threads, whit_ndf_damage_fn *on_damage, void *user,
                            whit_ndf_verify_result *result, whit_error *error);

#endif
