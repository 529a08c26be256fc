/* SPDX-License-Identifier: MIT
 * Reads lines of stdin, and answers them for verbs that read and write one JSON object per line (--jsonl). */
#ifndef WHIT_CLI_LINES_H
#define WHIT_CLI_LINES_H

#include "base/mem.h"
#include "cli/cli.h"

/* A reader of lines from a descriptor; zero-initialised, it reads stdin. */
typedef struct cli_reader {
    int fd;
    whit_buf bytes; /* bytes read so far; a limit on its size is also the limit of a line */
    size_t next;    /* offset of the next line */
    bool ended;
} cli_reader;

/* Number of bytes per read. */
enum { CLI_READER_BYTES = 65536 };
/* Sets *line to the next line, without its line feed, and returns 1; the line is valid until the next call. Returns 0
 * at the end, and -1 with errno after a failure or Ctrl-C; ENOMEM also means that a line exceeds the limit of `bytes`.
 * The last line may lack its line feed. */
int cli_reader_next(cli_reader *reader, const char **line, size_t *n_bytes);
void cli_reader_free(cli_reader *reader);

/* Type of functions that append the answer to a line, ending in one line feed. The line is not empty and has no line
 * feed. A failure ends the run, but what the function has appended is still printed. */
typedef whit_status cli_line_fn(void *user, const char *line, size_t n_bytes, whit_buf *out, whit_error *error);

/* Answers every line of stdin that is not empty. Each answer is flushed, so that another program can wait for it.
 * Returns CLI_OK if every line was answered. */
int cli_each_line(cli_call *call, cli_line_fn *answer, void *user);

#endif
