/* SPDX-License-Identifier: MIT
 * Makes consoles behave like xterm: keys are read as the bytes that xterm sends, and on consoles that do not understand
 * xterm's escape sequences this program interprets them (paint.c). */
#ifndef WHIT_BASE_WINDOWS_CONSOLE_H
#define WHIT_BASE_WINDOWS_CONSOLE_H

#include "wide.h"

#include <stdbool.h>

/* Maximum number of bytes that one record becomes: an escape sequence of xterm, or a UTF-8 character that Escape may
 * precede. */
#define WHIT_CONSOLE_KEY_BYTES 24

/* Writes the bytes that xterm would send for a record of the console's input; returns their number, 0 for a record
 * without bytes. For a change of the window's size it raises SIGWINCH. */
size_t whit_console_key(HANDLE output, const INPUT_RECORD *record, char bytes[WHIT_CONSOLE_KEY_BYTES]);
/* Examines written bytes for the escape sequences that turn mouse reports on or off, and changes the mode of the
 * console's input accordingly. */
void whit_console_ask_mouse(HANDLE input, const char *bytes, size_t n_bytes);

/* Writes at most a few thousand bytes, with escape sequences of xterm, to the console's output; returns the number of
 * bytes written, or -1 with errno. */
ssize_t whit_console_write(HANDLE console, const void *bytes, size_t n_bytes);
/* Returns whether the console understands escape sequences. The first call tests this on a screen buffer that is not
 * shown. */
bool whit_console_is_terminal(void);
/* Draws text with the escape sequences that the editor and chats use: cursor, colours, clearing, the alternate screen.
 * The result is false, with GetLastError, if the console is gone. */
bool whit_console_paint(HANDLE output, const char *bytes, size_t n_bytes);

#endif
