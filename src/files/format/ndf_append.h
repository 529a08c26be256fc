/* SPDX-License-Identifier: MIT
 * Appends a frame in one call, to a model or to a loose file. ndf_log.h declares the single steps. */
#ifndef WHIT_FORMAT_NDF_APPEND_H
#define WHIT_FORMAT_NDF_APPEND_H

#include "format/ndf.h"

/* Appends one named frame and its commit to the model or loose file at `path`, under an exclusive lock. `type` is
 * WHIT_NDF_ADAPTER or above. A crash leaves the file unchanged, except for an incomplete frame at its end, which the
 * next append removes. A failure leaves the file unchanged too, unless only the last flush failed: then the frame is in
 * the file, but may be lost in a power cut. The model's identity does not change. Readers that have the file open must
 * open it again to see the frame. */
whit_status whit_ndf_append(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                            const whit_allocator *allocator, whit_error *error);

/* Writes a new loose file (whit_ndf_open_loose) with one named frame, atomically. */
whit_status whit_ndf_write_loose(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                                 const whit_allocator *allocator, whit_error *error);

/* Like whit_ndf_write_loose, but only its owner can read the file (mode 0600), and an existing file is an error. */
whit_status whit_ndf_create_loose(const char *path, uint32_t type, const char *name, const void *data,
                                  size_t size_bytes, const whit_allocator *allocator, whit_error *error);

#endif
