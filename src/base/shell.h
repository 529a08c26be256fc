/* SPDX-License-Identifier: MIT
 * Runs shell command lines that a person typed, and quotes words in them. */
#ifndef WHIT_BASE_SHELL_H
#define WHIT_BASE_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Runs a shell command line in a folder, with the caller's rights. On POSIX systems the environment variable
 * WHIT_AGENT_PROJECT of this process becomes the folder. The result reads the command's stdout and stderr; close it
 * with pclose(), which waits for the command's end. NULL, with errno, if the shell cannot be started. */
FILE *whit_shell_open(const char *folder, const char *line);
/* Runs a shell command line at the person's terminal and waits for its end. Appends the n_paths paths, except NULLs, to
 * the line as arguments; without a path that is not NULL nothing runs. Returns whether the line ran and ended with
 * status 0. Windows refuses paths with '%', '"' or line breaks, which its shell would interpret, and a line with line
 * breaks. */
bool whit_shell_at_terminal(const char *line, char *const *paths, size_t n_paths);
/* Returns a word that names this program in a shell command line that this process runs; the caller frees it. NULL on
 * failure. */
char *whit_shell_program(void);
/* Appends a text as one word of sh: in single quotes, with each ' as '\''. Returns false if memory runs out. */
static inline bool whit_shell_quote(whit_buf *line, const char *text)
{
    whit_buf_append(line, "'", 1);
    for (size_t n; n = strcspn(text, "'"), text[n]; text += n + 1) {
        whit_buf_append(line, text, n);
        whit_buf_append_str(line, "'\\''");
    }
    whit_buf_append_str(line, text);
    return whit_buf_append(line, "'", 1);
}

#endif
