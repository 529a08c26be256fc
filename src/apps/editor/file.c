/* SPDX-License-Identifier: MIT */
#include "editor/file.h"

#include "base/exchange.h"
#include "base/file.h"
#include "base/path.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- mapped files that another program truncates ------------------------------------------- */

/* Mapped files, for the signal handler, which can access static variables only. A slot is filled before its map is
 * first read. */
#define N_GUARDS 64
static struct guard {
    uint8_t *begin;
    uint64_t size_bytes;
    volatile sig_atomic_t lost;
} guards[N_GUARDS];
static size_t page_bytes;
static struct sigaction action_before;

/* Handles SIGBUS in a mapped file that was truncated: maps a page of zeros at the faulting address, so that the program
 * continues, and marks the file as lost. mmap() is a plain system call, so it is safe here although POSIX does not list
 * it as such. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    uint8_t *at = info->si_addr;
    for (size_t i = 0; i < N_GUARDS; i++) {
        struct guard *guard = &guards[i];
        if (!guard->begin || at < guard->begin || (uint64_t)(at - guard->begin) >= guard->size_bytes) continue;
        uint8_t *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(page_bytes - 1));
        if (mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
        guard->lost = 1;
        errno = saved;
        return;
    }
    errno = saved;
    if ((action_before.sa_flags & SA_SIGINFO) && action_before.sa_sigaction) {
        action_before.sa_sigaction(number, info, context);
        return;
    }
    signal(SIGBUS, SIG_DFL); /* the instruction faults again and ends the program */
}

static void install_guard(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, &action_before);
}

static int guard_take(uint8_t *begin, uint64_t size_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_guard);
    for (int i = 0; i < N_GUARDS; i++) {
        if (guards[i].begin) continue;
        guards[i].lost = 0;
        guards[i].size_bytes = size_bytes;
        guards[i].begin = begin;
        return i;
    }
    return -1;
}

/* ---- reading ------------------------------------------------------------------------------- */

static whit_file_identity identity_of(const struct stat *about)
{
    return (whit_file_identity){about->st_dev, about->st_ino, (uint64_t)about->st_size,
                                about->st_mtim.tv_sec * 1000000000ll + about->st_mtim.tv_nsec, true};
}

void whit_file_identify(const char *path, whit_file_identity *identity)
{
    struct stat about;
    *identity = stat(path, &about) == 0 ? identity_of(&about) : (whit_file_identity){0};
}

bool whit_file_same(const whit_file_identity *a, const whit_file_identity *b)
{
    return a->exists == b->exists && a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
        a->modified_ns == b->modified_ns;
}

int64_t whit_file_now_ns(void)
{
    struct timespec now;
#ifdef CLOCK_REALTIME_COARSE /* Linux gives files the time of this clock, which may be 10 ms slow */
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
    clock_gettime(CLOCK_REALTIME, &now);
#endif
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

bool whit_file_changed_since(const char *path, int64_t since_ns)
{
    struct stat about;
    return stat(path, &about) != 0 || about.st_ctim.tv_sec * 1000000000ll + about.st_ctim.tv_nsec >= since_ns;
}

/* Reads a file whose size is reported as 0; it may have content nevertheless, such as a file in /proc. */
static whit_status read_unsized(int fd, const char *path, whit_file *file, whit_error *error)
{
    whit_buf text = {.limit_bytes = WHIT_FILE_COPIED_BYTES};
    for (;;) {
        if (!whit_buf_reserve(&text, 4096)) {
            whit_buf_free(&text);
            return whit_fail(error, WHIT_ERROR_LIMIT, "%s: has more than 1 MiB, the limit for a file of unknown size",
                             path);
        }
        ssize_t n = read(fd, text.data + text.size_bytes, 4096);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) {
            whit_buf_free(&text);
            return whit_fail_errno(error, path, "read");
        }
        if (n <= 0) break;
        text.size_bytes += (size_t)n;
    }
    file->data = malloc(text.size_bytes + 1);
    if (file->data && text.size_bytes) memcpy(file->data, text.data, text.size_bytes);
    file->size_bytes = file->data ? text.size_bytes : 0;
    whit_buf_free(&text);
    return file->data ? WHIT_OK : whit_fail_memory(error, path, WHIT_FILE_COPIED_BYTES);
}

static whit_status read_copy(int fd, const char *path, whit_file *file, whit_error *error)
{
    uint64_t room = file->identity.size_bytes;
    if (!room) return read_unsized(fd, path, file, error);
    file->data = malloc(room);
    if (!file->data) return whit_fail_memory(error, path, room);
    while (file->size_bytes < room) {
        ssize_t n = read(fd, file->data + file->size_bytes, room - file->size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return whit_fail_errno(error, path, "read");
        if (n == 0) break;
        file->size_bytes += (uint64_t)n;
    }
    return WHIT_OK;
}

static whit_status map_it(int fd, const char *path, whit_file *file, whit_error *error)
{
    uint64_t size_bytes = file->identity.size_bytes;
    if (!whit_system_replaces_mapped()) return read_copy(fd, path, file, error);
    uint8_t *data = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return whit_fail_errno(error, path, "map it into memory");
    file->guard = guard_take(data, size_bytes);
    if (file->guard < 0) {
        munmap(data, size_bytes);
        return read_copy(fd, path, file, error);
    }
    file->data = data;
    file->size_bytes = size_bytes;
    file->is_mapped = true;
    return WHIT_OK;
}

whit_status whit_file_open(const char *path, whit_file *file, whit_error *error)
{
    *file = (whit_file){.guard = -1};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) return WHIT_OK;
    if (fd < 0) return whit_fail_errno(error, path, "open");
    struct stat about;
    whit_status status = WHIT_OK;
    if (fstat(fd, &about)) {
        status = whit_fail_errno(error, path, "read its properties");
    } else if (!S_ISREG(about.st_mode)) {
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: %s", path,
                           S_ISDIR(about.st_mode) ? "a folder cannot be edited; M-T (:Ex) shows the project's files"
                                                  : "only regular files can be edited");
    } else {
        file->identity = identity_of(&about);
        status = file->identity.size_bytes > WHIT_FILE_COPIED_BYTES ? map_it(fd, path, file, error)
                                                                    : read_copy(fd, path, file, error);
    }
    close(fd);
    if (status != WHIT_OK) whit_file_close(file);
    file->has_mark = whit_file_has_mark(file->data, file->size_bytes);
    return status;
}

bool whit_file_has_mark(const void *data, uint64_t size_bytes)
{
    return size_bytes >= 3 && !memcmp(data, WHIT_FILE_MARK, 3);
}

whit_span whit_file_text(const whit_file *file)
{
    unsigned n = file->has_mark ? 3 : 0;
    return (whit_span){file->data ? file->data + n : NULL, file->size_bytes - n};
}

void whit_file_close(whit_file *file)
{
    if (file->is_mapped) {
        munmap(file->data, file->size_bytes);
        guards[file->guard].begin = NULL;
    } else {
        free(file->data);
    }
    *file = (whit_file){.guard = -1};
}

bool whit_file_is_lost(const whit_file *file)
{
    return file->guard >= 0 && guards[file->guard].lost;
}

void whit_file_drop(void *user, whit_span span)
{
    const whit_file *file = user;
    if (!file->is_mapped || span.data < file->data || span.data >= file->data + file->size_bytes) return;
    /* drop only whole pages that were read; the page with the beginning of the next piece stays */
    uintptr_t begin = (uintptr_t)span.data & ~(uintptr_t)(page_bytes - 1);
    uintptr_t end = (uintptr_t)(span.data + span.size_bytes) & ~(uintptr_t)(page_bytes - 1);
    if (guards[file->guard].lost) return; /* a dropped page of a truncated file would fault again */
    if (end > begin) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* ---- saving -------------------------------------------------------------------------------- */

static whit_status write_text(int fd, const char *path, const whit_text *text, bool with_mark, whit_error *error)
{
    uint64_t offset = 0, size_bytes = whit_text_size(text);
    for (size_t n_mark = 0; with_mark && n_mark < 3;) {
        ssize_t written = write(fd, WHIT_FILE_MARK + n_mark, 3 - n_mark);
        if (written < 0 && errno != EINTR) return whit_fail_errno(error, path, "write");
        if (written > 0) n_mark += (size_t)written;
    }
    while (offset < size_bytes) {
        struct iovec parts[64];
        int n = 0;
        uint64_t at = offset;
        while (n < 64 && at < size_bytes) {
            whit_span span = whit_text_at(text, at);
            parts[n++] = (struct iovec){(void *)(uintptr_t)span.data, span.size_bytes};
            at += span.size_bytes;
        }
        ssize_t written = writev(fd, parts, n);
        if (written < 0 && errno == EINTR) continue;
        /* A read by the kernel fails with EFAULT instead of raising SIGBUS, so touch the pages here: on_bus_error()
         * then repairs them. */
        if (written < 0 && errno == EFAULT) {
            volatile uint8_t touched = 0;
            for (int i = 0; i < n; i++)
                for (size_t k = 0; k < parts[i].iov_len; k += 512) touched ^= ((const uint8_t *)parts[i].iov_base)[k];
            (void)touched;
            continue;
        }
        if (written < 0) return whit_fail_errno(error, path, "write");
        offset += (uint64_t)written;
    }
    return WHIT_OK;
}

static bool is_state(const char *path, const void *user)
{
    whit_file_identity now;
    whit_file_identify(path, &now);
    return whit_file_same(&now, user);
}

static whit_status refuse_changed(const char *path, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "nothing was saved, because another program has just changed %s",
                     path);
}

/* Renames a finished file over `path` if that is in the state `there`. */
static whit_status replace_state(const char *temporary, const char *path, const void *there, whit_error *error)
{
    const whit_expected expected = {
        .exists = ((const whit_file_identity *)there)->exists, .is = is_state, .user = there};
    const whit_exchanged done = whit_exchange_put(temporary, path, &expected);
    if (done == WHIT_EXCHANGE_FAILED) return whit_fail_errno(error, path, "rename the finished file to this name");
    return done == WHIT_EXCHANGE_DONE ? WHIT_OK : refuse_changed(path, error);
}

/* Saves by renaming a new file over `path`. Returns WHIT_ERROR_UNSUPPORTED (without a message) if the file must be
 * written in place. A spare copy is readable by its owner alone. `there` as for whit_file_save. */
static whit_status save_beside(const char *path, const whit_text *text, const whit_file *source, bool is_spare,
                               const whit_file_identity *there, whit_error *error)
{
    char folder[PATH_MAX];
    struct stat about;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int n_folder = slash ? (int)(slash + 1 - path) : 1;
    snprintf(folder, sizeof folder, "%.*s", n_folder, slash ? path : ".");
    int original = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (original < 0 && errno != ENOENT) return WHIT_ERROR_UNSUPPORTED;
    if (original < 0 && !whit_path_exists(folder)) return whit_fail_errno(error, path, "create");
    bool kept = original < 0 ||
        (fstat(original, &about) == 0 && about.st_nlink == 1 && access(folder, W_OK | X_OK) == 0 &&
         strlen(name) < NAME_MAX - 16); /* leaves room for the suffix of a temporary name */
    whit_writer writer;
    whit_status status = WHIT_ERROR_UNSUPPORTED;
    if (kept) status = (is_spare ? whit_writer_open_private : whit_writer_open)(path, NULL, &writer, error);
    if (status == WHIT_OK) writer.is_new = false; /* a spare copy that an earlier attempt left is replaced */
    if (there) writer.replace = replace_state;
    writer.replace_user = there;
    if (status != WHIT_OK) {
        if (original >= 0) close(original);
        return status;
    }
    if (original >= 0) {
        if (!whit_copy_metadata(original, writer.fd)) status = WHIT_ERROR_UNSUPPORTED;
        close(original);
    }
    if (status == WHIT_OK) status = write_text(writer.fd, path, text, source && source->has_mark, error);
    if (status == WHIT_OK && source && whit_file_is_lost(source))
        status =
            whit_fail(error, WHIT_ERROR_IO,
                      "%s: parts of its text were lost because another program truncated the file; not saved", path);
    if (status == WHIT_OK) return whit_writer_commit(&writer, error);
    whit_writer_discard(&writer);
    return status;
}

/* Saves in place, after writing a complete copy to `spare`. A full disk is thus noticed before the first byte is
 * overwritten. `there` as for whit_file_save. */
static whit_status save_over(const char *path, const whit_text *text, const char *spare, const whit_file *source,
                             const whit_file_identity *there, whit_file_identity *identity, whit_error *error)
{
    struct stat about;
    whit_file_identity left; /* the copy that an earlier attempt left; no other file is replaced */
    whit_file_identify(spare, &left);
    if (lstat(spare, &about) == 0 && S_ISLNK(about.st_mode))
        return whit_fail(error, WHIT_ERROR_IO, "%s: is a link, so no copy of the text is kept there: remove it", spare);
    whit_status status = save_beside(spare, text, source, true, &left, error);
    if (status == WHIT_ERROR_UNSUPPORTED) return whit_fail_errno(error, spare, "keep a copy of the text in this file");
    WHIT_TRY(status);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        status = whit_fail_errno(error, path, "write");
        unlink(spare);
        return status;
    }
    uint64_t size_bytes = whit_text_size(text) + (source && source->has_mark ? 3 : 0);
    bool is_known = fstat(fd, &about) == 0, grows = is_known && (uint64_t)about.st_size < size_bytes;
    whit_file_identity before = is_known ? identity_of(&about) : (whit_file_identity){0};
    if (there && !whit_file_same(&before, there)) {
        close(fd);
        unlink(spare);
        return refuse_changed(path, error);
    }
    if (grows && (errno = posix_fallocate(fd, about.st_size, (off_t)size_bytes - about.st_size))) {
        int why = errno;
        /* truncating restores the old size; the old bytes were not touched */
        bool is_cut = ftruncate(fd, about.st_size) == 0;
        if (is_cut && whit_file_same(&before, identity) && fstat(fd, &about) == 0) *identity = identity_of(&about);
        errno = why;
        status = whit_fail_errno(error, path, "save");
        close(fd);
        unlink(spare);
        return status;
    }
    /* The text may be mapped from this very file, so the bytes are written from the copy. */
    whit_file copy;
    whit_text *copied = NULL;
    status = whit_file_open(spare, &copy, error);
    if (status == WHIT_OK) status = whit_text_open(&copied, error);
    if (status == WHIT_OK) status = whit_text_adopt(copied, copy.data, copy.size_bytes, error);
    if (status == WHIT_OK) status = write_text(fd, path, copied, false, error);
    if (status == WHIT_OK && (ftruncate(fd, (off_t)size_bytes) || fsync(fd)))
        status = whit_fail_errno(error, path, "save");
    whit_text_close(copied);
    whit_file_close(&copy);
    if (close(fd) && status == WHIT_OK) status = whit_fail_errno(error, path, "save");
    if (status == WHIT_OK) unlink(spare);
    return status;
}

whit_status whit_file_save(const char *path, const whit_text *text, const char *spare, const whit_file *source,
                           const whit_file_identity *there, whit_file_identity *identity, whit_error *error)
{
    char real[PATH_MAX];
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) /* saving would replace a device by a regular file */
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: %s", path,
                         S_ISDIR(about.st_mode) ? "a folder cannot be replaced" : "only regular files can be replaced");
    if (!realpath(path, real)) {
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0)
            return whit_fail(error, WHIT_ERROR_IO,
                             "%s: is a link to a file that does not exist: remove the link, or create that file", path);
        if (snprintf(real, sizeof real, "%s", path) >= (int)sizeof real)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: the path is longer than %d bytes, the limit", path,
                             PATH_MAX - 1);
    }
    whit_status status = save_beside(real, text, source, false, there, error);
    if (status == WHIT_ERROR_UNSUPPORTED) status = save_over(real, text, spare, source, there, identity, error);
    if (status == WHIT_OK) whit_file_identify(real, identity);
    return status;
}
