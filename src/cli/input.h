/* SPDX-License-Identifier: MIT
 * Lines that a person types: with editing and history (libedit) where stdin and stdout are a
 * terminal, else as they come.
 *
 * The history is a text file of one line each in the user's state folder, readable by its owner
 * alone; every line is appended as it is typed, so that several chats may share it. */
#ifndef WHIT_CLI_INPUT_H
#define WHIT_CLI_INPUT_H

#include "cli/cli.h"

typedef struct cli_input cli_input;

typedef enum cli_line {
    CLI_LINE_READ,
    CLI_LINE_END,         /* of the input, or Ctrl-D */
    CLI_LINE_INTERRUPTED, /* Ctrl-C or SIGTERM */
    CLI_LINE_FAILED,      /* errno */
} cli_line;

/* NULL where memory is short. With `keep_history` false the file is neither read nor written. */
cli_input *cli_input_open(bool keep_history);
void cli_input_close(cli_input *input);

/* The next line without its line feed, valid until the next; the prompt is shown on a terminal. */
cli_line cli_input_next(cli_input *input, const char *prompt, const char **line, size_t *n_bytes);

/* Is a person there, who can be asked again after a mistake? */
bool cli_input_is_terminal(const cli_input *input);

#endif
