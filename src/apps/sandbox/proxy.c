/* SPDX-License-Identifier: MIT
 * Makes some system calls in place of a command's process, for files in the folders that the command may change,
 * because Landlock has no hook for these calls: watches (inotify_add_watch), and changes of modes and times if the
 * command has no namespaces. The filter passes such calls on to this process.
 *
 * The memory of the calling process is untrusted and may change at any time. It only selects a file below the writable
 * folders: the file is opened from the folder's descriptor, by a walk that neither leaves the folder nor crosses a
 * mount, and then changed by its descriptor. A file from elsewhere cannot have a second name in these folders, because
 * Landlock refuses to link or move it into them. */
#include "sandbox/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL_PIDFD_OPEN  434
#define CALL_PIDFD_GETFD 438
#define SET_IDS          ((uint64_t)(S_ISUID | S_ISGID))

/* Returns the path relative to the folder, "." for the folder itself, or NULL if the path is not in the folder. */
static const char *below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/')) return NULL;
    while (path[n] == '/') n++;
    return path[n] ? path + n : ".";
}

static bool read_link(const char *link, char target[PATH_MAX])
{
    ssize_t n = readlink(link, target, PATH_MAX - 1);
    target[n > 0 ? n : 0] = 0;
    return *target == '/';
}

/* Opens a path in one of the folders with O_PATH; returns -1 with errno on failure, EPERM if it is in none of them. */
static int open_path(const whit_writable *folders, size_t n, const char *path, bool no_follow)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC | (no_follow ? O_NOFOLLOW : 0),
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    for (size_t i = 0; i < n; i++) {
        const char *rest = below(path, folders[i].path);
        if (rest) return (int)syscall(SYS_openat2, folders[i].fd, rest, &how, sizeof how);
    }
    errno = EPERM;
    return -1;
}

/* Opens with O_PATH the file that the process has open as descriptor `number`. Returns -1 with errno on failure, EPERM
 * if the file is in none of the folders. */
static int open_number(const whit_writable *folders, size_t n, pid_t pid, int number)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, number);
    int fd = open(link, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        errno = EBADF;
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    for (size_t i = 0; read_link(link, path) && i < n; i++)
        if (below(path, folders[i].path)) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

static int open_file(const whit_writable *folders, size_t n, pid_t pid, int folder, const char *path, bool no_follow)
{
    char link[64], base[PATH_MAX], whole[2 * PATH_MAX + 2];
    if (*path == '/') return open_path(folders, n, path, no_follow);
    if (folder == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, folder);
    if (!*path || !read_link(link, base)) {
        errno = *path ? EBADF : ENOENT;
        return -1;
    }
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    return open_path(folders, n, whole, no_follow);
}

static bool read_times(pid_t pid, uint64_t address, struct timespec times[2])
{
    const struct iovec to = {times, 2 * sizeof *times}, from = {(void *)(uintptr_t)address, 2 * sizeof *times};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)(2 * sizeof *times);
}

static bool change(int fd, bool is_times, uint64_t mode, const struct timespec *times)
{
    char own[64];
    struct stat info;
    if (fstat(fd, &info) != 0) return false;
    if (is_times) return utimensat(fd, "", times, AT_EMPTY_PATH) == 0;
    if (!(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) || mode & SET_IDS) {
        errno = EPERM;
        return false;
    }
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    return chmod(own, (mode_t)mode & 01777) == 0;
}

int whit_proxy_change(const whit_writable *folders, size_t n, const struct seccomp_notif *call, const whit_call *of)
{
    const __u64 *arguments = call->data.args;
    const bool is_times = strcmp(of->name, "utimensat") == 0, has_flags = is_times || of->number;
    const pid_t pid = (pid_t)call->pid;
    const int value_at = of->path_at < 0 ? 1 : of->path_at + 1;
    const uint64_t flags = has_flags ? arguments[value_at + 1] & 0xffffffffu : 0;
    const uint64_t address = of->path_at < 0 ? 0 : arguments[of->path_at];
    const int folder = of->folder_at < 0 ? AT_FDCWD : (int)arguments[of->folder_at];
    char path[PATH_MAX];
    struct timespec times[2];
    int fd = -1;
    if (flags & ~(uint64_t)(is_times ? AT_SYMLINK_NOFOLLOW : 0)) return EPERM;
    if (is_times && arguments[value_at] && !read_times(pid, arguments[value_at], times)) return EFAULT;
    if (!address)
        fd = open_number(folders, n, pid, folder);
    else if (!whit_watch_read_text(pid, address, path, sizeof path))
        return EFAULT;
    else
        fd = open_file(folders, n, pid, folder, path, flags != 0);
    if (fd < 0) return errno == EXDEV ? EPERM : errno;
    int failure;
    if (change(fd, is_times, arguments[value_at], is_times && arguments[value_at] ? times : NULL))
        failure = 0;
    else
        failure = errno;
    close(fd);
    return failure;
}

/* Returns the process number of a thread; -1 if the thread has ended. */
static pid_t find_process(pid_t thread)
{
    char path[64], line[128];
    int process = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    FILE *file = fopen(path, "re");
    while (file && process < 0 && fgets(line, sizeof line, file)) (void)sscanf(line, "Tgid: %d", &process);
    if (file) fclose(file);
    return process;
}

int whit_proxy_watch(const whit_writable *folders, size_t n, const struct seccomp_notif *call, int *number)
{
    const uint32_t mask = (uint32_t)call->data.args[2];
    char path[PATH_MAX], own[64];
    int process = (int)syscall(CALL_PIDFD_OPEN, find_process((pid_t)call->pid), 0u), watches = -1, fd = -1;
    if (process >= 0) watches = (int)syscall(CALL_PIDFD_GETFD, process, (int)call->data.args[0], 0u);
    int failure = watches < 0 ? errno : 0;
    if (!failure && !whit_watch_read_text((pid_t)call->pid, call->data.args[1], path, sizeof path)) failure = EFAULT;
    if (!failure) {
        fd = open_file(folders, n, (pid_t)call->pid, AT_FDCWD, path, (mask & IN_DONT_FOLLOW) != 0);
        if (fd < 0) failure = errno == EXDEV ? EPERM : errno;
    }
    if (!failure) {
        snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
        *number = inotify_add_watch(watches, own, mask & ~(uint32_t)IN_DONT_FOLLOW);
        if (*number < 0) failure = errno;
    }
    if (fd >= 0) close(fd);
    if (watches >= 0) close(watches);
    if (process >= 0) close(process);
    if (failure) *number = 0;
    return failure;
}
