/* SPDX-License-Identifier: MIT
 * Runs a program beside this one and talks to it through pipes: a language server, a command of the shell. */
#ifndef WHIT_BASE_PIPED_H
#define WHIT_BASE_PIPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Holds a program that was started; zero-initialise it. */
typedef struct whit_piped {
    int64_t process; /* 0: no process */
    void *job;       /* Windows: the job that contains all its processes, and its process handle */
    bool has_group;  /* the program leads its own process group */
    int in, out;     /* input and output of the running program, non-blocking; -1: closed */
} whit_piped;

/* Says how a program is started. If all is zero, the program gets the folder and the variables of this process, and its
 * stderr is dropped. */
typedef struct whit_piped_how {
    const char *folder;         /* NULL: this process's */
    const char *const *changes; /* changes to this process's variables, then NULL: NAME=VALUE sets one, NAME removes
                                 * one */
    /* Its stderr and process group are this process's, so that it can ask questions at the terminal; the processes
     * that it starts then do not end with it (on Windows they do). */
    bool at_terminal;
} whit_piped_how;

#define WHIT_PROGRAM_BYTES 4096
/* Finds a program in the absolute folders of PATH, because relative folders could be the project's. The result is false
 * if it is not there, and always on Windows. */
bool whit_find_program(const char *name, char path[WHIT_PROGRAM_BYTES]);
/* Starts words[0] with the words that follow; `words` ends with NULL. A name without a slash is looked for as
 * whit_find_program does. The program and what it has started end with the thread that starts it. A program that cannot
 * be executed ends with status 127. Errors: io, memory. */
whit_status whit_piped_start(whit_piped *child, char *const *words, const whit_piped_how *how, whit_error *error);
/* Starts a command line of the system's shell, whose stderr is merged into its output. */
whit_status whit_piped_start_line(whit_piped *child, const char *line, const char *folder, whit_error *error);
/* Turns the line ends that this system's shell writes into '\n', in place; returns the size that is left. */
size_t whit_piped_plain(char *text, size_t size_bytes);
void whit_piped_close_input(whit_piped *child);
/* Kills the program and the processes that it started, at once; whit_piped_end must still be called. */
void whit_piped_kill(const whit_piped *child);
/* Closes the program's input and waits up to patience_ms for its end; after half of that time the program is asked to
 * end (SIGTERM; not on Windows). Then ends its processes that still run, and releases it. Returns its exit status, or
 * 128 and the signal that ended it; -1 if it did not end by itself. */
int whit_piped_end(whit_piped *child, uint32_t patience_ms);

#endif
