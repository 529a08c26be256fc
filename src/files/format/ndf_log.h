/* SPDX-License-Identifier: MIT
 * Reads the appended frames of a file one by one, with checks, and appends further frames.
 *
 * A process that appends holds an exclusive lock (flock) while the file is open. Nobody else changes the file
 * meanwhile, so an append reads nothing again, and its cost depends only on its own bytes. A process that must not see
 * a half of what another one appends holds a shared lock. */
#ifndef WHIT_FORMAT_NDF_LOG_H
#define WHIT_FORMAT_NDF_LOG_H

#include "base/threads.h"
#include "format/ndf_frame.h"

typedef enum whit_ndf_log_mode {
    WHIT_NDF_LOG_READ,       /* takes no lock and must not append */
    WHIT_NDF_LOG_READ_SOON,  /* must not append; waits for half a minute until no program appends */
    WHIT_NDF_LOG_APPEND,     /* waits for the lock without a limit */
    WHIT_NDF_LOG_APPEND_NOW, /* fails at once if another program holds the lock */
    WHIT_NDF_LOG_APPEND_SOON /* waits for the lock for half a minute, then fails */
} whit_ndf_log_mode;

/* An open file of frames. A zero-initialised whit_ndf_log counts as closed. */
typedef struct whit_ndf_log {
    int fd; /* valid only while is_open */
    bool is_open, can_append, owns_fd;
    char *path;
    whit_ndf_chain chain; /* the frames that existed on opening; frames appended later are not added to it, but
                           * last_hash is kept up to date */
    uint64_t end_bytes;   /* position after the last commit */
    uint32_t n_committed; /* number of frames up to end_bytes */
    bool changed;         /* the file has bytes after end_bytes, which must be removed */
    whit_writer out;
    whit_ndf_stream stream;
    const whit_allocator *allocator;
    whit_pool *pool; /* not owned, set by the caller after opening: threads that check payloads; NULL: the calling
                      * thread alone */
} whit_ndf_log;

/* Opens a model's main file or a loose file. An incomplete append at the end is ignored and is removed by the first
 * append. If the ignored bytes contain a complete commit, the file is damaged, and opening it for appending fails. */
whit_status whit_ndf_log_open(const char *path, whit_ndf_log_mode mode, const whit_allocator *allocator,
                              whit_ndf_log *log, whit_error *error);
void whit_ndf_log_close(whit_ndf_log *log);

/* ---- reading; `i` < log->chain.n_frames ---- */

static inline const whit_ndf_frame *whit_ndf_log_frame(const whit_ndf_log *log, uint32_t i)
{
    return whit_ndf_chain_at(&log->chain, i);
}
/* Checks every byte of the payload of frame `i` against its hashes. The error for damage names the frame. */
whit_status whit_ndf_log_check(const whit_ndf_log *log, uint32_t i, whit_error *error);
/* Finds the data of appended frame `i` and checks its bounds. *offset counts from the beginning of the file. */
whit_status whit_ndf_log_data(const whit_ndf_log *log, uint32_t i, uint64_t *offset, uint64_t *size_bytes,
                              whit_error *error);
/* Reads `size_bytes` bytes at `offset` of the file. */
whit_status whit_ndf_log_read(const whit_ndf_log *log, uint64_t offset, void *data, size_t size_bytes,
                              whit_error *error);
/* Returns the error "FILE: frame 3 (SESSION) at byte 1280: REASON; ...", which ends with advice. */
whit_status whit_ndf_log_bad(const whit_ndf_log *log, uint32_t i, const char *reason, whit_error *error);

/* ---- writing an appended frame to any stream ---- */

/* Checks that `type` can be appended and `name` is not empty or too long. `path` begins the error message. */
whit_status whit_ndf_check_appended(const char *path, uint32_t type, const char *name, whit_error *error);
/* Begins an appended frame of `data_bytes`, up to the first byte of its data. The caller adds the data to the stream
 * and calls whit_ndf_stream_end. */
whit_status whit_ndf_begin_appended(whit_ndf_stream *stream, uint32_t type, const char *name, uint64_t data_bytes,
                                    whit_error *error);

/* ---- appending: begin, add until data_bytes are reached, commit ---- */

whit_status whit_ndf_log_begin(whit_ndf_log *log, uint32_t type, const char *name, uint64_t data_bytes,
                               whit_error *error);
whit_status whit_ndf_log_add(whit_ndf_log *log, const void *data, size_t size_bytes, whit_error *error);
/* Ends the frame, flushes the file, writes the commit and flushes again. */
whit_status whit_ndf_log_commit(whit_ndf_log *log, whit_error *error);
/* Removes the unfinished frame after a failure of begin, add or commit, unless its commit was written already. */
void whit_ndf_log_cancel(whit_ndf_log *log);

#endif
