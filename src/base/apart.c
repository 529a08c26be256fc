/* SPDX-License-Identifier: MIT */
#include "base/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bound_child.h"
#include "base/clock.h"

#define CALL_CLOSE_RANGE 436

/* Reads the result from the pipe `fd`; false if the child closed the pipe, or patience_ms passed, before all
 * result_bytes were read. */
static bool read_result(int fd, char *result, size_t result_bytes, uint32_t patience_ms)
{
    const uint64_t begin = whit_now_ns();
    size_t n = 0;
    while (n < result_bytes) {
        const int64_t left = (int64_t)patience_ms - (int64_t)((whit_now_ns() - begin) / 1000000);
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        if (left <= 0) return false;
        if (poll(&wanted, 1, (int)left) <= 0) continue;
        ssize_t got = read(fd, result + n, result_bytes - n);
        if (got == 0 || (got < 0 && errno != EINTR)) return false;
        if (got > 0) n += (size_t)got;
    }
    return true;
}

whit_apart whit_run_apart(void (*work)(void *user), void *user, void *result, size_t result_bytes, uint32_t patience_ms)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0) return WHIT_APART_FAILED;
    pid_t child = whit_fork_bound(SIGKILL);
    if (child == 0) {
        /* The child closes every descriptor from 3 on but the result's pipe: other processes may wait for locks,
         * terminals and pipes that it would keep open. */
        if (ends[1] > 3) (void)syscall(CALL_CLOSE_RANGE, 3u, (unsigned)ends[1] - 1, 0u);
        (void)syscall(CALL_CLOSE_RANGE, (unsigned)ends[1] + 1, ~0u, 0u);
        work(user);
        _exit(write(ends[1], result, result_bytes) != (ssize_t)result_bytes);
    }
    int failure = errno;
    close(ends[1]);
    bool is_whole = child > 0 && read_result(ends[0], result, result_bytes, patience_ms);
    close(ends[0]);
    if (child > 0) kill(child, SIGKILL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    errno = failure;
    if (child < 0) return WHIT_APART_FAILED;
    return is_whole ? WHIT_APART_DONE : WHIT_APART_LATE;
}

static int watched_fd;

/* Handles SIGIO, which the kernel sends at each call of the reader, too. */
static void end_if_unread(int number)
{
    struct pollfd end = {.fd = watched_fd};
    (void)number;
    if (poll(&end, 1, 0) > 0) _exit(0);
}

void whit_end_with_reader(int fd)
{
    struct sigaction action = {.sa_handler = end_if_unread, .sa_flags = SA_RESTART};
    sigset_t none;
    sigemptyset(&none);
    watched_fd = fd;
    sigaction(SIGIO, &action, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)fcntl(fd, F_SETOWN, getpid());
    (void)fcntl(fd, F_SETFL, O_ASYNC);
    end_if_unread(0); /* the reader may have gone before */
}
