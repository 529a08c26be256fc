/* SPDX-License-Identifier: MIT
 * Reads lines from the user: if stdin and stdout are a terminal, with a line editor and history (libedit).
 *
 * The history is a text file in the user's state folder, which only its owner can read, with one message per line. A
 * line is appended as soon as it is typed, so that several chats may share the file, which is locked meanwhile and
 * while it is shortened. A pasted message with line feeds is not appended. */
#ifndef WHIT_CLI_INPUT_H
#define WHIT_CLI_INPUT_H

#include "cli/cli.h"

typedef struct cli_input cli_input;

typedef enum cli_line {
    CLI_LINE_READ,
    CLI_LINE_END,         /* end of the input, also by Ctrl-D */
    CLI_LINE_INTERRUPTED, /* Ctrl-C or SIGTERM */
    CLI_LINE_FAILED,      /* reading has failed; see errno */
} cli_line;

/* Opens the input; returns NULL if memory runs out. keep_history false: the history file is neither read nor
 * written. */
cli_input *cli_input_open(bool keep_history);
/* Sets the words that Tab completes at the beginning of a line, such as "/set". The last item is NULL. The list is not
 * copied. */
void cli_input_words(cli_input *input, const char *const *words);
void cli_input_close(cli_input *input);

/* Reads the next line, without its line feed; it is valid until the next call. On a terminal the prompt is shown. */
cli_line cli_input_next(cli_input *input, const char *prompt, const char **line, size_t *n_bytes);

/* Returns whether the line of the last call was typed after its prompt, or pasted there as one message. The result is
 * false if it had arrived earlier, or if there is no line editor, which tells a paste from typing: such a line may be
 * one of a pasted text that nobody has read. */
bool cli_input_is_typed(const cli_input *input);
/* Returns whether the line of the last call, or a line before it, had arrived at the terminal before its prompt: it may
 * be a line of a text that was pasted at an earlier prompt or question. */
bool cli_input_is_early(const cli_input *input);
/* Returns whether stdin is a terminal, so that the user can retry after a mistake. */
bool cli_input_is_terminal(const cli_input *input);

#endif
