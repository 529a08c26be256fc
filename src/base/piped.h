/* SPDX-License-Identifier: MIT
 * Runs a program as a child process and exchanges data with it through pipes: a language server, a shell command. */
#ifndef WHIT_BASE_PIPED_H
#define WHIT_BASE_PIPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A program that was started. Zero-initialised it means no program, which only whit_piped_kill and whit_piped_end
 * accept. */
typedef struct whit_piped {
    int64_t process; /* 0: no process */
    void *job;       /* Windows: the handles of the job that contains all of the program's processes, and of the
                      * program's process */
    bool has_group;  /* the program leads its own process group */
    int in, out;     /* this process's ends of the pipes to the program's stdin and from its stdout, non-blocking;
                      * -1: closed */
} whit_piped;

/* Options for starting a program. If all are zero, the program gets the working folder and the environment variables of
 * this process, and its stderr is discarded. */
typedef struct whit_piped_how {
    const char *folder;         /* working folder; NULL: this process's */
    const char *const *changes; /* changes to this process's environment variables, ending with NULL: NAME=VALUE sets
                                 * a variable, NAME removes it */
    /* The program gets this process's stderr and process group, so that it can ask questions at the terminal. Processes
     * that it starts are then not killed with it (on Windows they are). */
    bool at_terminal;
} whit_piped_how;

#define WHIT_PROGRAM_BYTES 4096
/* Finds a program in the absolute folders of PATH (/usr/bin and /bin if it is not set); relative folders are skipped,
 * because they could be the project's. The result is false if there is no such program, and always on Windows. */
bool whit_find_program(const char *name, char path[WHIT_PROGRAM_BYTES]);
/* Returns this process's environment variables, "NAME=VALUE" each, and NULL at the end. They are valid until one is
 * changed. */
char *const *whit_own_variables(void);
/* Starts words[0] with the words that follow; `words` ends with NULL. A name without a slash is searched for as
 * whit_find_program does. The program is killed when the thread that started it ends. If the program cannot be
 * executed, its exit status is 127. On Windows, instead, cmd.exe searches for the program, its processes end with the
 * caller's process, and words that are not UTF-8 or too long are an error. Errors: io, memory, argument (Windows). */
whit_status whit_piped_start(whit_piped *child, char *const *words, const whit_piped_how *how, whit_error *error);
/* Starts a command line with the system's shell; its stderr is merged into its stdout. */
whit_status whit_piped_start_line(whit_piped *child, const char *line, const char *folder, whit_error *error);
/* Converts the line ends that this system's shell writes to '\n', in place; returns the new size. */
size_t whit_piped_plain(char *text, size_t size_bytes);
void whit_piped_close_input(whit_piped *child);
/* Kills the program at once and, if it leads a group (on Windows always), the processes that it has started;
 * whit_piped_end must still be called. */
void whit_piped_kill(const whit_piped *child);
/* Closes the program's input and waits up to patience_ms for the program to end; after half of that time sends SIGTERM
 * (not on Windows). Then kills the processes that still run, and releases `child`. Returns the program's exit status,
 * 128 + N if signal N ended it, or -1 if it had to be killed or `child` is not running. */
int whit_piped_end(whit_piped *child, uint32_t patience_ms);

#endif
