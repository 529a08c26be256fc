/* SPDX-License-Identifier: MIT
 * Reads a line that a person types at a question. */
#ifndef WHIT_BASE_TYPED_H
#define WHIT_BASE_TYPED_H

#include <stddef.h>
#include <sys/types.h>

/* Writes a question of n_question bytes, which are safe for a terminal, and `mark` to the terminal, and reads the line
 * that is typed then; input that was typed before does not answer. Returns its bytes; 0 at the terminal's end, -1
 * after a failure and at Ctrl-C or SIGTERM, whose handler has run. */
ssize_t whit_typed_ask(int terminal, const char *question, size_t n_question, const char *mark, char *line,
                       size_t room);

#endif
