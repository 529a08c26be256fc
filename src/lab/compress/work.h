/* SPDX-License-Identifier: MIT
 * Writes the work file of a compression, OUT.work: finished matrices are appended layer by layer, so that an
 * interrupted run resumes after its last complete layer.
 *
 * It has a header (magic, hash of everything that the results depend on), then records: length, hash of settings and
 * payload, payload. A record that is torn or damaged ends the file; everything after it is cut off. The work file is
 * removed when the finished file is complete. Only the program that wrote it reads it, on the same machine. */
#ifndef WHIT_COMPRESS_WORK_H
#define WHIT_COMPRESS_WORK_H

#include "compress/finished.h"

enum { WHIT_WORK_HEADER_BYTES = 8 + WHIT_HASH_BYTES }; /* a larger file has finished layers */

typedef struct whit_work {
    int fd; /* -1: closed */
    char *path;
    uint32_t n_records;
    bool ours; /* the file belongs to these settings */
    uint8_t settings[WHIT_HASH_BYTES];
    const whit_allocator *allocator;
} whit_work;

/* Functions of this type receive a matrix of a complete record, in the order in which they were added. They take
 * ownership of `finished`. */
typedef whit_status whit_work_fn(void *user, whit_finished *finished, whit_error *error);

/* Opens `path`: an empty file for these settings or, with `resume`, an existing one, whose records are first passed to
 * `take`. A file of other settings is refused; an absent file, or one with a torn header, is started anew. */
whit_status whit_work_open(whit_work *work, const char *path, const uint8_t settings[WHIT_HASH_BYTES], bool resume,
                           whit_work_fn *take, void *user, const whit_allocator *allocator, whit_error *error);
/* Passes the complete records of an existing file to `take`, and changes nothing. An absent file counts as empty. */
whit_status whit_work_read(const char *path, const uint8_t settings[WHIT_HASH_BYTES], whit_work_fn *take, void *user,
                           const whit_allocator *allocator, whit_error *error);
/* Appends n matrices as one record and flushes it to the disk. */
whit_status whit_work_add(whit_work *work, whit_finished *const *finished, uint32_t n, whit_error *error);
/* Closes the file, and removes it if `remove` is set or if it belongs to these settings and has no record. Accepts a
 * file that was never opened. */
void whit_work_close(whit_work *work, bool remove);

#endif
