/* SPDX-License-Identifier: MIT
 * Handles a chain of frames that grows: reads its appended frames one by one with checks, and appends more.
 *
 * An appending process holds an exclusive flock from open to close, so the cost of an append depends on its own
 * bytes only: nothing before them is read again. */
#ifndef WHIT_FORMAT_NDF_LOG_H
#define WHIT_FORMAT_NDF_LOG_H

#include "base/threads.h"
#include "format/ndf_frame.h"

typedef enum whit_ndf_log_mode {
    WHIT_NDF_LOG_READ,       /* no lock; may not append */
    WHIT_NDF_LOG_APPEND,     /* waits for the lock */
    WHIT_NDF_LOG_APPEND_NOW, /* fails at once if another program holds the lock */
    WHIT_NDF_LOG_APPEND_SOON /* waits for the lock for half a minute, and refuses then */
} whit_ndf_log_mode;

/* Holds an open chain; if zero-initialised, it is closed. */
typedef struct whit_ndf_log {
    int fd; /* the log owns it if it opened the file by path; -1 when closed */
    bool is_open, can_append, owns_fd;
    char *path;
    whit_ndf_chain chain; /* the frames read at opening; `stream` and `end_bytes` continue from their end */
    uint64_t end_bytes;   /* where the last commit ends */
    uint32_t n_committed; /* number of frames up to end_bytes */
    bool changed;         /* the file has bytes after end_bytes that must be cut off */
    whit_writer out;
    whit_ndf_stream stream;
    const whit_allocator *allocator;
    whit_pool *pool; /* the caller's, set after opening: threads that check payloads; NULL: the calling thread */
} whit_ndf_log;

/* Opens a model's main file or a loose chain. A torn tail is ignored, and cut off by the first
 * append; a tail with whole commits in it is damage, and appending to it is refused here. */
whit_status whit_ndf_log_open(const char *path, whit_ndf_log_mode mode, const whit_allocator *allocator,
                              whit_ndf_log *log, whit_error *error);
void whit_ndf_log_close(whit_ndf_log *log);

/* ---- reading; `i` < log->chain.n_frames ---- */

static inline const whit_ndf_frame *whit_ndf_log_frame(const whit_ndf_log *log, uint32_t i)
{
    return whit_ndf_chain_at(&log->chain, i);
}
/* Checks every byte of a frame's payload against its hashes; damage is an error that names the frame. */
whit_status whit_ndf_log_check(const whit_ndf_log *log, uint32_t i, whit_error *error);
/* Finds the data of an appended frame, that is its offset in the file, and checks its bounds. */
whit_status whit_ndf_log_data(const whit_ndf_log *log, uint32_t i, uint64_t *offset, uint64_t *size_bytes,
                              whit_error *error);
/* Reads bytes of the file. */
whit_status whit_ndf_log_read(const whit_ndf_log *log, uint64_t offset, void *data, size_t size_bytes,
                              whit_error *error);
/* Reports damage as "FILE: frame 3 (SESSION) at byte 1280: REASON". */
whit_status whit_ndf_log_bad(const whit_ndf_log *log, uint32_t i, const char *reason, whit_error *error);

/* ---- an appended frame, in any stream ---- */

/* Checks a frame's type and name; `path` begins the error line. */
whit_status whit_ndf_check_appended(const char *path, uint32_t type, const char *name, whit_error *error);
/* Writes a frame up to the beginning of its data; finish it with whit_ndf_stream_end. */
whit_status whit_ndf_begin_appended(whit_ndf_stream *stream, uint32_t type, const char *name, uint64_t data_bytes,
                                    whit_error *error);

/* ---- appending: begin, add until data_bytes are reached, commit ---- */

whit_status whit_ndf_log_begin(whit_ndf_log *log, uint32_t type, const char *name, uint64_t data_bytes,
                               whit_error *error);
whit_status whit_ndf_log_add(whit_ndf_log *log, const void *data, size_t size_bytes, whit_error *error);
/* Ends the frame, flushes, writes the commit, flushes. */
whit_status whit_ndf_log_commit(whit_ndf_log *log, whit_error *error);
/* Cuts off the unfinished frame after a failure of begin, add or commit. */
void whit_ndf_log_cancel(whit_ndf_log *log);

#endif
