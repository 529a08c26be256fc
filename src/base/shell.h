/* SPDX-License-Identifier: MIT
 * Runs shell command lines that a person typed. */
#ifndef WHIT_BASE_SHELL_H
#define WHIT_BASE_SHELL_H

#include <stdio.h>

/* Runs a line of the system's shell in a folder, with the caller's rights; its stdout and stderr can be read. pclose()
 * waits for its end. NULL, with errno, if it cannot be started. */
FILE *whit_shell_open(const char *folder, const char *line);

#endif
