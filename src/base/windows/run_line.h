/* SPDX-License-Identifier: MIT
 * Runs lines of the system's shell, cmd.exe. */
#ifndef WHIT_BASE_WINDOWS_RUN_LINE_H
#define WHIT_BASE_WINDOWS_RUN_LINE_H

#include "base/mem.h"

typedef struct whit_run_line {
    const char *line;               /* the line as typed at cmd.exe */
    const char *folder;             /* initial working folder */
    const char *home;               /* HOME, USERPROFILE, TEMP and TMP */
    const char *const *environment; /* further "NAME=VALUE", ended by NULL; may be NULL */
    uint32_t wall_s, n_processes;   /* limits of the time and of the processes that run at once */
    uint64_t process_bytes;         /* limit of the memory of each process */
    uint64_t output_bytes;          /* limit of the stored output; further output is read and dropped */
    const volatile bool *cancel;    /* NULL: never */
} whit_run_line;

/* Zero-initialise; the caller frees `output`. */
typedef struct whit_run_line_result {
    int status;
    bool timed_out, was_cancelled, output_is_cut;
    whit_buf output; /* stdout and stderr in the order of arrival */
} whit_run_line_result;

/* Runs a line to its end with an empty stdin and a clean environment, and ends all processes that it has left. Errors:
 * argument (a line or a name that is not UTF-8), io, memory. A line that fails is not an error. */
whit_status whit_run_line_wait(const whit_run_line *command, whit_run_line_result *result, whit_error *error);

#endif
