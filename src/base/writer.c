/* SPDX-License-Identifier: MIT
 * Writes files atomically. The new content is in a file without a name until it is complete (O_TMPFILE), if the file
 * system supports that; otherwise it is in FILE.tmp-XXXXXX in the same folder. A writer holds a lock (flock) on its
 * file, so that the next writer of FILE recognises the file of a killed one and removes it. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_BYTES ((size_t)2 << 20)
/* A long file is flushed to the disk in pieces of this size while later pieces are produced. Otherwise the system would
 * begin later, and the commit would wait for most of the file. A multiple of WRITE_BYTES. */
#define FLUSH_BYTES ((size_t)16 << 20)

/* ---- names ---------------------------------------------------------------------------------- */

#define TEMPORARY_BYTES (sizeof ".tmp-XXXXXX" - 1)
#define MAX_LINKS       40 /* the kernel's limit of links in one path */

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

/* Writes the check that follows the three random letters of a temporary name, by FNV-1a: a person's own file, such as
 * FILE.tmp-backup, is not taken for a leftover. */
static void write_check(const char *random, char check[3])
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < 3; i++) hash = (hash ^ (uint8_t)random[i]) * 16777619u;
    for (size_t i = 0; i < 3; i++, hash /= sizeof letters - 1) check[i] = letters[hash % (sizeof letters - 1)];
}

static bool random_suffix(char *suffix)
{
    uint8_t random[3];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    memcpy(suffix, ".tmp-XXXXXX", TEMPORARY_BYTES + 1);
    for (size_t i = 0; i < sizeof random; i++) suffix[5 + i] = letters[random[i] % (sizeof letters - 1)];
    write_check(suffix + 5, suffix + 8);
    return true;
}

/* Returns whether `entry` has the form of a temporary name for the file `name` (NULL: for any file). */
static bool is_temporary(const char *entry, const char *name)
{
    size_t n = strlen(entry), n_name = n > TEMPORARY_BYTES ? n - TEMPORARY_BYTES : 0;
    if (!n_name || memcmp(entry + n_name, ".tmp-", 5) != 0) return false;
    char check[3];
    write_check(entry + n_name + 5, check);
    if (memcmp(entry + n_name + 8, check, sizeof check) != 0) return false;
    return !name || (strlen(name) == n_name && memcmp(entry, name, n_name) == 0);
}

void whit_writer_clean(const char *folder, const char *name)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        struct stat info;
        if (!is_temporary(entry->d_name, name)) continue;
        int fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0) continue;
        if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
        close(fd);
    }
    if (directory) closedir(directory);
}

static whit_status refuse_length(const char *path, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_IO,
                     "%s: the path is longer than %zu bytes or its last name than %zu, the limits", path,
                     PATH_MAX - 1 - TEMPORARY_BYTES, NAME_MAX - TEMPORARY_BYTES);
}

/* Follows the symbolic links of a name; the last one may point to a file that does not exist yet. */
static whit_status follow_links(const char *path, char resolved[PATH_MAX], whit_error *error)
{
    char target[PATH_MAX], folder[PATH_MAX];
    if (snprintf(resolved, PATH_MAX, "%s", path) >= PATH_MAX) return refuse_length(path, error);
    for (int i = 0; i < MAX_LINKS; i++) {
        ssize_t n = readlink(resolved, target, sizeof target - 1);
        if (n < 0) return WHIT_OK; /* not a link, or it does not exist; for other errors a later call fails */
        target[n] = 0;
        memcpy(folder, resolved, sizeof folder);
        int used = target[0] == '/' ? snprintf(resolved, PATH_MAX, "%s", target)
                                    : snprintf(resolved, PATH_MAX, "%s/%s", dirname(folder), target);
        if (used >= PATH_MAX)
            return whit_fail(error, WHIT_ERROR_IO, "%s: is a link to a path longer than %d bytes, the limit", path,
                             PATH_MAX - 1);
    }
    return whit_fail(error, WHIT_ERROR_IO, "%s: the link leads through more than %d links: name the file itself", path,
                     MAX_LINKS);
}

/* Refuses invalid names at once; otherwise the commit would fail, possibly hours later. */
static whit_status check_name(const char *path, const char *resolved, whit_error *error)
{
    const char *slash = strrchr(resolved, '/');
    size_t n = strlen(resolved), n_base = strlen(slash ? slash + 1 : resolved);
    if (!n_base)
        return whit_fail(error, WHIT_ERROR_IO, "%s: %s", path,
                         slash ? "is the name of a folder: add the name of a file"
                               : "the name of the output is empty: give one");
    if (n_base + TEMPORARY_BYTES > NAME_MAX || n + TEMPORARY_BYTES >= PATH_MAX) return refuse_length(path, error);
    return WHIT_OK;
}

static void free_names(whit_writer *writer)
{
    whit_free(writer->allocator, writer->pending, WRITE_BYTES);
    writer->pending = NULL;
    writer->n_pending = 0;
    size_t n = writer->path ? strlen(writer->path) : 0;
    if (writer->temporary) whit_free(writer->allocator, writer->temporary, n + TEMPORARY_BYTES + 1);
    if (writer->path) whit_free(writer->allocator, writer->path, n + 1);
    writer->path = writer->temporary = NULL;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Creates a file without a name in `folder`; -1 if the system cannot, or could not give it a name later. */
static int create_unnamed(const char *folder)
{
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) != 0) return -1;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (fd >= 0) (void)flock(fd, LOCK_EX | LOCK_NB);
    return fd;
#else
    (void)folder;
    return -1;
#endif
}

/* Creates the file `name` with a new random suffix at `suffix`, which points to the end of `name`. Its mode follows the
 * user's umask (mkstemp would use 0600, but a model should be as readable as other files). Returns a locked descriptor;
 * -1, with errno, on failure. */
static int create_named(char *suffix, const char *name)
{
    int fd = -1;
    errno = EEXIST;
    for (int attempt = 0; attempt < 100 && fd < 0 && errno == EEXIST; attempt++) {
        struct stat info;
        if (!random_suffix(suffix)) return -1;
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0) continue;
        /* Between open and flock another writer may have removed the file as the leftover of a killed process. */
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 && info.st_nlink > 0) break;
        close(fd);
        fd = -1;
        errno = EEXIST;
    }
    return fd;
}

static whit_status open_memory(whit_writer *writer, whit_error *error)
{
    writer->fd = memfd_create("whit", MFD_CLOEXEC);
    if (writer->fd < 0) return whit_fail_errno(error, "memory file", "create");
    writer->open = true;
    return WHIT_OK;
}

/* Opens a device or a pipe. The bytes are written to memory first and copied to it at the commit. */
static whit_status open_special(whit_writer *writer, const char *path, mode_t mode, whit_error *error)
{
    if (S_ISDIR(mode)) return whit_fail(error, WHIT_ERROR_IO, "%s: is a folder, not a file", path);
    if (!S_ISCHR(mode) && !S_ISFIFO(mode))
        return whit_fail(error, WHIT_ERROR_IO, "%s: is a %s, to which whit does not write: name a file", path,
                         S_ISBLK(mode) ? "block device" : "socket");
    writer->special = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (writer->special < 0) return whit_fail_errno(error, path, "open");
    writer->is_special = true;
    whit_status status = open_memory(writer, error);
    if (status != WHIT_OK) close(writer->special);
    return status;
}

/* Takes from the new file the rights that the file which it will replace does not give to others, before it has any
 * content: a file that was made private stays so. */
static whit_status keep_private(const whit_writer *writer, whit_error *error)
{
    struct stat before, now;
    if (stat(writer->path, &before) != 0 || fstat(writer->fd, &now) != 0) return WHIT_OK;
    mode_t kept = before.st_mode | 0700;
    if (before.st_gid != now.st_gid) kept &= (mode_t)~070;
    const mode_t mode = now.st_mode & kept & 0777;
    if (mode == (now.st_mode & 0777) || fchmod(writer->fd, mode) == 0) return WHIT_OK;
    return whit_fail_errno(error, writer->path, "keep it from others");
}

static whit_status open_beside(whit_writer *writer, const char *path, whit_error *error)
{
    char folder[PATH_MAX], name[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    snprintf(name, sizeof name, "%s", path);
    char *in = dirname(folder);
    whit_writer_clean(in, basename(name));
    size_t n = strlen(writer->path);
    memcpy(writer->temporary, writer->path, n + 1);
    writer->fd = create_unnamed(in);
    writer->unnamed = writer->fd >= 0;
    if (!writer->unnamed) writer->fd = create_named(writer->temporary + n, writer->temporary);
    if (writer->fd < 0) return whit_fail_errno(error, path, "create a temporary file beside it");
    writer->open = true;
    const whit_status status = keep_private(writer, error);
    if (status != WHIT_OK && !writer->unnamed) unlink(writer->temporary);
    if (status != WHIT_OK) close(writer->fd);
    writer->open = status == WHIT_OK;
    return status;
}

whit_status whit_writer_open(const char *path, const whit_allocator *allocator, whit_writer *writer, whit_error *error)
{
    char resolved[PATH_MAX];
    struct stat info;
    *writer = (whit_writer){.fd = -1, .allocator = allocator};
    if (!path) return open_memory(writer, error);
    bool is_special = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    if (is_special) {
        snprintf(resolved, sizeof resolved, "%s", path);
    } else {
        WHIT_TRY(follow_links(path, resolved, error));
        WHIT_TRY(check_name(path, resolved, error));
    }
    size_t n = strlen(resolved);
    writer->path = whit_strndup(allocator, resolved, n);
    writer->temporary = whit_alloc(allocator, n + TEMPORARY_BYTES + 1);
    whit_status status = WHIT_OK;
    if (!writer->path || !writer->temporary)
        status = whit_fail_memory(error, "a file name", n);
    else if (is_special)
        status = open_special(writer, resolved, info.st_mode, error);
    else
        status = open_beside(writer, resolved, error);
    if (status != WHIT_OK) free_names(writer);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

whit_status whit_writer_open_private(const char *path, const whit_allocator *allocator, whit_writer *writer,
                                     whit_error *error)
{
    WHIT_TRY(whit_writer_open(path, allocator, writer, error));
    writer->is_new = true;
    if (fchmod(writer->fd, 0600) == 0) return WHIT_OK;
    whit_status status = whit_fail_errno(error, path, "set its mode to 0600");
    whit_writer_discard(writer);
    return status;
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

/* Asks the system to begin writing the FLUSH_BYTES before offset_bytes to the disk. */
static void begin_flush(const whit_writer *writer)
{
#ifdef SYNC_FILE_RANGE_WRITE
    if (writer->path && !writer->is_special)
        (void)sync_file_range(writer->fd, (off_t)(writer->offset_bytes - FLUSH_BYTES), (off_t)FLUSH_BYTES,
                              SYNC_FILE_RANGE_WRITE);
#else
    (void)writer;
#endif
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
        /* bytes up to the next multiple of WRITE_BYTES */
        size_t n = WRITE_BYTES - (size_t)(writer->offset_bytes % WRITE_BYTES);
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
        if (writer->offset_bytes % FLUSH_BYTES == 0) begin_flush(writer);
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

static int link_unnamed(const whit_writer *writer, const char *path)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", writer->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Gives the file without a name a temporary one. */
static bool name_beside(whit_writer *writer)
{
    errno = EEXIST;
    for (int attempt = 0; attempt < 100 && writer->unnamed && errno == EEXIST; attempt++) {
        if (!random_suffix(writer->temporary + strlen(writer->path))) return false;
        writer->unnamed = link_unnamed(writer, writer->temporary) != 0;
    }
    return !writer->unnamed;
}

/* Gives the file without a name its name: directly if no file has this name; else fails if is_new, or goes through a
 * temporary name, because only rename() replaces a file. */
static int name_it(whit_writer *writer)
{
    if (link_unnamed(writer, writer->path) == 0) return 0;
    if (writer->is_new || errno != EEXIST || !name_beside(writer)) return -1;
    return rename(writer->temporary, writer->path);
}

whit_status whit_writer_beside(const char *path, char *resolved, char *beside, whit_error *error)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return whit_fail(error, WHIT_ERROR_IO, "%s: is not a regular file", path);
    WHIT_TRY(follow_links(path, resolved, error));
    WHIT_TRY(check_name(path, resolved, error));
    size_t n = strlen(resolved);
    memcpy(beside, resolved, n);
    return random_suffix(beside + n) ? WHIT_OK : whit_fail_errno(error, path, "name a temporary file beside it");
}

whit_status whit_writer_put_in_place(const char *beside, const char *resolved, whit_error *error)
{
    if (rename(beside, resolved) != 0) return whit_fail_errno(error, resolved, "rename the finished file to this name");
    sync_folder(resolved);
    return WHIT_OK;
}

static whit_status copy_to_special(const whit_writer *writer, whit_error *error)
{
    uint8_t bytes[16384];
    for (uint64_t offset = 0;;) {
        ssize_t n = pread(writer->fd, bytes, sizeof bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return whit_fail_errno(error, writer->path, "read back what was written");
        if (n == 0) return WHIT_OK;
        offset += (uint64_t)n;
        for (ssize_t done = 0, m; done < n; done += m) {
            m = write(writer->special, bytes + done, (size_t)(n - done));
            if (m < 0 && errno == EINTR) m = 0;
            if (m < 0) return whit_fail_errno(error, writer->path, "write");
        }
    }
}

static whit_status finish_file(whit_writer *writer, whit_error *error)
{
    WHIT_TRY(write_pending(writer, error));
    if (writer->is_special) return copy_to_special(writer, error);
    if (fsync(writer->fd) != 0) return whit_fail_errno(error, writer->path, "flush it to the disk");
    int failed;
    if (writer->replace)
        return writer->unnamed && !name_beside(writer)
            ? whit_fail_errno(error, writer->path, "name the finished file")
            : writer->replace(writer->temporary, writer->path, writer->replace_user, error);
    if (writer->unnamed)
        failed = name_it(writer);
    else if (writer->is_new)
        failed = link(writer->temporary, writer->path);
    else
        failed = rename(writer->temporary, writer->path);
    if (!failed && !writer->unnamed && writer->is_new) unlink(writer->temporary);
    return failed ? whit_fail_errno(error, writer->path, "rename the finished file to this name") : WHIT_OK;
}

static void close_files(whit_writer *writer)
{
    if (writer->fd >= 0) close(writer->fd);
    if (writer->is_special) close(writer->special);
    free_names(writer);
    *writer = (whit_writer){.fd = -1, .allocator = writer->allocator};
}

whit_status whit_writer_commit(whit_writer *writer, whit_error *error)
{
    if (!writer->path) return write_pending(writer, error);
    whit_status status = finish_file(writer, error);
    if (status != WHIT_OK) {
        whit_writer_discard(writer);
        return status;
    }
    if (!writer->is_special) sync_folder(writer->path);
    close_files(writer);
    return WHIT_OK;
}

void whit_writer_discard(whit_writer *writer)
{
    if (!writer->open) return;
    if (writer->temporary && !writer->unnamed && !writer->is_special) unlink(writer->temporary);
    close_files(writer);
}

bool whit_write_all(int fd, const void *data, size_t size_bytes)
{
    for (const char *at = data; size_bytes;) {
        ssize_t n = write(fd, at, size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size_bytes -= (size_t)n;
    }
    return true;
}

whit_status whit_write_over(const char *path, const void *data, size_t size_bytes, whit_error *error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about;
    if (fd < 0) return whit_fail_errno(error, path, "write");
    bool ok = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    if (ok && (uint64_t)about.st_size < size_bytes &&
        (errno = posix_fallocate(fd, about.st_size, (off_t)size_bytes - about.st_size))) {
        int why = errno;
        if (ftruncate(fd, about.st_size)) {
        } /* an error is ignored, because the old bytes still exist in any case */
        errno = why;
        ok = false;
    }
    ok = ok && whit_write_all(fd, data, size_bytes) && ftruncate(fd, (off_t)size_bytes) == 0 && fsync(fd) == 0;
    whit_status status = ok ? WHIT_OK : whit_fail_errno(error, path, "write");
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
