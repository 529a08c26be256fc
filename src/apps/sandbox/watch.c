/* SPDX-License-Identifier: MIT
 * Answers the calls that a command's filter sends to its listener (seccomp user notification): refuses and records
 * them, or lets them continue.
 *
 * Paths are read from the memory of the calling process, which may change them at once, so they are only used for the
 * list of refused accesses. Landlock and the mounts decide about accesses. Calls about which neither decides are made
 * by proxy.c in place of the process: watches, and changes of modes and times if the command has no namespaces. */
#include "sandbox/walls.h"

#include "base/path.h"
#include "base/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL_NUMBERS 512
#define NOTES_MAX    200

struct whit_watch {
    const whit_call *calls[CALL_NUMBERS]; /* first entry of whit_calls for each system call number */
    const whit_sandbox_rules *rules;
    char *roots[64]; /* resolved paths that may be accessed; the first n_writable of them may be changed */
    size_t n_roots, n_writable;
    whit_writable folders[64]; /* descriptors of the first n_folders of `roots`, which are the folders in rules.write */
    size_t n_folders;
    char last[PATH_MAX + 80]; /* the last recorded line: the same access is not recorded or counted twice in a row */
};

static bool add_root(whit_watch *watch, const char *path)
{
    if (watch->n_roots == sizeof watch->roots / sizeof *watch->roots) return false;
    char *resolved = realpath(path, NULL);
    if (resolved) watch->roots[watch->n_roots++] = resolved;
    return true;
}

whit_status whit_watch_open(const whit_sandbox_rules *rules, whit_watch **watch, whit_error *error)
{
    static const char *const none[] = {NULL}, *const devices[] = {"/dev/null", "/dev/full", NULL};
    bool ok = true;
    whit_watch *w = *watch = calloc(1, sizeof *w);
    if (!w) return whit_fail_memory(error, "a sandbox", sizeof *w);
    w->rules = rules;
    for (const whit_call *call = whit_calls; call->name; call++) {
        int number = whit_call_number(call);
        if (number >= 0 && number < CALL_NUMBERS && !w->calls[number]) w->calls[number] = call;
    }
    for (const char *const *p = rules->write ? rules->write : none; *p; p++) ok = ok && add_root(w, *p);
    for (; ok && w->n_folders < w->n_roots; w->n_folders++) {
        const char *path = w->roots[w->n_folders];
        w->folders[w->n_folders] = (whit_writable){path, open(path, O_PATH | O_CLOEXEC)};
    }
    for (const char *const *p = devices; *p; p++) ok = ok && add_root(w, *p);
    w->n_writable = w->n_roots;
    for (const char *const *p = rules->read ? rules->read : none; *p; p++) ok = ok && add_root(w, *p);
    for (const char *const *p = whit_landlock_system; *p; p++) ok = ok && add_root(w, *p);
    return ok
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_LIMIT, "more than 64 folders are open to the command, the limit: allow fewer");
}

void whit_watch_close(whit_watch *watch)
{
    if (!watch) return;
    for (size_t i = 0; i < watch->n_roots; i++) free(watch->roots[i]);
    for (size_t i = 0; i < watch->n_folders; i++)
        if (watch->folders[i].fd >= 0) close(watch->folders[i].fd);
    free(watch);
}

static void note(whit_watch *watch, whit_sandbox_result *result, const char *line)
{
    char plain[sizeof watch->last];
    if (strcmp(watch->last, line) == 0) return;
    snprintf(watch->last, sizeof watch->last, "%s", line);
    if (result->n_refused++ >= NOTES_MAX) return;
    snprintf(plain, sizeof plain, "%s", line);
    whit_buf_append(&result->refused, plain, whit_plain_line(plain, strlen(plain)));
    whit_buf_append_str(&result->refused, "\n");
}

bool whit_watch_read_text(pid_t pid, uint64_t address, char *text, size_t room)
{
    for (size_t n = 0; n < room;) { /* reads page by page, because the page after the string may not be mapped */
        size_t piece = 4096 - (address + n) % 4096;
        if (piece > room - n) piece = room - n;
        struct iovec to = {text + n, piece}, from = {(void *)(uintptr_t)(address + n), piece};
        if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)piece) return false;
        if (memchr(text + n, 0, piece)) return true;
        n += piece;
    }
    return false;
}

static bool read_link(const char *path, char *target)
{
    ssize_t n = readlink(path, target, PATH_MAX - 1);
    if (n > 0) target[n] = 0;
    return n > 0;
}

/* Resolves a path and follows links. If the file does not exist, resolves its folder and appends the file's name.
 * Returns false if the folder does not exist either. */
static bool resolve_path(const char *path, char *out)
{
    char own[64], copy[PATH_MAX * 2 + 2];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(copy, O_PATH | O_CLOEXEC);
    const char *name = NULL;
    char *slash = strrchr(copy, '/');
    if (fd < 0 && slash) {
        name = slash + 1;
        *slash = 0;
        fd = open(*copy ? copy : "/", O_PATH | O_CLOEXEC | O_DIRECTORY);
    }
    if (fd < 0) return false;
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    bool ok = read_link(own, out);
    close(fd);
    size_t n = strlen(out);
    if (ok && name && n + strlen(name) + 2 <= PATH_MAX) sprintf(out + n, "%s%s", n > 1 ? "/" : "", name);
    return ok;
}

/* Returns whether a path is below one of the list, which is in the folder `root`. */
static bool is_left_out(const char *const *list, const char *root, const char *path)
{
    for (; list && *list; list++)
        if (whit_path_is_below(path, *list) && whit_path_is_below(*list, root) && strcmp(*list, root) != 0) return true;
    return false;
}

/* Returns whether the path of a call is outside the allowed folders, and records the call if it is. */
static bool look_at_path(whit_watch *watch, const struct seccomp_notif *call, const whit_call *of, bool is_write,
                         whit_sandbox_result *result)
{
    char text[PATH_MAX], base[PATH_MAX], link[64], joined[PATH_MAX * 2 + 2], at[PATH_MAX];
    pid_t pid = (pid_t)call->pid;
    if (!whit_watch_read_text(pid, call->data.args[of->path_at], text, sizeof text)) return false;
    int folder = of->folder_at < 0 ? AT_FDCWD : (int)call->data.args[of->folder_at];
    if (!*text && folder == AT_FDCWD) return false;
    if (*text == '/') {
        /* These paths are different for this process than for the calling one, so they are not checked. */
        if (whit_path_is_below(text, "/proc/self") || whit_path_is_below(text, "/proc/thread-self")) return false;
        snprintf(joined, sizeof joined, "%s", text);
    } else {
        if (folder == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
        else
            snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, folder);
        if (!read_link(link, base) || *base != '/') return false;
        snprintf(joined, sizeof joined, "%s/%s", base, text);
    }
    if (!resolve_path(joined, at)) return false; /* the folder does not exist, so no access was refused */
    for (size_t i = 0; i < (is_write ? watch->n_writable : watch->n_roots); i++) {
        const char *root = watch->roots[i];
        const bool is_closed = i >= watch->n_writable &&
            (is_left_out(watch->rules->hidden, root, at) ||
             (is_left_out(whit_landlock_settings, root, at) && !whit_path_is_folder(at)));
        if (whit_path_is_below(at, root) && !is_closed) return false;
    }
    char line[sizeof watch->last];
    snprintf(line, sizeof line, "%s %s", of->name, at);
    note(watch, result, line);
    return true;
}

/* Makes the call in place of the process, and puts its result into `answer`. */
static void make_call(whit_watch *watch, const struct seccomp_notif *call, const whit_call *of,
                      whit_sandbox_result *result, struct seccomp_notif_resp *answer)
{
    int value = 0,
        failure = of->kind == CALL_WATCH ? whit_proxy_watch(watch->folders, watch->n_folders, call, &value)
                                         : whit_proxy_change(watch->folders, watch->n_folders, call, of);
    if (failure == EPERM && (of->path_at < 0 || !look_at_path(watch, call, of, true, result)))
        note(watch, result, of->name);
    answer->error = -failure;
    answer->val = value;
}

/* Returns 0 if the process that a call affects belongs to the command, otherwise the errno with which the call must
 * fail. All processes of a command are in one process group, which they cannot leave. Arguments are copies of
 * registers, so the caller cannot change them before the call resumes. */
static int look_at_target(const struct seccomp_notif *call, const whit_call *of)
{
    const pid_t target = (pid_t)call->data.args[of->kind == CALL_LIMIT ? 0 : of->path_at],
                group = getpgid((pid_t)call->pid);
    const int which = of->kind == CALL_GROUP ? (int)call->data.args[0] - (int)of->value : 0;
    if (group <= 0) return EPERM;
    if (which) return which == 1 && (target == 0 || target == group) ? 0 : EPERM;
    if (target <= 0) return target == 0 || target == -group ? 0 : EPERM;
    pid_t its = getpgid(target);
    if (its == group) return 0;
    return its < 0 ? ESRCH : EPERM;
}

/* Sets the answer to one intercepted call. */
static void judge(whit_watch *watch, const struct seccomp_notif *call, whit_sandbox_result *result,
                  struct seccomp_notif_resp *answer)
{
    int number = call->data.nr;
    const whit_call *of = number >= 0 && number < CALL_NUMBERS ? watch->calls[number] : NULL;
    bool goes_on = false;
    char line[80] = "clone into a name space of its own";
    if (of && (of->kind == CALL_WATCH || (of->kind == CALL_CHANGE && !result->is_spaced))) {
        make_call(watch, call, of, result, answer);
        return;
    }
    if (of && (of->kind == CALL_PROCESS || of->kind == CALL_GROUP || of->kind == CALL_LIMIT)) {
        const bool is_core = of->kind == CALL_LIMIT && (uint32_t)call->data.args[1] == RLIMIT_CORE;
        int failure = 0;
        if (is_core && call->data.args[2])
            failure = EPERM;
        else if (!result->is_spaced)
            failure = look_at_target(call, of);
        if (failure == EPERM) note(watch, result, of->name);
        if (!failure) answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        answer->error = -failure;
        return;
    }
    for (const whit_call *c = of; c && c->name && strcmp(c->name, of->name) == 0; c++) {
        bool is_mode = c->kind == CALL_UNSPACED || c->kind == CALL_CHANGE, is_write = c->kind == CALL_WRITE || is_mode;
        if (c->kind == CALL_OPEN) is_write = (call->data.args[c->path_at + 1] & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0;
        goes_on = c->kind == CALL_READ || c->kind == CALL_WRITE || c->kind == CALL_OPEN || c->kind == CALL_START;
        goes_on = goes_on || (is_mode && c->path_at >= 0 && result->is_spaced);
        if (goes_on) (void)look_at_path(watch, call, c, is_write, result);
        if (c->kind == CALL_REQUEST)
            snprintf(line, sizeof line, "%s 0x%x", c->name, (unsigned)call->data.args[1]);
        else
            snprintf(line, sizeof line, "%s", c->name);
    }
    if (!goes_on) note(watch, result, line);
    if (goes_on)
        answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    else /* EOPNOTSUPP: programs that copy attributes accept a file system without attributes */
        answer->error = strstr(line, "setxattr") ? -EOPNOTSUPP : -EPERM;
}

/* SECCOMP_IOCTL_NOTIF_SET_FLAGS of Linux 6.6. Its flag 1, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, lets caller and listener
 * wake each other on the core that they run on, which is faster than waking another core. */
#define SET_FLAGS _IOW('!', 4, uint64_t)

void whit_watch_begin(int listener)
{
    (void)ioctl(listener, SET_FLAGS, 1ul); /* kernels before 6.6 lack this option, which only makes calls faster */
}

bool whit_watch_answer(whit_watch *watch, int listener, whit_sandbox_result *result)
{
    struct seccomp_notif call = {0};
    struct seccomp_notif_resp answer = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return errno == EINTR || errno == ENOENT;
    answer.id = call.id;
    judge(watch, &call, result, &answer);
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails if the calling process has ended meanwhile */
    return true;
}
