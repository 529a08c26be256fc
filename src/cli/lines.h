/* SPDX-License-Identifier: MIT
 * Verbs that take one JSON object a line on stdin and print one a line (--jsonl). */
#ifndef WHIT_CLI_LINES_H
#define WHIT_CLI_LINES_H

#include "base/mem.h"
#include "cli/cli.h"

/* Appends the answer to a line (without its line feed; lines are not empty), with one line feed.
 * A failure ends the run; what it appended is printed first. */
typedef whit_status cli_line_fn(void *user, const char *line, size_t n_bytes, whit_buf *out,
                                whit_error *error);

/* Until the end of stdin; every answer is flushed, so that a pipe can be a conversation. CLI_OK
 * where every line was answered. */
int cli_each_line(cli_call *call, cli_line_fn *answer, void *user);

#endif
