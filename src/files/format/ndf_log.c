/* SPDX-License-Identifier: MIT
 * Appends to files of frames. This order of writes makes an append crash-safe: frame, flush, commit, flush. */
#include "format/ndf_log.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_LIMIT_BYTES 255
#define SCAN_BYTES       ((size_t)1 << 16)
#define PIECE_BYTES      ((size_t)1 << 18)
#define SOON_NS          UINT64_C(30000000000)

/* ---- opening -------------------------------------------------------------------------------- */

/* Returns whether `fd` is still the file at `path`. During the wait for the lock, another file may have been renamed to
 * this path. */
static bool is_still(int fd, const char *path)
{
    struct stat opened, now;
    return fstat(fd, &opened) == 0 && stat(path, &now) == 0 && opened.st_dev == now.st_dev &&
        opened.st_ino == now.st_ino;
}

static whit_status open_locked(const char *path, whit_ndf_log_mode mode, int *fd, whit_error *error)
{
    static const struct timespec pause = {0, 20000000};
    const bool only_reads = mode == WHIT_NDF_LOG_READ_SOON, is_patient = only_reads || mode == WHIT_NDF_LOG_APPEND_SOON;
    const int kind = only_reads ? LOCK_SH : LOCK_EX, lock = kind | LOCK_NB * (mode != WHIT_NDF_LOG_APPEND);
    const uint64_t until_ns = whit_now_ns() + (is_patient ? SOON_NS : 0);
    for (int n_tries = 0; n_tries < 100; n_tries++) {
        *fd = open(path, (only_reads ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
        if (*fd < 0) return whit_fail_errno(error, path, only_reads ? "open" : "open it to append");
        while (flock(*fd, lock) != 0) {
            if (errno == EWOULDBLOCK && whit_now_ns() < until_ns) {
                nanosleep(&pause, NULL);
                continue;
            }
            if (errno == EWOULDBLOCK)
                return whit_fail(error, WHIT_ERROR_IO,
                                 "%s: another program is writing the file; try again when that has ended", path);
            if (errno != EINTR) return whit_fail_errno(error, path, "lock");
        }
        if (is_still(*fd, path)) return WHIT_OK;
        close(*fd);
        *fd = -1;
    }
    return whit_fail(error, WHIT_ERROR_IO, "%s: another program keeps replacing the file; try again when it has ended",
                     path);
}

/* Fails if the bytes after the last commit contain a complete commit. Then the file is damaged and may be worth
 * repairing: an interrupted append leaves no complete commit. A commit in the payload of a frame that itself contains
 * an .ndf file does not count, because it states another offset. */
static whit_status refuse_damaged_tail(const whit_ndf_log *log, whit_error *error)
{
    const whit_ndf_chain *chain = &log->chain;
    if (chain->file_bytes == chain->end_bytes) return WHIT_OK;
    uint8_t *bytes = whit_alloc(log->allocator, SCAN_BYTES);
    if (!bytes) return whit_fail_memory(error, "a buffer of the file", SCAN_BYTES);
    whit_status status = WHIT_OK;
    uint64_t offset = chain->end_bytes;
    while (status == WHIT_OK) {
        ssize_t n = pread(log->fd, bytes, SCAN_BYTES, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = whit_fail_errno(error, log->path, "read");
        if (n < WHIT_NDF_ALIGN_BYTES) break;
        size_t i = 0;
        for (; i + WHIT_NDF_ALIGN_BYTES <= (size_t)n; i += WHIT_NDF_ALIGN_BYTES)
            if (memcmp(bytes + i, WHIT_NDF_MAGIC, 8) == 0 && whit_ndf_is_commit(log->fd, offset + i)) {
                status =
                    whit_fail(error, WHIT_ERROR_FORMAT,
                              "%s: %s, although later commits follow: the file is damaged, and nothing is appended",
                              log->path, chain->stop);
                break;
            }
        offset += i;
    }
    whit_free(log->allocator, bytes, SCAN_BYTES);
    return status;
}

static whit_status check_kind(const whit_ndf_log *log, whit_error *error)
{
    uint32_t type = whit_ndf_chain_at(&log->chain, 0)->type;
    if (type != WHIT_NDF_HEAD && type < WHIT_NDF_ADAPTER)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: only a model's main file, or a file of appended frames, can be appended to", log->path);
    return WHIT_OK;
}

static whit_status begin_log(whit_ndf_log *log, const char *path, const whit_allocator *allocator, whit_error *error)
{
    whit_hash_prepare();
    *log = (whit_ndf_log){.fd = -1, .allocator = allocator};
    log->path = whit_strndup(allocator, path, strlen(path));
    if (!log->path) return whit_fail_memory(error, "a file name", strlen(path));
    log->is_open = true;
    return WHIT_OK;
}

static whit_status read_chain(whit_ndf_log *log, whit_error *error)
{
    WHIT_TRY(whit_ndf_chain_read(&(whit_ndf_input){.fd = log->fd}, log->path, log->allocator, &log->chain, error));
    WHIT_TRY(check_kind(log, error));
    if (log->can_append) WHIT_TRY(refuse_damaged_tail(log, error));
    log->end_bytes = log->chain.end_bytes;
    log->n_committed = log->chain.n_frames;
    log->changed = log->chain.file_bytes != log->chain.end_bytes;
    /* The writer is only used for appending at its position; the file is not replaced by a new one. */
    log->out =
        (whit_writer){.fd = log->fd, .offset_bytes = log->end_bytes, .path = log->path, .allocator = log->allocator};
    log->stream.n_frames = log->chain.n_frames;
    memcpy(log->stream.previous, log->chain.last_hash, sizeof log->stream.previous);
    return WHIT_OK;
}

whit_status whit_ndf_log_open(const char *path, whit_ndf_log_mode mode, const whit_allocator *allocator,
                              whit_ndf_log *log, whit_error *error)
{
    WHIT_TRY(begin_log(log, path, allocator, error));
    log->owns_fd = true;
    log->can_append = mode != WHIT_NDF_LOG_READ && mode != WHIT_NDF_LOG_READ_SOON;
    whit_status status = WHIT_OK;
    if (mode != WHIT_NDF_LOG_READ) {
        status = open_locked(path, mode, &log->fd, error);
    } else {
        log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (log->fd < 0) status = whit_fail_errno(error, path, "open");
    }
    if (status == WHIT_OK) status = read_chain(log, error);
    if (status != WHIT_OK) {
        log->changed = false;
        whit_ndf_log_close(log);
    }
    return status;
}

void whit_ndf_log_close(whit_ndf_log *log)
{
    if (!log->is_open) return;
    whit_ndf_stream_free(&log->stream);
    whit_ndf_chain_free(&log->chain);
    if (log->owns_fd && log->fd >= 0) close(log->fd);
    whit_free(log->allocator, log->path, strlen(log->path) + 1);
    *log = (whit_ndf_log){.fd = -1};
}

/* ---- reading -------------------------------------------------------------------------------- */

whit_status whit_ndf_log_bad(const whit_ndf_log *log, uint32_t i, const char *reason, whit_error *error)
{
    const whit_ndf_frame *frame = whit_ndf_log_frame(log, i);
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: frame %" PRIu32 " (%s) at byte %" PRIu64
                     ": %s; the file is damaged: restore a copy, or move it away",
                     log->path, i, whit_ndf_frame_type_name(frame->type), frame->offset, reason);
}

whit_status whit_ndf_log_read(const whit_ndf_log *log, uint64_t offset, void *data, size_t size_bytes,
                              whit_error *error)
{
    uint8_t *bytes = data;
    while (size_bytes) {
        ssize_t n = pread(log->fd, bytes, size_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return whit_fail_errno(error, log->path, "read");
        if (n == 0)
            return whit_fail(error, WHIT_ERROR_IO,
                             "%s: another program truncated the file while it was read; try again", log->path);
        bytes += n;
        size_bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return WHIT_OK;
}

/* Work of a payload check. Several threads hash the chunks, each in pieces that fit into the CPU's cache. */
typedef struct check_work {
    const whit_ndf_log *log;
    const whit_ndf_frame *frame;
    uint8_t *pieces; /* (n_threads, piece_bytes) */
    size_t piece_bytes;
    uint8_t *leaves;
} check_work;

static whit_status hash_chunk(void *context, uint32_t worker, uint32_t chunk, whit_error *error)
{
    const check_work *work = context;
    uint8_t *piece = work->pieces + worker * work->piece_bytes;
    uint64_t at = (uint64_t)chunk * WHIT_NDF_CHUNK_BYTES, end = at + WHIT_NDF_CHUNK_BYTES;
    if (end > work->frame->payload_bytes) end = work->frame->payload_bytes;
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_LEAF);
    while (at < end) {
        size_t n = end - at < work->piece_bytes ? (size_t)(end - at) : work->piece_bytes;
        WHIT_TRY(whit_ndf_log_read(work->log, whit_ndf_payload_offset(work->frame) + at, piece, n, error));
        whit_hash_add(&hash, piece, n);
        at += n;
    }
    whit_hash_end(&hash, work->leaves + (size_t)chunk * WHIT_HASH_BYTES);
    return WHIT_OK;
}

whit_status whit_ndf_log_check(const whit_ndf_log *log, uint32_t i, whit_error *error)
{
    const whit_ndf_frame *frame = whit_ndf_log_frame(log, i);
    const uint64_t n_chunks = whit_ndf_n_chunks(frame->payload_bytes);
    whit_pool *pool = n_chunks > 1 ? log->pool : NULL;
    const size_t piece_bytes = frame->payload_bytes < PIECE_BYTES ? (size_t)frame->payload_bytes : PIECE_BYTES;
    const size_t n_pieces = whit_pool_size(pool) * piece_bytes + 1;
    whit_ndf_header header;
    uint8_t root[WHIT_HASH_BYTES];
    if (n_chunks > UINT32_MAX / WHIT_HASH_BYTES) return whit_fail_memory(error, "the digests of the file", SIZE_MAX);
    const size_t n_leaves = (size_t)n_chunks * WHIT_HASH_BYTES;
    uint8_t *bytes = whit_alloc(log->allocator, n_pieces + n_leaves);
    if (!bytes) return whit_fail_memory(error, "a buffer of the file", n_pieces + n_leaves);
    check_work work = {
        .log = log, .frame = frame, .pieces = bytes + n_leaves, .piece_bytes = piece_bytes, .leaves = bytes};
    whit_status status = whit_ndf_log_read(log, frame->offset, &header, sizeof header, error);
    if (status == WHIT_OK) status = whit_pool_try(pool, hash_chunk, &work, (uint32_t)n_chunks, 0, error);
    if (status == WHIT_OK) {
        whit_ndf_root(work.leaves, n_chunks, root);
        if (memcmp(root, header.root, sizeof root) != 0)
            status = whit_ndf_log_bad(log, i, "its payload is damaged", error);
    }
    whit_free(log->allocator, bytes, n_pieces + n_leaves);
    return status;
}

whit_status whit_ndf_log_data(const whit_ndf_log *log, uint32_t i, uint64_t *offset, uint64_t *size_bytes,
                              whit_error *error)
{
    const whit_ndf_frame *frame = whit_ndf_log_frame(log, i);
    whit_ndf_appended_header header;
    if (frame->type < WHIT_NDF_ADAPTER)
        return whit_ndf_log_bad(log, i, "its type is not that of an appended frame", error);
    if (frame->payload_bytes < sizeof header) return whit_ndf_log_bad(log, i, "it is too short", error);
    WHIT_TRY(whit_ndf_log_read(log, whit_ndf_payload_offset(frame), &header, sizeof header, error));
    if (!whit_in_bounds(sizeof header, (uint64_t)header.name_bytes + 1, frame->payload_bytes))
        return whit_ndf_log_bad(log, i, "its name is outside the frame", error);
    if (header.reserved || header.data_offset % WHIT_NDF_ALIGN_BYTES ||
        !whit_in_bounds(header.data_offset, header.data_bytes, frame->payload_bytes))
        return whit_ndf_log_bad(log, i, "its data is outside the frame", error);
    *offset = whit_ndf_payload_offset(frame) + header.data_offset;
    *size_bytes = header.data_bytes;
    return WHIT_OK;
}

/* ---- appending ------------------------------------------------------------------------------ */

whit_status whit_ndf_check_appended(const char *path, uint32_t type, const char *name, whit_error *error)
{
    if (type >= WHIT_NDF_ADAPTER && *name && strlen(name) <= NAME_LIMIT_BYTES) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "%s: a frame of type %" PRIu32
                     " named '%.64s' cannot be appended: its type or the length of its name is not possible",
                     path, type, name);
}

whit_status whit_ndf_begin_appended(whit_ndf_stream *stream, uint32_t type, const char *name, uint64_t data_bytes,
                                    whit_error *error)
{
    size_t name_bytes = strlen(name);
    whit_ndf_appended_header header = {
        .name_bytes = (uint32_t)name_bytes,
        .data_offset = whit_round_up(sizeof header + name_bytes + 1, WHIT_NDF_ALIGN_BYTES),
        .data_bytes = data_bytes,
    };
    WHIT_TRY(whit_ndf_stream_begin(stream, type, error));
    WHIT_TRY(whit_ndf_stream_add(stream, &header, sizeof header, error));
    WHIT_TRY(whit_ndf_stream_add(stream, name, name_bytes, error));
    return whit_ndf_stream_pad(stream, header.data_offset, error);
}

static whit_status check_room(const whit_ndf_log *log, whit_error *error)
{
    bool is_loose = whit_ndf_chain_at(&log->chain, 0)->type >= WHIT_NDF_ADAPTER;
    uint32_t most = is_loose ? UINT32_MAX : WHIT_NDF_MAX_FRAMES;
    if (!log->can_append)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the file was opened for reading only, so nothing can be appended", log->path);
    if (log->stream.n_frames > most - 2)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file has %" PRIu32 " frames, the maximum", log->path,
                         log->stream.n_frames);
    return WHIT_OK;
}

static whit_status flush(const whit_ndf_log *log, whit_error *error)
{
    return fsync(log->fd) == 0 ? WHIT_OK : whit_fail_errno(error, log->path, "flush it to the disk");
}

whit_status whit_ndf_log_begin(whit_ndf_log *log, uint32_t type, const char *name, uint64_t data_bytes,
                               whit_error *error)
{
    WHIT_TRY(whit_ndf_check_appended(log->path, type, name, error));
    WHIT_TRY(check_room(log, error));
    if (log->changed && ftruncate(log->fd, (off_t)log->end_bytes) != 0)
        return whit_fail_errno(error, log->path, "cut off its incomplete end");
    log->changed = true;
    log->stream.out = &log->out;
    log->out.offset_bytes = log->end_bytes;
    return whit_ndf_begin_appended(&log->stream, type, name, data_bytes, error);
}

whit_status whit_ndf_log_add(whit_ndf_log *log, const void *data, size_t size_bytes, whit_error *error)
{
    return whit_ndf_stream_add(&log->stream, data, size_bytes, error);
}

whit_status whit_ndf_log_commit(whit_ndf_log *log, whit_error *error)
{
    WHIT_TRY(whit_ndf_stream_end(&log->stream, error));
    WHIT_TRY(flush(log, error));
    WHIT_TRY(whit_ndf_stream_commit(&log->stream, error));
    /* From here on other processes can read the frame, so it stays even if the flush fails. */
    log->changed = false;
    log->end_bytes = log->out.offset_bytes;
    log->n_committed = log->stream.n_frames;
    memcpy(log->chain.last_hash, log->stream.previous, sizeof log->chain.last_hash);
    return flush(log, error);
}

void whit_ndf_log_cancel(whit_ndf_log *log)
{
    if (!log->changed || !log->can_append) return;
    if (ftruncate(log->fd, (off_t)log->end_bytes) == 0) log->changed = false;
    log->out.offset_bytes = log->end_bytes;
    /* If the frame was ended, stream.previous is its hash: restore the hash of the last commit. */
    memcpy(log->stream.previous, log->chain.last_hash, sizeof log->stream.previous);
    log->stream.n_frames = log->n_committed;
}
