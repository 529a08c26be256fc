/* SPDX-License-Identifier: MIT
 * Runs work in a separate process for a bounded time. This is for libraries that open paths, because opening a pipe
 * instead of a file could block the caller forever. */
#ifndef WHIT_BASE_APART_H
#define WHIT_BASE_APART_H

#include <stddef.h>
#include <stdint.h>

typedef enum whit_apart {
    WHIT_APART_DONE,
    WHIT_APART_LATE,  /* the child ended before its result was complete, or exceeded patience_ms */
    WHIT_APART_FAILED /* the child could not be started; errno says why */
} whit_apart;

/* Forks a child, which calls `work(user)` and then sends the result_bytes at `result`, which `work` has filled; the
 * caller receives them at the same address. The child is killed when they have arrived, after patience_ms, or when the
 * calling thread ends. It closes its descriptors except stdin, stdout, stderr and the result's pipe. result_bytes is at
 * most the capacity of a pipe (64 KiB). */
whit_apart whit_run_apart(void (*work)(void *user), void *user, void *result, size_t result_bytes,
                          uint32_t patience_ms);

/* Lets this process end when the pipe `fd`, to which it writes, has no reader any more, also while it waits in a call.
 * Sets the handler of SIGIO, and unblocks all signals. */
void whit_end_with_reader(int fd);

#endif
