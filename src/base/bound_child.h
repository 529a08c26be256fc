/* SPDX-License-Identifier: MIT
 * Starts child processes that end with their parent (Linux). The functions are inline, because the library itself
 * starts no process. */
#ifndef WHIT_BASE_BOUND_CHILD_H
#define WHIT_BASE_BOUND_CHILD_H

#include <sys/prctl.h>
#include <unistd.h>

/* Binds a new process to its parent; call it before the process does anything else. The kernel sends the process
 * `end_signal` when the thread of `parent` that forked it ends. If `parent` has already ended, or the kernel refuses,
 * the process exits at once with status 127. The function is safe between fork and exec. */
static inline void whit_bind_to_parent(int end_signal, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, end_signal, 0, 0, 0) != 0 || getppid() != parent) _exit(127);
}

/* Calls fork(), binds the child to this process, and returns fork's result. */
static inline pid_t whit_fork_bound(int end_signal)
{
    const pid_t parent = getpid(), child = fork();
    if (child == 0) whit_bind_to_parent(end_signal, parent);
    return child;
}

#endif
