/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_TERMIOS_H
#define WHIT_WINDOWS_TERMIOS_H
enum { TCIFLUSH = 0 };
/* Forgets what was typed and not yet read. */
int tcflush(int fd, int queue);
/* Sets raw mode: keys arrive as they are typed, including Ctrl-C, and are not echoed. */
void cfmakeraw(struct termios *settings);
#endif
