/* SPDX-License-Identifier: MIT
 * Runs lines of the system's shell, cmd.exe. */
#ifndef WHIT_BASE_WINDOWS_RUN_LINE_H
#define WHIT_BASE_WINDOWS_RUN_LINE_H

#include "base/mem.h"

typedef struct whit_run_line {
    const char *line;               /* command line as it would be typed at cmd.exe */
    const char *folder;             /* initial working folder */
    const char *home;               /* value of the command's HOME, USERPROFILE, TEMP and TMP */
    const char *const *environment; /* further variables "NAME=VALUE", ending with NULL; may be NULL */
    uint32_t wall_s, n_processes;   /* wall_s: limit of the run time in seconds, at least 1; n_processes: limit of
                                     * simultaneous processes, 0: no limit */
    uint64_t process_bytes;         /* limit of each process's memory; 0: no limit */
    uint64_t output_bytes;          /* limit of the stored output; further output is discarded */
    const volatile bool *cancel;    /* the command is ended when this flag becomes true; NULL: no flag */
} whit_run_line;

/* Zero-initialise it before the call; the caller frees `output`. */
typedef struct whit_run_line_result {
    int status;
    bool timed_out, was_cancelled, output_is_cut;
    whit_buf output; /* stdout and stderr of the command, mixed in the order of arrival */
} whit_run_line_result;

/* Runs a command line to its end, or until a limit or `cancel` ends it, with an empty stdin and only the variables of
 * `command` and of the system's folders; then ends all processes that it has started. Errors: argument (text that is
 * not UTF-8, too long, or more than one line), io, memory. A command that fails is not an error. */
whit_status whit_run_line_wait(const whit_run_line *command, whit_run_line_result *result, whit_error *error);

#endif
