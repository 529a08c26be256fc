/* SPDX-License-Identifier: MIT */
#include "base/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 5 };

/* In the child: only what may be called between fork and exec. `errors` -1: to nowhere. */
static void become_program(char *const *words, const char *folder, int in, int out, int errors, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || chdir(folder)) _exit(127);
    if (errors < 0) errors = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0) _exit(127);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    execvp(words[0], words);
    _exit(127);
}

static whit_status start_program(whit_piped *child, char *const *words, const char *folder, bool has_errors,
                                 whit_error *error)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    const pid_t parent = getpid();
    pid_t process = -1;
    *child = (whit_piped){.in = -1, .out = -1};
    if (pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0) process = fork();
    if (process == 0) become_program(words, folder, to[0], from[1], has_errors ? from[1] : -1, parent);
    whit_status status = process < 0 ? whit_fail_errno(error, words[0], "start") : WHIT_OK;
    if (to[0] >= 0) close(to[0]);
    if (from[1] >= 0) close(from[1]);
    if (status != WHIT_OK) {
        if (to[1] >= 0) close(to[1]);
        if (from[0] >= 0) close(from[0]);
        return status;
    }
    *child = (whit_piped){.process = process, .in = to[1], .out = from[0]};
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    fcntl(child->out, F_SETFL, O_NONBLOCK);
    return WHIT_OK;
}

whit_status whit_piped_start(whit_piped *child, char *const *words, const char *folder, whit_error *error)
{
    return start_program(child, words, folder, false, error);
}

whit_status whit_piped_start_line(whit_piped *child, const char *line, const char *folder, whit_error *error)
{
    char *words[] = {(char *)"/bin/sh", (char *)"-c", (char *)(uintptr_t)line, NULL};
    return start_program(child, words, folder, true, error);
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
    kill(-(pid_t)child->process, SIGKILL);
    kill((pid_t)child->process, SIGKILL); /* it may not have its group yet */
}

/* Has it ended? It stays a zombie, so that its number, and its group's, are those of no other. */
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
    for (uint32_t waited_ms = 0; waited_ms < patience_ms && !has_ended(child); waited_ms += LOOK_MS)
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000L}, NULL);
    whit_piped_kill(child);
    while (waitpid((pid_t)child->process, &status, 0) < 0 && errno == EINTR) {
    }
    close(child->out);
    *child = (whit_piped){.in = -1, .out = -1};
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
