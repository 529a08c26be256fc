/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* longest wait for a pipe's data in ns, counted from the first read that finds none */
#define WAIT_NS UINT64_C(10000000000)

whit_status whit_map_open_fd(int fd, const char *path, const whit_allocator *allocator, whit_map *map,
                             whit_error *error)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return whit_fail_errno(error, path, "examine");
    if (S_ISDIR(info.st_mode)) return whit_fail(error, WHIT_ERROR_IO, "%s: is a folder, not a file", path);
    if (!S_ISREG(info.st_mode))
        return whit_fail(error, WHIT_ERROR_IO, "%s: is not a regular file (it is a device, pipe or socket)", path);
    if (info.st_size == 0) return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is empty; download it again", path);
    if ((uint64_t)info.st_size > SIZE_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file is larger than the addresses of this system can map",
                         path);
    char *name = whit_strndup(allocator, path, strlen(path));
    if (!name) return whit_fail_memory(error, "a file name", strlen(path) + 1);
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        whit_status status = whit_fail_errno(error, path, "map it into memory");
        whit_free(allocator, name, strlen(name) + 1);
        return status;
    }
    *map = (whit_map){.data = data, .size_bytes = (size_t)info.st_size, .path = name, .allocator = allocator};
    return WHIT_OK;
}

whit_status whit_map_open(const char *path, const whit_allocator *allocator, whit_map *map, whit_error *error)
{
    *map = (whit_map){0};
    /* O_NONBLOCK is set because opening a FIFO must not wait for a writer; the FIFO is refused afterwards. */
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
    whit_map_release(begin, size_bytes);
}

void whit_map_release(const void *begin, size_t size_bytes)
{
    long page = sysconf(_SC_PAGESIZE);
    size_t before = page > 0 ? (uintptr_t)begin % (size_t)page : 0;
    /* The map is read-only and backed by a file, so dropping its pages loses nothing. */
    madvise((uint8_t *)(uintptr_t)begin - before, size_bytes + before, MADV_DONTNEED);
}

void whit_map_expect(const void *begin, size_t size_bytes, bool all_of_it)
{
    long page = sysconf(_SC_PAGESIZE);
    uintptr_t first = whit_round_up((uintptr_t)begin, (size_t)page),
              end = ((uintptr_t)begin + size_bytes) & -(uintptr_t)page;
    if (first < end) madvise((void *)first, end - first, all_of_it ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* Waits for data or the end of a pipe, until `until_ns` at the latest. The result is false if that time had passed
 * before the wait, or poll fails other than by a signal; it is true after a wait without data, too. */
static bool wait_readable(int fd, uint64_t until_ns)
{
    uint64_t now_ns = whit_now_ns();
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    if (now_ns >= until_ns) return false;
    return poll(&wanted, 1, (int)((until_ns - now_ns) / 1000000) + 1) >= 0 || errno == EINTR;
}

whit_status whit_read_open_file(int fd, const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error)
{
    uint64_t until_ns = 0;
    struct stat info;
    const bool is_known = fstat(fd, &info) == 0;
    if (is_known && S_ISDIR(info.st_mode)) return whit_fail(error, WHIT_ERROR_IO, "%s: is a folder, not a file", path);
    for (;;) {
        if (!whit_buf_reserve(buf, 65536)) return whit_fail_memory(error, path, buf->size_bytes + 65536);
        ssize_t n = read(fd, buf->data + buf->size_bytes, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN && !(is_known && S_ISREG(info.st_mode))) { /* the kernel's logs look regular */
            if (!until_ns) until_ns = whit_now_ns() + WAIT_NS;
            if (wait_readable(fd, until_ns)) continue;
            return whit_fail(error, WHIT_ERROR_IO, "%s: its writer did not finish within %d s", path,
                             (int)(WAIT_NS / 1000000000));
        }
        if (n < 0) return whit_fail_errno(error, path, "read");
        if (n == 0) return WHIT_OK;
        buf->size_bytes += (size_t)n;
        if (buf->size_bytes > limit_bytes)
            return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file is larger than %zu bytes, the limit", path,
                             limit_bytes);
    }
}

whit_status whit_read_file(const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error)
{
    /* O_NONBLOCK is set because neither opening a FIFO without a writer nor reading from a silent writer may block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return whit_fail_errno(error, path, "open");
    whit_status status = whit_read_open_file(fd, path, limit_bytes, buf, error);
    close(fd);
    return status;
}

/* Opens a regular file, or returns -1. Devices are not even opened, since that has an effect on some. */
static int open_found_file(const char *path, whit_error *error)
{
    struct stat info;
    bool is_there = stat(path, &info) == 0;
    const int fd = is_there && S_ISREG(info.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd >= 0) is_there = fstat(fd, &info) == 0;
    if (is_there && S_ISREG(info.st_mode) && fd >= 0) return fd;
    if (is_there && !S_ISREG(info.st_mode))
        (void)whit_fail(error, WHIT_ERROR_IO, "%s: is not a regular file (it is a folder, device, pipe or socket)",
                        path);
    else
        (void)whit_fail_errno(error, path, "open");
    if (fd >= 0) close(fd);
    return -1;
}

whit_status whit_read_found_file(const char *path, size_t limit_bytes, whit_buf *buf, whit_error *error)
{
    const int fd = open_found_file(path, error);
    if (fd < 0) return WHIT_ERROR_IO;
    const whit_status status = whit_read_open_file(fd, path, limit_bytes, buf, error);
    close(fd);
    return status;
}

size_t whit_read_found_head(const char *path, void *head, size_t n)
{
    whit_error ignored;
    const int fd = open_found_file(path, &ignored);
    const ssize_t n_read = fd >= 0 ? read(fd, head, n) : 0;
    if (fd >= 0) close(fd);
    return n_read > 0 ? (size_t)n_read : 0;
}
