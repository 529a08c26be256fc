/* SPDX-License-Identifier: MIT
 * Asks a question at the terminal and reads the line that a person types. */
#ifndef WHIT_BASE_TYPED_H
#define WHIT_BASE_TYPED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes a question of n_question bytes, which are safe for a terminal, and `mark` to the terminal, and reads the line
 * that is typed afterwards; earlier input is discarded, until none has come for 50 ms. `line` has room for `room`
 * bytes. Returns the number of bytes read; 0 at the terminal's end; -1 on failure, and after Ctrl-C or SIGTERM once its
 * handler has run. */
ssize_t whit_typed_ask(int terminal, const char *question, size_t n_question, const char *mark, char *line,
                       size_t room);
/* Discards input until none has come for 50 ms: what was typed or pasted before a question must not answer it. Returns
 * false on failure, and after Ctrl-C or SIGTERM once its handler has run. */
bool whit_typed_discard(int terminal);
/* Returns control sequences after which a terminal shows all of a text: with ASCII letters, in its own colours, with
 * the end of a long line in the next row, and with lines of usual width that begin at the left; the whole screen
 * scrolls, and is empty below the cursor. Another program may have left it so that parts are hidden. "" for a terminal
 * without such sequences. */
const char *whit_typed_plain(void);
/* Returns the number of columns of a terminal; 80 if it does not tell it, as on a serial line. */
unsigned whit_typed_columns(int terminal);
/* Returns the number of rows in which a terminal shows a text of whit_plain_for_terminal(), including the row after its
 * last line feed, if they do not fit on the screen; 0 if they fit. A terminal that does not tell its rows counts as
 * one with 24. */
size_t whit_typed_overflow(int terminal, const char *text, size_t n);
/* Returns whether bytes that were typed or pasted at the terminal have not been read yet. */
bool whit_typed_waits(int terminal);

#endif
