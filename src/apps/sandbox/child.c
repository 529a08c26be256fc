/* SPDX-License-Identifier: MIT */
#include "sandbox/child.h"

#include "base/bound_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_MOUNT_SETATTR 442
#define CALL_CLOSE_RANGE   436
#define CALL_PIDFD_OPEN    434
#define ATTR_READ_ONLY     1u
#define ATTR_NO_SETUID     2u
#define ATTR_NO_DEVICES    4u
#define AT_WHOLE_TREE      0x8000

const char *const whit_child_steps[] = {"start",    "enter the folder of", "set the limits of",
                                        "restrict", "filter the calls of", "run"};
enum { STEP_START, STEP_FOLDER, STEP_LIMITS, STEP_RESTRICT, STEP_FILTER, STEP_RUN };

struct mount_change {
    uint64_t set, clear, propagation, user_fd;
};

static void tell(const whit_child_plan *plan, int kind, int value, int step)
{
    whit_child_word word = {kind, value, step};
    ssize_t n = write(plan->words, &word, sizeof word); /* written as a whole, because it is shorter than PIPE_BUF */
    (void)n;
}

static bool put_text(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0) close(fd);
    return ok;
}

/* Writes the line "N N 1", by which a namespace maps this user or group to itself. The digits are made by hand, since
 * printf must not be called after a fork. */
static bool map_to_self(const char *path, unsigned id)
{
    char digits[12], line[32];
    size_t n = 0, at = 0;
    do digits[n++] = (char)('0' + id % 10);
    while (id /= 10);
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = n; i--;) line[at++] = digits[i];
        line[at++] = ' ';
    }
    line[at++] = '1';
    return put_text(path, line, at);
}

/* Makes all mounts read-only except the folders in rules.write, and mounts a /proc that shows only the command's
 * processes. With namespaces only these mounts prevent changes of modes and owners; Landlock and seccomp enforce all
 * other restrictions. */
static bool make_view(const whit_child_plan *plan)
{
    const char *const *folders = plan->command->rules.write;
    struct mount_change read_only = {.set = ATTR_READ_ONLY},
                        writable = {.set = ATTR_NO_SETUID | ATTR_NO_DEVICES, .clear = ATTR_READ_ONLY};
    bool ok = put_text("/proc/self/setgroups", "deny", 4) && map_to_self("/proc/self/uid_map", plan->user) &&
        map_to_self("/proc/self/gid_map", plan->group) && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    for (const char *const *p = folders; ok && p && *p; p++) ok = mount(*p, *p, NULL, MS_BIND | MS_REC, NULL) == 0;
    ok = ok && syscall(CALL_MOUNT_SETATTR, AT_FDCWD, "/", AT_WHOLE_TREE, &read_only, sizeof read_only) == 0;
    for (const char *const *p = folders; ok && p && *p; p++)
        ok = syscall(CALL_MOUNT_SETATTR, AT_FDCWD, *p, AT_WHOLE_TREE, &writable, sizeof writable) == 0;
    /* Some containers refuse this mount; the command then cannot read /proc. */
    if (ok && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") == 0)
        (void)whit_landlock_allow_read(plan->ruleset, "/proc");
    return ok;
}

static bool limit(int what, uint64_t most)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0) return false;
    if (now.rlim_max != RLIM_INFINITY && most > now.rlim_max) most = now.rlim_max;
    now.rlim_cur = now.rlim_max = most;
    return setrlimit(what, &now) == 0;
}

static bool set_limits(const whit_sandbox_limits *limits)
{
    return limit(RLIMIT_CPU, limits->cpu_s) && limit(RLIMIT_AS, limits->memory_bytes) &&
        limit(RLIMIT_FSIZE, limits->file_bytes) && limit(RLIMIT_NPROC, limits->n_processes) && limit(RLIMIT_CORE, 1) &&
        limit(RLIMIT_NOFILE, 1024) && limit(RLIMIT_MEMLOCK, 1 << 20) && limit(RLIMIT_MSGQUEUE, 0);
}

/* Drops all capabilities, which root and the owner of a namespace have, before the program starts. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    for (int cap = 0; cap < 64; cap++) (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    (void)prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)syscall(SYS_capset, &head, none);
}

static bool send_descriptor(int socket, int fd)
{
    char byte = 0;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static void fail_step(const whit_child_plan *plan, int step)
{
    tell(plan, CHILD_FAILED, errno, step);
    _exit(127);
}

static void become_command(const whit_child_plan *plan, pid_t keeper)
{
    const whit_sandbox_command *command = plan->command;
    whit_bind_to_parent(SIGKILL, keeper);
    (void)setsid(); /* new session: no terminal, and the command leads the process group that is killed at its end */
    for (int signal_number = 1; signal_number < 32; signal_number++) signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(022);
    (void)put_text("/proc/self/oom_score_adj", "1000", 4); /* if memory runs out, the kernel kills this process first */
    if (chdir(command->folder) != 0) fail_step(plan, STEP_FOLDER);
    if (dup2(plan->empty, 0) < 0 || dup2(plan->output, 1) < 0 || dup2(plan->output, 2) < 0) fail_step(plan, STEP_START);
    if (!set_limits(plan->limits)) fail_step(plan, STEP_LIMITS);
    if (plan->ruleset >= 0) {
        drop_capabilities();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !whit_landlock_restrict(plan->ruleset))
            fail_step(plan, STEP_RESTRICT);
        int listener = whit_filter_install(&plan->program, true, false);
        if (listener < 0 || !send_descriptor(plan->listeners, listener)) fail_step(plan, STEP_FILTER);
        close(listener);
    }
    /* All descriptors above 2 are closed except the pipe for messages. It reports a program that cannot be executed; a
     * successful execve closes it. */
    int words = plan->words;
    if (words > 3) (void)syscall(CALL_CLOSE_RANGE, 3u, (unsigned)words - 1, 0u);
    (void)syscall(CALL_CLOSE_RANGE, (unsigned)words + 1, ~0u, 0u);
    execve(command->arguments[0], (char *const *)command->arguments, plan->environment);
    fail_step(plan, STEP_RUN);
}

/* The memory in which this process's command line is stored. /proc shows it to everybody who may see the process. */
typedef struct command_line {
    char *text;
    size_t n_bytes;
} command_line;

static command_line find_command_line(void)
{
    char text[2048];
    unsigned long bounds[2] = {0, 0};
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    /* The name of the program is in parentheses and may itself contain any character, so it ends at the last ")". */
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 48; field++) at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%lu %lu", &bounds[0], &bounds[1]) != 2 || bounds[1] < bounds[0]) return (command_line){0};
    return (command_line){(char *)(uintptr_t)bounds[0], bounds[1] - bounds[0]};
}

static void keep(const whit_child_plan *plan, int parent, command_line line)
{
    struct pollfd ended_before = {parent, POLLIN, 0};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (plan->has_namespaces && !make_view(plan)) {
        tell(plan, CHILD_NO_SPACES, errno, 0);
        _exit(0);
    }
    /* if the parent ended before the call of prctl, no signal comes, so this is checked here */
    if (poll(&ended_before, 1, 0) == 1) _exit(0);
    const pid_t keeper = getpid();
    int ready[2] = {-1, -1};
    (void)pipe2(ready, O_CLOEXEC);
    pid_t child = (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0, 0, 0, 0);
    if (child < 0) {
        tell(plan, CHILD_FAILED, errno, STEP_START);
        _exit(0);
    }
    if (child == 0) {
        char byte;
        close(ready[1]);
        while (read(ready[0], &byte, 1) < 0 && errno == EINTR) {
        }
        become_command(plan, keeper);
    }
    /* The command can see the keeper process. The keeper's command line, which may contain a task or an address, is
     * therefore cleared before the command starts. */
    if (line.n_bytes) memset(line.text, 0, line.n_bytes);
    close(ready[0]);
    close(ready[1]);
    /* Readers of a pipe wait until every writer has closed it, so the keeper must not hold it open. */
    close(plan->output);
    close(plan->listeners);
    tell(plan, CHILD_STARTED, child, 0);
    for (int status;;) {
        pid_t ended = waitpid(-1, &status, 0);
        if (ended != child && (ended > 0 || errno == EINTR)) continue;
        kill(-child, SIGKILL);
        tell(plan, CHILD_ENDED, status, 0);
        _exit(0); /* in a PID namespace the keeper is process 1, whose end ends all processes */
    }
}

pid_t whit_child_start(const whit_child_plan *plan)
{
    unsigned long spaces =
        plan->has_namespaces ? CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC : 0;
    /* After the fork the child polls this descriptor to see whether this process has ended. getppid would not tell,
     * since it is always 0 in a PID namespace. */
    const int self = (int)syscall(CALL_PIDFD_OPEN, getpid(), 0u);
    const command_line line = find_command_line();
    pid_t child = (pid_t)syscall(SYS_clone, spaces | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) keep(plan, self, line);
    int failed = errno;
    if (self >= 0) close(self);
    errno = failed;
    return child;
}
