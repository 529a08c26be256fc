/* SPDX-License-Identifier: MIT */
#include "base/pinned.h"

#include "base/file.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

/* Opens a path one part at a time. */
static int walk_below(int root, const char *path, int flags)
{
    char part[NAME_MAX + 1];
    int at = root;
    for (bool is_last = false; at >= 0 && !is_last;) {
        const size_t n = strcspn(path, "/");
        is_last = !path[n];
        int next = -1;
        errno = ENAMETOOLONG;
        if (n <= NAME_MAX) {
            memcpy(part, path, n);
            part[n] = 0;
            next = openat(at, part, is_last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        const int failure = errno;
        if (at != root) close(at);
        errno = failure;
        at = next;
        path += n + 1;
    }
    return at;
}

int whit_open_below(int root, const char *path, int flags)
{
    if (!*path) path = ".";
    flags |= O_NOFOLLOW | O_CLOEXEC;
#ifdef SYS_openat2
    const struct open_how how = {.flags = (uint64_t)flags,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    const int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    /* a kernel before 5.6 lacks the call, and a container's filter may refuse it */
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
#endif
    return walk_below(root, path, flags);
}

int whit_open_in(const char *folder, const char *path, int flags)
{
    const int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fd = root >= 0 ? whit_open_below(root, path, flags) : -1, failure = errno;
    if (root >= 0) close(root);
    errno = failure;
    return fd;
}

bool whit_read_below(const char *folder, const char *path, size_t limit_bytes, whit_buf *content, bool *replaced)
{
    struct stat about;
    const int fd = whit_open_in(folder, path, O_RDONLY | O_NONBLOCK);
    if (replaced) *replaced = fd < 0 && (errno == ELOOP || errno == ENOTDIR);
    const bool ok = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
        whit_read_open_file(fd, path, limit_bytes, content, NULL) == WHIT_OK;
    if (fd >= 0) close(fd);
    return ok;
}

static whit_status too_long(const char *full, const char *beside, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_IO, "%s: the path is longer than %zu bytes, the limit", full,
                     PATH_MAX - strlen(beside) - 1);
}

static void keep_folder(whit_buf *made, const char *folder)
{
    char *kept = made ? strdup(folder) : NULL;
    if (kept && !whit_buf_append(made, &kept, sizeof kept)) free(kept);
}

#ifdef __linux__

/* Opens the folder `name` of an open folder, which is closed. `path`: the path of `name`. */
static whit_status enter_folder(int *folder, const char *name, const char *path, bool creates, whit_buf *made,
                                whit_error *error)
{
    const bool is_made = creates && mkdirat(*folder, name, 0777) == 0;
    const bool is_there = is_made || !creates || errno == EEXIST;
    whit_status status = is_there ? WHIT_OK : whit_fail_errno(error, path, "create this folder");
    if (is_made) keep_folder(made, path);
    const int next = is_there ? openat(*folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (is_there && next < 0 && (errno == ENOTDIR || errno == ELOOP || errno == ENOENT))
        status = whit_fail(error, WHIT_ERROR_ARGUMENT,
                           "%s: is not a folder any more; nothing is written: look at it again", path);
    else if (is_there && next < 0)
        status = whit_fail_errno(error, path, "open this folder");
    close(*folder);
    *folder = next;
    return status;
}

/* Opens the folder of a file. `path` has room for PATH_MAX bytes and gets the folder's path, with a final '/'. */
static whit_status open_folder(const char *full, size_t n_root, bool creates, whit_buf *made, char *path, int *folder,
                               whit_error *error)
{
    snprintf(path, PATH_MAX, "%s", full);
    char *name = path + n_root;
    *name = 0;
    *folder = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*folder < 0) return whit_fail_errno(error, path, "open this folder");
    *name++ = '/';
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = 0;
        WHIT_TRY(enter_folder(folder, name, path, creates, made, error));
        *slash = '/';
    }
    *name = 0;
    return WHIT_OK;
}

whit_status whit_pinned_open(const char *full, size_t n_root, const char *beside, bool creates, whit_buf *made,
                             whit_pinned *pinned, whit_error *error)
{
    char path[PATH_MAX];
    if (strlen(full) + strlen(beside) >= PATH_MAX) return too_long(full, beside, error);
    WHIT_TRY(open_folder(full, n_root, creates, made, path, &pinned->folder, error));
    /* without /proc the names are used as they are */
    const size_t n_path = strlen(path);
    if (whit_path_exists("/proc/self/fd")) snprintf(path, sizeof path, "/proc/self/fd/%d/", pinned->folder);
    snprintf(pinned->full, PATH_MAX, "%s%s", path, full + n_path);
    snprintf(pinned->beside, PATH_MAX, "%s%s", path, beside);
    return WHIT_OK;
}

void whit_pinned_close(whit_pinned *pinned)
{
    close(pinned->folder);
}

#else

whit_status whit_pinned_open(const char *full, size_t n_root, const char *beside, bool creates, whit_buf *made,
                             whit_pinned *pinned, whit_error *error)
{
    const size_t n_folder = (size_t)(strrchr(full, '/') + 1 - full);
    if (strlen(full) + strlen(beside) >= PATH_MAX) return too_long(full, beside, error);
    snprintf(pinned->full, PATH_MAX, "%s", full);
    snprintf(pinned->beside, PATH_MAX, "%.*s%s", (int)n_folder, full, beside);
    pinned->folder = -1;
    for (char *slash = strchr(pinned->full + n_root + 1, '/'); creates && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        const bool is_made = mkdir(pinned->full, 0777) == 0;
        whit_status status =
            is_made || errno == EEXIST ? WHIT_OK : whit_fail_errno(error, pinned->full, "create this folder");
        if (is_made) keep_folder(made, pinned->full);
        *slash = '/';
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

void whit_pinned_close(whit_pinned *pinned)
{
    (void)pinned;
}

#endif
