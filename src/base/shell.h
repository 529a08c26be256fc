/* SPDX-License-Identifier: MIT
 * Runs shell command lines that a person typed. */
#ifndef WHIT_BASE_SHELL_H
#define WHIT_BASE_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Runs a line of the system's shell in a folder, with the caller's rights; its stdout and stderr can be read. pclose()
 * waits for its end. The result is NULL, with errno, if the shell cannot be started. */
FILE *whit_shell_open(const char *folder, const char *line);
/* Runs a line of the system's shell at the person's terminal, and waits for its end. The paths (n_paths) that are not
 * NULL follow the line as arguments. Returns whether the line ended with status 0. Windows refuses paths with '%' or
 * '"', which its shell would expand. */
bool whit_shell_at_terminal(const char *line, char *const *paths, size_t n_paths);
/* Returns this program as a word of such a line, to be freed; NULL on failure. */
char *whit_shell_program(void);

#endif
