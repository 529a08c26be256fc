/* SPDX-License-Identifier: MIT
 * Reads lines of stdin for verbs that take one JSON object a line and print one a line (--jsonl). */
#ifndef WHIT_CLI_LINES_H
#define WHIT_CLI_LINES_H

#include "base/mem.h"
#include "cli/cli.h"

/* Holds a reader of lines; if zero-initialised, it reads stdin. */
typedef struct cli_reader {
    int fd;
    whit_buf bytes; /* limited in size if lines are bounded */
    size_t next;    /* offset of the next line */
    bool ended;
} cli_reader;

/* A read takes this number of bytes. */
enum { CLI_READER_BYTES = 65536 };
/* Returns 1 and a line without its line feed, valid until the next call; 0 at the end; -1 on failure or Ctrl-C (errno;
 * ENOMEM also above the limit of `bytes`). The last line may lack its line feed. */
int cli_reader_next(cli_reader *reader, const char **line, size_t *n_bytes);
void cli_reader_free(cli_reader *reader);

/* Functions of this type append the answer to a line (without its line feed; lines are not empty), with one line feed.
 * A failure ends the run; what the function appended is printed first. */
typedef whit_status cli_line_fn(void *user, const char *line, size_t n_bytes, whit_buf *out, whit_error *error);

/* Answers every line of stdin; each answer is flushed, so that a pipe can be interactive. The result is CLI_OK if every
 * line was answered. */
int cli_each_line(cli_call *call, cli_line_fn *answer, void *user);

#endif
