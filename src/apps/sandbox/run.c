/* SPDX-License-Identifier: MIT
 * Runs a command in the sandbox and ends its remaining processes afterwards. */
#include "sandbox/child.h"
#include "sandbox/quota.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/items.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS   1000000000ull
#define LOOK_NS     (SECOND_NS / 5) /* time between two checks of the resources that all processes use together */
#define VARIABLES   64
#define NO_LANDLOCK "the kernel has no Landlock (or it is not among the security modules that it was started with)"
#define NO_SECCOMP  "libseccomp is missing, or the kernel takes no filters"

#define NO_CUTS                                                                                                        \
    "this user gets no name spaces, and without them only Landlock of Linux 6.2 or newer keeps a command from "        \
    "emptying files"
#define LANDLOCK_CUTS 3 /* first Landlock ABI that restricts truncate(); without it, only read-only mounts do */

struct run {
    const whit_sandbox_command *command;
    whit_sandbox_limits limits;
    whit_sandbox_result *result;
    whit_child_plan plan;
    whit_watch *watch;
    whit_quota *quota;
    whit_buf code;
    char *variables[VARIABLES];
    size_t n_variables;
    int words[2], output[2], listeners[2], listener;
    pid_t keeper, group;
    bool ended, no_spaces;
};

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static bool add_variable(struct run *r, const char *name, const char *value)
{
    if (r->n_variables + 1 == VARIABLES) return false;
    return asprintf(&r->variables[r->n_variables++], "%s%s", name, value) > 0;
}

static whit_status make_environment(struct run *r, whit_error *error)
{
    const whit_sandbox_command *command = r->command;
    bool ok = add_variable(r, "PATH=", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") &&
        add_variable(r, "HOME=", command->home) && add_variable(r, "TMPDIR=", command->home) &&
        add_variable(r, "LANG=", "C.UTF-8") && add_variable(r, "TERM=", "dumb");
    for (const char *const *p = command->environment; ok && p && *p; p++) ok = add_variable(r, "", *p);
    r->plan.environment = r->variables;
    return ok ? WHIT_OK
              : whit_fail(error, WHIT_ERROR_LIMIT, "the command has more than %d environment variables, the limit",
                          VARIABLES - 1);
}

static whit_status make_walls(struct run *r, bool has_namespaces, whit_error *error)
{
    const whit_sandbox_rules *rules = &r->command->rules;
    whit_filter_wants wants = {
        .is_watched = true, .has_namespaces = has_namespaces, .may_connect = rules->may_connect, .may_start = true};
    close_fd(&r->plan.ruleset);
    r->code.size_bytes = 0;
    r->plan.has_namespaces = has_namespaces;
    r->result->is_spaced = has_namespaces;
    if (r->command->is_unconfined) return WHIT_OK;
    if (!has_namespaces && whit_landlock_abi() < LANDLOCK_CUTS)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, NO_CUTS);
    WHIT_TRY(whit_landlock_make(rules, true, &r->plan.ruleset, error));
    WHIT_TRY(whit_filter_make(&wants, &r->code, error));
    r->plan.program = (struct sock_fprog){(unsigned short)(r->code.size_bytes / sizeof(struct sock_filter)),
                                          WHIT_ITEMS(struct sock_filter, &r->code)};
    return WHIT_OK;
}

static whit_status open_pipes(struct run *r, whit_error *error)
{
    bool ok = pipe2(r->words, O_CLOEXEC) == 0 && pipe2(r->output, O_CLOEXEC) == 0 &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, r->listeners) == 0 &&
        (r->plan.empty = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    if (!ok) return whit_fail_errno(error, "a command", "open its pipes");
    r->plan.words = r->words[1];
    r->plan.output = r->output[1];
    r->plan.listeners = r->listeners[1];
    return WHIT_OK;
}

static void close_pipes(struct run *r)
{
    for (int i = 0; i < 2; i++) {
        close_fd(&r->words[i]);
        close_fd(&r->output[i]);
        close_fd(&r->listeners[i]);
    }
    close_fd(&r->plan.empty);
    close_fd(&r->listener);
}

static int receive_descriptor(int socket)
{
    char byte;
    int fd = -1;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

static void end_all(struct run *r)
{
    if (r->group > 0 && !r->plan.has_namespaces) kill(-r->group, SIGKILL);
    if (r->plan.has_namespaces) kill(r->keeper, SIGKILL);
}

/* Reads the keeper's next message and records it in `r`; returns false at the end of the pipe. */
static bool take_word(struct run *r, whit_status *status, whit_error *error)
{
    whit_child_word word;
    ssize_t got = read(r->words[0], &word, sizeof word);
    if (got != (ssize_t)sizeof word) return got < 0 && errno == EINTR;
    switch (word.kind) {
    case CHILD_STARTED: r->group = word.value; break;
    case CHILD_NO_SPACES: r->no_spaces = true; break;
    case CHILD_FAILED:
        errno = word.value;
        *status = whit_fail_errno(error, r->command->arguments[0], whit_child_steps[word.step]);
        break;
    case CHILD_ENDED:
        r->ended = true;
        r->result->status = WIFEXITED(word.value) ? WEXITSTATUS(word.value) : -1;
        r->result->signal = WIFSIGNALED(word.value) ? WTERMSIG(word.value) : 0;
        break;
    }
    return true;
}

/* Reads a piece of the output, and stores as much of it as output_bytes allows; returns false at the end of the
 * output. */
static bool take_output(struct run *r)
{
    char piece[65536];
    ssize_t got = read(r->output[0], piece, sizeof piece);
    if (got <= 0) return got < 0 && (errno == EINTR || errno == EAGAIN);
    size_t room = (size_t)r->limits.output_bytes - r->result->output.size_bytes;
    if ((size_t)got > room) r->result->output_is_cut = true;
    whit_buf_append(&r->result->output, piece, (size_t)got < room ? (size_t)got : room);
    return true;
}

static whit_status attend(struct run *r, whit_error *error)
{
    const uint64_t start = whit_now_ns(), end = start + r->limits.wall_s * SECOND_NS;
    uint64_t kill_at = end, look_at = start + LOOK_NS;
    whit_status status = WHIT_OK;
    while (r->words[0] >= 0 || r->output[0] >= 0) {
        struct pollfd look[4] = {{r->words[0], POLLIN, 0},
                                 {r->output[0], POLLIN, 0},
                                 {r->listeners[0], POLLIN, 0},
                                 {r->listener, POLLIN, 0}};
        uint64_t now = whit_now_ns();
        bool cancelled = whit_flag_is_set(r->command->cancel);
        if (now >= look_at && !*r->result->over) {
            if (!whit_quota_holds(r->quota, r->keeper, r->result->over, sizeof r->result->over)) kill_at = now;
            look_at = whit_now_ns() + LOOK_NS;
        }
        if (now >= kill_at || cancelled) {
            r->result->timed_out = r->result->timed_out || now >= end;
            r->result->was_cancelled = r->result->was_cancelled || cancelled;
            end_all(r);
            /* The next round kills again, because the command may not have reported its process number yet. */
            kill_at = now + SECOND_NS / 10;
        }
        if (poll(look, 4, 100) < 0 && errno != EINTR) return whit_fail_errno(error, "a command", "wait for its output");
        if (look[2].revents) {
            r->listener = receive_descriptor(r->listeners[0]);
            if (r->listener >= 0) whit_watch_begin(r->listener);
            close_fd(&r->listeners[0]);
        }
        if ((look[3].revents & POLLIN) && !whit_watch_answer(r->watch, r->listener, r->result)) close_fd(&r->listener);
        if ((look[3].revents & POLLHUP) && !(look[3].revents & POLLIN)) close_fd(&r->listener);
        if (look[1].revents && !take_output(r)) close_fd(&r->output[0]);
        if (look[0].revents && !take_word(r, &status, error)) close_fd(&r->words[0]);
        /* Without this, a process that has left its group could keep the output open for ever. */
        if (r->words[0] < 0 && r->output[0] >= 0 && !look[1].revents) break;
    }
    r->result->wall_ns = whit_now_ns() - start;
    return status;
}

static whit_status start_run(struct run *r, whit_error *error)
{
    r->ended = r->no_spaces = false;
    r->group = 0;
    WHIT_TRY(open_pipes(r, error));
    r->keeper = whit_child_start(&r->plan);
    if (r->keeper < 0 && r->plan.has_namespaces) {
        r->no_spaces = true;
        return WHIT_OK;
    }
    if (r->keeper < 0) return whit_fail_errno(error, r->command->arguments[0], "start");
    close_fd(&r->words[1]);
    close_fd(&r->output[1]);
    close_fd(&r->listeners[1]);
    whit_status status = attend(r, error);
    int ignored;
    while (waitpid(r->keeper, &ignored, 0) < 0 && errno == EINTR) {
    }
    if (status == WHIT_OK && !r->ended && !r->no_spaces) { /* the keeper was killed before it reported the end */
        r->result->status = -1;
        r->result->signal = SIGKILL;
    }
    return status;
}

void whit_sandbox_shell(const char *line, const char *arguments[4])
{
    arguments[0] = "/bin/sh", arguments[1] = "-c", arguments[2] = line, arguments[3] = NULL;
}

static void fill_limits(whit_sandbox_limits *limits)
{
    if (!limits->wall_s) limits->wall_s = 600;
    if (!limits->cpu_s) limits->cpu_s = limits->wall_s;
    if (!limits->memory_bytes) limits->memory_bytes = (uint64_t)16 << 30;
    if (!limits->file_bytes) limits->file_bytes = (uint64_t)2 << 30;
    if (!limits->n_processes) limits->n_processes = 512;
    if (!limits->total_memory_bytes) limits->total_memory_bytes = whit_quota_memory_default();
    if (!limits->disk_bytes) limits->disk_bytes = (uint64_t)32 << 30;
    if (!limits->output_bytes) limits->output_bytes = 1 << 20;
}

whit_status whit_sandbox_run(const whit_sandbox_command *command, whit_sandbox_result *result, whit_error *error)
{
    struct run r = {.command = command,
                    .limits = command->limits,
                    .result = result,
                    .words = {-1, -1},
                    .output = {-1, -1},
                    .listeners = {-1, -1},
                    .listener = -1,
                    .plan = {.command = command, .ruleset = -1, .empty = -1, .user = geteuid(), .group = getegid()}};
    r.plan.limits = &r.limits;
    fill_limits(&r.limits);
    whit_status status = whit_watch_open(&command->rules, &r.watch, error);
    if (status == WHIT_OK) status = make_environment(&r, error);
    r.quota = whit_quota_open(&command->rules, &r.limits);
    if (status == WHIT_OK && !r.quota) status = whit_fail_memory(error, "a command's limits", 0);
    if (status == WHIT_OK) status = make_walls(&r, !command->is_unconfined && !command->no_namespaces, error);
    if (status == WHIT_OK) status = start_run(&r, error);
    if (status == WHIT_OK && r.no_spaces) {
        close_pipes(&r);
        status = make_walls(&r, false, error);
        if (status == WHIT_OK) status = start_run(&r, error);
    }
    close_pipes(&r);
    close_fd(&r.plan.ruleset);
    for (size_t i = 0; i < r.n_variables; i++) free(r.variables[i]);
    whit_buf_free(&r.code);
    whit_watch_close(r.watch);
    whit_quota_close(r.quota);
    if (status == WHIT_OK && (result->output.failed || result->refused.failed))
        status = whit_fail_memory(error, "a command's output", result->output.size_bytes);
    return status;
}

void whit_sandbox_result_free(whit_sandbox_result *result)
{
    whit_buf_free(&result->output);
    whit_buf_free(&result->refused);
}

void whit_sandbox_probe(whit_sandbox_support *support)
{
    static const char *const arguments[] = {"/bin/true", NULL}, *const folders[] = {NULL};
    whit_sandbox_command command = {
        .arguments = arguments, .folder = "/", .home = "/", .rules = {.write = folders}, .limits = {.wall_s = 10}};
    whit_sandbox_result result = {0};
    whit_error error;
    *support = (whit_sandbox_support){.landlock_abi = whit_landlock_abi()};
    if (!support->landlock_abi || !whit_filter_is_here()) return;
    support->holds = whit_sandbox_run(&command, &result, &error) == WHIT_OK && result.status == 0;
    /* Before LANDLOCK_CUTS the test command may have failed for lack of Landlock rights, which says nothing about
     * filters. */
    support->seccomp = support->holds || support->landlock_abi < LANDLOCK_CUTS;
    support->namespaces = support->holds && result.is_spaced;
    whit_sandbox_result_free(&result);
}

const char *whit_sandbox_lacks(const whit_sandbox_support *support)
{
    if (!support->landlock_abi) return NO_LANDLOCK;
    if (support->holds) return NULL;
    return support->seccomp ? NO_CUTS : NO_SECCOMP;
}

const char *whit_sandbox_misses(const whit_sandbox_support *support)
{
    if (!whit_quota_is_counted())
        return "there is no /proc here: what the processes of a command use together is not limited";
    if (support->namespaces) return NULL;
    return "this user gets no name spaces: commands are confined by Landlock and filters only";
}

whit_status whit_sandbox_enter(const whit_sandbox_rules *rules, whit_error *error)
{
    whit_filter_wants wants = {
        .has_namespaces = true, .may_connect = rules->may_connect, .may_start = rules->may_start};
    whit_buf code = {0};
    int ruleset = -1;
    whit_status status = whit_landlock_make(rules, false, &ruleset, error);
    if (status == WHIT_OK) status = whit_filter_make(&wants, &code, error);
    struct sock_fprog program = {(unsigned short)(code.size_bytes / sizeof(struct sock_filter)),
                                 WHIT_ITEMS(struct sock_filter, &code)};
    if (status == WHIT_OK &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !whit_landlock_restrict(ruleset) ||
         whit_filter_install(&program, false, true) != 0))
        status = whit_fail_errno(error, "the sandbox", "restrict this process");
    whit_buf_free(&code);
    close_fd(&ruleset);
    return status;
}
