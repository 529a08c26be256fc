/* SPDX-License-Identifier: MIT
 * Runs work in a separate process for a bounded time: for libraries that open the paths they are given, because opening
 * a pipe in place of a file could block the caller for ever. */
#ifndef WHIT_BASE_APART_H
#define WHIT_BASE_APART_H

#include <stddef.h>
#include <stdint.h>

typedef enum whit_apart {
    WHIT_APART_DONE,
    WHIT_APART_LATE,  /* the child ended before its result was complete, or exceeded its time */
    WHIT_APART_FAILED /* the child could not be started: errno */
} whit_apart;

/* Forks, calls `work(user)` there, and copies the result_bytes at `result`, which `work` has filled, to the same place
 * here. The process is killed after patience_ms, and when the caller ends; of open files it keeps the result's pipe
 * alone. result_bytes is at most what a pipe holds (64 KiB). */
whit_apart whit_run_apart(void (*work)(void *user), void *user, void *result, size_t result_bytes,
                          uint32_t patience_ms);

#endif
