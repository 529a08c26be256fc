/* SPDX-License-Identifier: MIT
 * Consoles as xterm-like terminals: keys arrive as xterm's bytes, and consoles that do not understand its sequences are
 * painted here. */
#ifndef WHIT_BASE_WINDOWS_CONSOLE_H
#define WHIT_BASE_WINDOWS_CONSOLE_H

#include "wide.h"

#include <stdbool.h>

/* The bytes of one record are a sequence of xterm, or a character of UTF-8 with Escape before it. */
#define WHIT_CONSOLE_KEY_BYTES 24

/* Finds the bytes that xterm sends for a record of a console's input; returns their number, 0 for a record without
 * bytes. A change of the window's size becomes SIGWINCH. */
size_t whit_console_key(HANDLE output, const INPUT_RECORD *record, char bytes[WHIT_CONSOLE_KEY_BYTES]);
/* Notes which reports of the mouse the written sequences ask for; `input` is set for them. */
void whit_console_ask_mouse(HANDLE input, const char *bytes, size_t n_bytes);

/* Writes to a console's output at most a few thousand bytes, with the sequences of xterm; returns their number, or -1
 * with errno. */
ssize_t whit_console_write(HANDLE console, const void *bytes, size_t n_bytes);
/* Returns whether the console understands escape sequences. Tested once, on a screen that is not shown. */
bool whit_console_is_terminal(void);
/* Shows text with the sequences that the editor and chats use: cursor, colours, clearing, the other screen. The result
 * is false, with GetLastError, if the console is gone. */
bool whit_console_paint(HANDLE output, const char *bytes, size_t n_bytes);

#endif
