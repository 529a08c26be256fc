/* SPDX-License-Identifier: MIT */
#include "base/piped.h"

#include "base/bound_child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 5 };

extern char **environ;

char *const *whit_own_variables(void)
{
    return environ;
}

static bool is_named(const char *variable, const char *change)
{
    const size_t n = strcspn(change, "=");
    return strncmp(variable, change, n) == 0 && variable[n] == '=';
}

/* Returns this process's environment with the changes applied: a malloc'd array that ends with NULL, whose strings
 * belong to the environment and to `changes`. NULL if memory runs out. */
static char **make_environment(const char *const *changes)
{
    size_t n = 0, n_all = 1;
    for (char **v = environ; *v; v++) n_all++;
    for (const char *const *c = changes; c && *c; c++) n_all++;
    char **all = malloc(n_all * sizeof *all);
    if (!all) return NULL;
    for (char **v = environ; *v; v++) {
        const char *const *c = changes;
        while (c && *c && !is_named(*v, *c)) c++;
        if (!c || !*c) all[n++] = *v;
    }
    for (const char *const *c = changes; c && *c; c++)
        if (strchr(*c, '=')) all[n++] = (char *)(uintptr_t)*c;
    all[n] = NULL;
    return all;
}

enum errors_go { ERRORS_NOWHERE, ERRORS_OWN, ERRORS_WITH_OUTPUT };

bool whit_find_program(const char *name, char path[WHIT_PROGRAM_BYTES])
{
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at; at += *at == ':') {
        const size_t n = strcspn(at, ":");
        const int length = snprintf(path, WHIT_PROGRAM_BYTES, "%.*s/%s", (int)n, at, name);
        struct stat about;
        if (*at == '/' && length > 0 && length < WHIT_PROGRAM_BYTES && access(path, X_OK) == 0 &&
            stat(path, &about) == 0 && S_ISREG(about.st_mode))
            return true;
        at += n;
    }
    return false;
}

/* Replaces the forked child by the program; calls only functions that are safe between fork and exec. The status is 127
 * on failure, also if `program` is "", which means that it was not found. */
static void become_program(const char *program, char *const *words, const char *folder, char **environment, int in,
                           int out, enum errors_go errors)
{
    sigset_t none;
    /* A program at the terminal stays in the caller's process group, because a background group could not read the
     * terminal. */
    if (errors != ERRORS_OWN) setpgid(0, 0);
    if (folder && chdir(folder)) _exit(127);
    int to = errors == ERRORS_WITH_OUTPUT ? out : STDERR_FILENO;
    if (errors == ERRORS_NOWHERE) to = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(to, STDERR_FILENO) < 0) _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL); /* the parent may ignore these signals, and exec would keep that */
    signal(SIGINT, SIG_DFL);
    environ = environment;
    execvp(program, words);
    _exit(127);
}

static whit_status start_program(whit_piped *child, char *const *words, const whit_piped_how *how,
                                 enum errors_go errors, whit_error *error)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    pid_t process = -1;
    char found[WHIT_PROGRAM_BYTES];
    const char *program = words[0];
    if (!strchr(program, '/')) program = whit_find_program(program, found) ? found : "";
    char **environment = make_environment(how->changes);
    *child = (whit_piped){.in = -1, .out = -1};
    if (!environment) return whit_fail_memory(error, words[0], 0);
    if (pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0) process = whit_fork_bound(SIGKILL);
    if (process == 0) become_program(program, words, how->folder, environment, to[0], from[1], errors);
    free(environment);
    whit_status status = process < 0 ? whit_fail_errno(error, words[0], "start") : WHIT_OK;
    if (to[0] >= 0) close(to[0]);
    if (from[1] >= 0) close(from[1]);
    if (status != WHIT_OK) {
        if (to[1] >= 0) close(to[1]);
        if (from[0] >= 0) close(from[0]);
        return status;
    }
    *child = (whit_piped){.process = process, .has_group = errors != ERRORS_OWN, .in = to[1], .out = from[0]};
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    fcntl(child->out, F_SETFL, O_NONBLOCK);
    return WHIT_OK;
}

whit_status whit_piped_start(whit_piped *child, char *const *words, const whit_piped_how *how, whit_error *error)
{
    return start_program(child, words, how, how->at_terminal ? ERRORS_OWN : ERRORS_NOWHERE, error);
}

whit_status whit_piped_start_line(whit_piped *child, const char *line, const char *folder, whit_error *error)
{
    char *words[] = {(char *)"/bin/sh", (char *)"-c", (char *)(uintptr_t)line, NULL};
    return start_program(child, words, &(whit_piped_how){.folder = folder}, ERRORS_WITH_OUTPUT, error);
}

size_t whit_piped_plain(char *text, size_t size_bytes)
{
    (void)text;
    return size_bytes;
}

void whit_piped_close_input(whit_piped *child)
{
    if (child->in >= 0) close(child->in);
    child->in = -1;
}

void whit_piped_kill(const whit_piped *child)
{
    if (!child->process) return;
    if (child->has_group) kill(-(pid_t)child->process, SIGKILL);
    kill((pid_t)child->process, SIGKILL); /* also if there is a group: the child may not have joined it yet */
}

/* Returns whether the child has ended. An ended child stays a zombie, so that its process and group numbers are not
 * reused. */
static bool has_ended(const whit_piped *child)
{
    siginfo_t about = {0};
    return waitid(P_PID, (id_t)child->process, &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid != 0;
}

int whit_piped_end(whit_piped *child, uint32_t patience_ms)
{
    int status = -1;
    if (!child->process) return -1;
    whit_piped_close_input(child);
    const pid_t asked = child->has_group ? -(pid_t)child->process : (pid_t)child->process;
    bool is_asked = false;
    for (uint32_t waited_ms = 0; waited_ms < patience_ms && !has_ended(child); waited_ms += LOOK_MS) {
        if (!is_asked && waited_ms >= patience_ms / 2) is_asked = kill(asked, SIGTERM) == 0;
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000L}, NULL);
    }
    const bool by_itself = has_ended(child);
    whit_piped_kill(child);
    while (waitpid((pid_t)child->process, &status, 0) < 0 && errno == EINTR) {
    }
    close(child->out);
    *child = (whit_piped){.in = -1, .out = -1};
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return by_itself && WIFSIGNALED(status) ? 128 + WTERMSIG(status) : -1;
}
