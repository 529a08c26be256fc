/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

whit_status whit_map_open_fd(int fd, const char *path, const whit_allocator *allocator, whit_map *map,
                             whit_error *error)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return whit_fail_errno(error, path, "examine");
    if (S_ISDIR(info.st_mode)) return whit_fail(error, WHIT_ERROR_IO, "%s: is a folder, not a file", path);
    if (!S_ISREG(info.st_mode)) return whit_fail(error, WHIT_ERROR_IO, "%s: is not a regular file", path);
    if (info.st_size == 0) return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is empty", path);
    if ((uint64_t)info.st_size > SIZE_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: larger than the address space", path);
    char *name = whit_strndup(allocator, path, strlen(path));
    if (!name) return whit_fail_memory(error, "a file name", strlen(path) + 1);
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        whit_status status = whit_fail_errno(error, path, "map into memory");
        whit_free(allocator, name, strlen(name) + 1);
        return status;
    }
    *map = (whit_map){.data = data, .size_bytes = (size_t)info.st_size, .path = name, .allocator = allocator};
    return WHIT_OK;
}

whit_status whit_map_open(const char *path, const whit_allocator *allocator, whit_map *map, whit_error *error)
{
    *map = (whit_map){0};
    /* O_NONBLOCK: a FIFO must not hang the open; it is refused afterwards. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return whit_fail_errno(error, path, "open");
    whit_status status = whit_map_open_fd(fd, path, allocator, map, error);
    close(fd);
    return status;
}

whit_status whit_map_open_memory(const void *data, size_t size_bytes, const char *path, const whit_allocator *allocator,
                                 whit_map *map, whit_error *error)
{
    char *name = whit_strndup(allocator, path, strlen(path));
    if (!name) return whit_fail_memory(error, "a file name", strlen(path) + 1);
    *map = (whit_map){.data = data, .size_bytes = size_bytes, .path = name, .borrowed = true, .allocator = allocator};
    return WHIT_OK;
}

void whit_map_close(whit_map *map)
{
    if (map->data && !map->borrowed) munmap((void *)map->data, map->size_bytes);
    if (map->path) whit_free(map->allocator, map->path, strlen(map->path) + 1);
    *map = (whit_map){0};
}

void whit_map_drop(const whit_map *map, const void *begin, size_t size_bytes)
{
    if (!map->data || map->borrowed || (uintptr_t)begin < (uintptr_t)map->data ||
        !whit_in_bounds((uintptr_t)begin - (uintptr_t)map->data, size_bytes, map->size_bytes))
        return;
    long page = sysconf(_SC_PAGESIZE);
    size_t before = page > 0 ? (uintptr_t)begin % (size_t)page : 0;
    /* The map is of a file and never written, so nothing is lost. */
    madvise((uint8_t *)(uintptr_t)begin - before, size_bytes + before, MADV_DONTNEED);
}

void whit_map_expect(const void *begin, size_t size_bytes, bool all_of_it)
{
    long page = sysconf(_SC_PAGESIZE);
    uintptr_t first = whit_round_up((uintptr_t)begin, (size_t)page),
              end = ((uintptr_t)begin + size_bytes) & -(uintptr_t)page;
    if (first < end) madvise((void *)first, end - first, all_of_it ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

#define WRITE_BYTES ((size_t)2 << 20)

static void free_names(whit_writer *writer)
{
    whit_free(writer->allocator, writer->pending, WRITE_BYTES);
    writer->pending = NULL;
    writer->n_pending = 0;
    if (writer->path) whit_free(writer->allocator, writer->path, strlen(writer->path) + 1);
    if (writer->temporary) whit_free(writer->allocator, writer->temporary, strlen(writer->temporary) + 1);
    writer->path = writer->temporary = NULL;
}

#define TEMPORARY_BYTES (sizeof ".tmp-XXXXXX" - 1)

/* Ends the name with a suffix that no file has yet, and creates that file with the mode that the
 * user's umask leaves (mkstemp would give 0600, and a model is as readable as any other file). */
static int create_temporary(char *suffix, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    int fd = -1;
    errno = EEXIST;
    for (int attempt = 0; attempt < 100 && fd < 0 && errno == EEXIST; attempt++) {
        uint8_t random[6];
        memcpy(suffix, ".tmp-XXXXXX", TEMPORARY_BYTES + 1);
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return -1;
        for (size_t i = 0; i < sizeof random; i++) suffix[5 + i] = letters[random[i] % (sizeof letters - 1)];
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return fd;
}

whit_status whit_writer_open(const char *path, const whit_allocator *allocator, whit_writer *writer, whit_error *error)
{
    *writer = (whit_writer){.fd = -1, .allocator = allocator};
    if (!path) {
        writer->fd = memfd_create("whit", MFD_CLOEXEC);
        if (writer->fd < 0) return whit_fail_errno(error, "memory file", "create");
        writer->open = true;
        return WHIT_OK;
    }
    size_t n = strlen(path), n_temporary = n + TEMPORARY_BYTES;
    writer->path = whit_strndup(allocator, path, n);
    writer->temporary = whit_alloc(allocator, n_temporary + 1);
    if (!writer->path || !writer->temporary) {
        if (writer->temporary) whit_free(allocator, writer->temporary, n_temporary + 1);
        writer->temporary = NULL;
        free_names(writer);
        return whit_fail_memory(error, "a file name", n);
    }
    memcpy(writer->temporary, path, n);
    writer->fd = create_temporary(writer->temporary + n, writer->temporary);
    if (writer->fd < 0) {
        whit_status status = whit_fail_errno(error, path, "create a temporary file beside it");
        free_names(writer);
        return status;
    }
    writer->open = true;
    return WHIT_OK;
}

static whit_status write_at(const whit_writer *writer, uint64_t offset_bytes, const uint8_t *bytes, size_t size_bytes,
                            whit_error *error)
{
    while (size_bytes) {
        ssize_t n = pwrite(writer->fd, bytes, size_bytes, (off_t)offset_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return whit_fail_errno(error, writer->path ? writer->path : "memory file", "write");
        bytes += n;
        size_bytes -= (size_t)n;
        offset_bytes += (uint64_t)n;
    }
    return WHIT_OK;
}

static whit_status write_pending(whit_writer *writer, whit_error *error)
{
    size_t n = writer->n_pending;
    writer->n_pending = 0;
    return write_at(writer, writer->offset_bytes - n, writer->pending, n, error);
}

whit_status whit_writer_at(whit_writer *writer, uint64_t offset_bytes, const void *data, size_t size_bytes,
                           whit_error *error)
{
    WHIT_TRY(write_pending(writer, error));
    return write_at(writer, offset_bytes, data, size_bytes, error);
}

whit_status whit_writer_gather(whit_writer *writer, whit_error *error)
{
    if (!writer->pending) writer->pending = whit_alloc(writer->allocator, WRITE_BYTES);
    return writer->pending ? WHIT_OK : whit_fail_memory(error, "a buffer for writing", WRITE_BYTES);
}

whit_status whit_writer_append(whit_writer *writer, const void *data, size_t size_bytes, whit_error *error)
{
    const uint8_t *bytes = data;
    if (!writer->pending) {
        WHIT_TRY(write_at(writer, writer->offset_bytes, bytes, size_bytes, error));
        writer->offset_bytes += size_bytes;
        return WHIT_OK;
    }
    while (size_bytes) {
        size_t n = WRITE_BYTES - (size_t)(writer->offset_bytes % WRITE_BYTES); /* to the next boundary */
        if (n > size_bytes) n = size_bytes;
        if (n == WRITE_BYTES) {
            WHIT_TRY(write_at(writer, writer->offset_bytes, bytes, n, error));
        } else {
            memcpy(writer->pending + writer->n_pending, bytes, n);
            writer->n_pending += n;
        }
        writer->offset_bytes += n;
        bytes += n;
        size_bytes -= n;
        if (writer->offset_bytes % WRITE_BYTES == 0) WHIT_TRY(write_pending(writer, error));
    }
    return WHIT_OK;
}

static void sync_folder(const char *path)
{
    char folder[4096];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) return;
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

whit_status whit_writer_commit(whit_writer *writer, whit_error *error)
{
    whit_status status = write_pending(writer, error);
    if (!writer->path) return status;
    if (status == WHIT_OK && fsync(writer->fd) != 0) status = whit_fail_errno(error, writer->path, "flush to disk");
    if (status == WHIT_OK && rename(writer->temporary, writer->path) != 0)
        status = whit_fail_errno(error, writer->path, "rename the finished file to");
    if (status != WHIT_OK) {
        whit_writer_discard(writer);
        return status;
    }
    close(writer->fd);
    sync_folder(writer->path);
    free_names(writer);
    writer->fd = -1;
    writer->open = false;
    return WHIT_OK;
}

void whit_writer_discard(whit_writer *writer)
{
    if (!writer->open) return;
    if (writer->fd >= 0) close(writer->fd);
    if (writer->temporary) unlink(writer->temporary);
    free_names(writer);
    writer->fd = -1;
    writer->open = false;
}

whit_status whit_read_file(const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return whit_fail_errno(error, path, "open");
    whit_status status = WHIT_OK;
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = whit_fail(error, WHIT_ERROR_IO, "%s: is a folder, not a file", path);
        goto cleanup;
    }
    for (;;) {
        if (!whit_buf_reserve(buf, 65536)) {
            status = whit_fail_memory(error, path, buf->size_bytes + 65536);
            goto cleanup;
        }
        ssize_t n = read(fd, buf->data + buf->size_bytes, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            status = whit_fail_errno(error, path, "read");
            goto cleanup;
        }
        if (n == 0) break;
        buf->size_bytes += (size_t)n;
        if (buf->size_bytes > limit_bytes) {
            status = whit_fail(error, WHIT_ERROR_LIMIT, "%s: larger than %zu bytes", path, limit_bytes);
            goto cleanup;
        }
    }
cleanup:
    close(fd);
    return status;
}

whit_status whit_write_file(const char *path, const void *data, size_t size_bytes, whit_error *error)
{
    whit_writer writer;
    WHIT_TRY(whit_writer_open(path, NULL, &writer, error));
    whit_status status = whit_writer_append(&writer, data, size_bytes, error);
    if (status == WHIT_OK) return whit_writer_commit(&writer, error);
    whit_writer_discard(&writer);
    return status;
}
