/* SPDX-License-Identifier: MIT
 * Appends a frame in one call: after a model, or in a file of its own. ndf_log.h has the single steps. */
#ifndef WHIT_FORMAT_NDF_APPEND_H
#define WHIT_FORMAT_NDF_APPEND_H

#include "format/ndf.h"

/* Appends one named frame and its commit to the model or loose file at `path`, under an exclusive lock. `type` is
 * WHIT_NDF_ADAPTER or above. After a crash the file is as before, with at most a torn tail, which the next append
 * removes. On failure the file is as before, unless only the last flush failed: then the frame is there, but may not
 * survive a power cut. The model's identity does not change. Readers that have the file open must open it again to see
 * the frame. */
whit_status whit_ndf_append(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                            const whit_allocator *allocator, whit_error *error);

/* Writes one named frame as a separate loose file (whit_ndf_open_loose), atomically. */
whit_status whit_ndf_write_loose(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                                 const whit_allocator *allocator, whit_error *error);

/* Writes a loose file that only its owner may read (mode 0600); fails if the file exists. */
whit_status whit_ndf_create_loose(const char *path, uint32_t type, const char *name, const void *data,
                                  size_t size_bytes, const whit_allocator *allocator, whit_error *error);

#endif
