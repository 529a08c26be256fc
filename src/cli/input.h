/* SPDX-License-Identifier: MIT
 * Reads lines that a person types: with editing and history (libedit) if stdin and stdout are a terminal, else plainly.
 *
 * The history is a text file of one line each in the user's state folder, readable by its owner alone; every line is
 * appended as it is typed, so that several chats may share it. */
#ifndef WHIT_CLI_INPUT_H
#define WHIT_CLI_INPUT_H

#include "cli/cli.h"

typedef struct cli_input cli_input;

typedef enum cli_line {
    CLI_LINE_READ,
    CLI_LINE_END,         /* end of the input, or Ctrl-D */
    CLI_LINE_INTERRUPTED, /* Ctrl-C or SIGTERM */
    CLI_LINE_FAILED,      /* see errno */
} cli_line;

/* Opens the input; NULL if out of memory. With `keep_history` false the history file is neither read nor written. */
cli_input *cli_input_open(bool keep_history);
/* Sets the words that Tab completes at the beginning of a line, such as "/set". The list ends with NULL and is not
 * copied. */
void cli_input_words(cli_input *input, const char *const *words);
void cli_input_close(cli_input *input);

/* Reads the next line, without its line feed, valid until the next call; the prompt is shown on a terminal. */
cli_line cli_input_next(cli_input *input, const char *prompt, const char **line, size_t *n_bytes);

/* Returns whether input is interactive, so that a person can retry after a mistake. */
bool cli_input_is_terminal(const cli_input *input);

#endif
