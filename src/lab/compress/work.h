/* SPDX-License-Identifier: MIT
 * Writes the work file of a compression. Finished matrices are appended layer by layer, so that an interrupted run can
 * resume after its last complete layer.
 *
 * The file has a header (magic, hash of everything that the results depend on) and records: length, hash of the
 * settings and the payload, payload. A damaged or incomplete record, and everything after it, is cut off. The file is
 * removed when the finished model is complete. It is read only on the same machine, and by the same version of the
 * program that wrote it. */
#ifndef WHIT_COMPRESS_WORK_H
#define WHIT_COMPRESS_WORK_H

#include "compress/finished.h"

/* bytes of the header; a file that is larger may have finished layers */
enum { WHIT_WORK_HEADER_BYTES = 8 + WHIT_HASH_BYTES };

typedef struct whit_work {
    int fd; /* -1: closed */
    char *path;
    uint32_t n_records;
    bool ours; /* the file belongs to the settings that whit_work_open got */
    uint8_t settings[WHIT_HASH_BYTES];
    const whit_allocator *allocator;
} whit_work;

/* Receives the matrices of complete records, in the order in which they were added, and takes ownership of
 * `finished`. */
typedef whit_status whit_work_fn(void *user, whit_finished *finished, whit_error *error);

/* Opens the work file at `path`. Without `resume` it becomes a file without records. With `resume` the matrices of an
 * existing file are passed to `take`; a file with other settings is an error, and an absent file, or one with an
 * incomplete header, is begun anew. */
whit_status whit_work_open(whit_work *work, const char *path, const uint8_t settings[WHIT_HASH_BYTES], bool resume,
                           whit_work_fn *take, void *user, const whit_allocator *allocator, whit_error *error);
/* Passes the matrices of an existing file's complete records to `take`, without changing the file. An absent file
 * counts as empty. */
whit_status whit_work_read(const char *path, const uint8_t settings[WHIT_HASH_BYTES], whit_work_fn *take, void *user,
                           const whit_allocator *allocator, whit_error *error);
/* Appends n matrices as one record, and flushes it to disk. */
whit_status whit_work_add(whit_work *work, whit_finished *const *finished, uint32_t n, whit_error *error);
/* Closes the file. Removes it if `remove`, or if it has no records and belongs to the settings of whit_work_open.
 * Accepts a work file that was never opened. */
void whit_work_close(whit_work *work, bool remove);

#endif
