/* SPDX-License-Identifier: MIT
 * The order of writes is what keeps the promise: frame, flush, commit, flush. */
#include "format/ndf_append.h"

#include "format/ndf_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_LIMIT_BYTES 255
#define SCAN_BYTES       ((size_t)1 << 16)

/* The file may have been replaced (renamed over) while the lock was waited for. */
static bool is_still(int fd, const char *path)
{
    struct stat opened, now;
    return fstat(fd, &opened) == 0 && stat(path, &now) == 0 && opened.st_dev == now.st_dev &&
        opened.st_ino == now.st_ino;
}

static whit_status open_locked(const char *path, int *fd, whit_error *error)
{
    for (int n_tries = 0; n_tries < 100; n_tries++) {
        *fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (*fd < 0) return whit_fail_errno(error, path, "open to append");
        while (flock(*fd, LOCK_EX) != 0)
            if (errno != EINTR) return whit_fail_errno(error, path, "lock");
        if (is_still(*fd, path)) return WHIT_OK;
        close(*fd);
        *fd = -1;
    }
    return whit_fail(error, WHIT_ERROR_IO, "%s: it is replaced all the time", path);
}

/* A torn append has no whole commit. A tail with one is damage, which somebody may want to repair.
 * (One inside an appended payload that is itself an .ndf says another place, and does not count.)
 */
static whit_status refuse_damaged_tail(int fd, const char *path, const whit_ndf_chain *chain,
                                       const whit_allocator *allocator, whit_error *error)
{
    if (chain->file_bytes == chain->end_bytes) return WHIT_OK;
    uint8_t *bytes = whit_alloc(allocator, SCAN_BYTES);
    if (!bytes) return whit_fail_memory(error, "a buffer", SCAN_BYTES);
    whit_status status = WHIT_OK;
    uint64_t offset = chain->end_bytes;
    while (status == WHIT_OK) {
        ssize_t n = pread(fd, bytes, SCAN_BYTES, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = whit_fail_errno(error, path, "read");
        if (n < WHIT_NDF_ALIGN_BYTES) break;
        size_t i = 0;
        for (; i + WHIT_NDF_ALIGN_BYTES <= (size_t)n; i += WHIT_NDF_ALIGN_BYTES)
            if (memcmp(bytes + i, WHIT_NDF_MAGIC, 8) == 0 && whit_ndf_is_commit(fd, offset + i)) {
                status = whit_fail(error, WHIT_ERROR_FORMAT,
                                   "%s: %s, and commits follow: it is damaged; nothing is appended", path, chain->stop);
                break;
            }
        offset += i;
    }
    whit_free(allocator, bytes, SCAN_BYTES);
    return status;
}

static whit_status check_model(const char *path, const whit_ndf_chain *chain, whit_error *error)
{
    if (whit_ndf_chain_at(chain, 0)->type != WHIT_NDF_HEAD)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: only a model's main file can be appended to", path);
    if (chain->n_frames + 2 > WHIT_NDF_MAX_FRAMES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: it has %" PRIu32 " frames, which is the most", path,
                         chain->n_frames);
    return WHIT_OK;
}

static whit_status flush(int fd, const char *path, whit_error *error)
{
    return fsync(fd) == 0 ? WHIT_OK : whit_fail_errno(error, path, "flush to disk");
}

static whit_status write_frame(whit_ndf_stream *stream, uint32_t type, const char *name, const void *data,
                               size_t size_bytes, whit_error *error)
{
    size_t name_bytes = strlen(name);
    whit_ndf_appended_header header = {
        .name_bytes = (uint32_t)name_bytes,
        .data_offset = whit_round_up(sizeof header + name_bytes + 1, WHIT_NDF_ALIGN_BYTES),
        .data_bytes = size_bytes,
    };
    WHIT_TRY(whit_ndf_stream_begin(stream, type, error));
    WHIT_TRY(whit_ndf_stream_add(stream, &header, sizeof header, error));
    WHIT_TRY(whit_ndf_stream_add(stream, name, name_bytes, error));
    WHIT_TRY(whit_ndf_stream_pad(stream, header.data_offset, error));
    WHIT_TRY(whit_ndf_stream_add(stream, data, size_bytes, error));
    return whit_ndf_stream_end(stream, error);
}

static whit_status check_name(const char *path, uint32_t type, const char *name, whit_error *error)
{
    if (type >= WHIT_NDF_ADAPTER && *name && strlen(name) <= NAME_LIMIT_BYTES) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: a frame of type %" PRIu32 " named '%.64s' cannot be appended",
                     path, type, name);
}

whit_status whit_ndf_append(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                            const whit_allocator *allocator, whit_error *error)
{
    whit_hash_prepare();
    WHIT_TRY(check_name(path, type, name, error));
    int fd = -1;
    whit_ndf_chain chain = {0};
    whit_ndf_stream stream = {0};
    whit_writer out = {0};
    bool changed = false;
    whit_status status = open_locked(path, &fd, error);
    if (status == WHIT_OK) status = whit_ndf_chain_read(&(whit_ndf_input){.fd = fd}, path, allocator, &chain, error);
    if (status == WHIT_OK) status = check_model(path, &chain, error);
    if (status == WHIT_OK) status = refuse_damaged_tail(fd, path, &chain, allocator, error);
    if (status != WHIT_OK) goto cleanup;
    if (ftruncate(fd, (off_t)chain.end_bytes) != 0) {
        status = whit_fail_errno(error, path, "cut off a torn tail");
        goto cleanup;
    }
    changed = true;
    /* Only the writer's appending and its place are used: the file stays where it is. */
    out = (whit_writer){.fd = fd, .offset_bytes = chain.end_bytes, .path = (char *)path, .allocator = allocator};
    stream.out = &out;
    stream.n_frames = chain.n_frames;
    memcpy(stream.previous, chain.last_hash, sizeof stream.previous);
    status = write_frame(&stream, type, name, data, size_bytes, error);
    if (status == WHIT_OK) status = flush(fd, path, error);
    if (status == WHIT_OK) status = whit_ndf_stream_commit(&stream, error);
    if (status == WHIT_OK) {
        changed = false; /* others may be reading it from here on: it stays */
        status = flush(fd, path, error);
    }
cleanup:
    if (status != WHIT_OK && changed && ftruncate(fd, (off_t)chain.end_bytes) != 0)
        whit_fail(error, status, "%s: cannot append, and a torn tail is left", path);
    whit_ndf_stream_free(&stream);
    whit_ndf_chain_free(&chain);
    if (fd >= 0) close(fd);
    return status;
}

whit_status whit_ndf_write_loose(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                                 const whit_allocator *allocator, whit_error *error)
{
    whit_hash_prepare();
    WHIT_TRY(check_name(path, type, name, error));
    whit_writer out = {.fd = -1};
    WHIT_TRY(whit_writer_open(path, allocator, &out, error));
    whit_ndf_stream stream = {.out = &out};
    whit_status status = write_frame(&stream, type, name, data, size_bytes, error);
    if (status == WHIT_OK) status = whit_ndf_stream_commit(&stream, error);
    if (status == WHIT_OK) status = whit_writer_commit(&out, error);
    whit_ndf_stream_free(&stream);
    whit_writer_discard(&out);
    return status;
}
