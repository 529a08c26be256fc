/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_TERMIOS_H
#define WHIT_WINDOWS_TERMIOS_H
enum { TCIFLUSH = 0 };
/* Discards input that was typed and not yet read. */
int tcflush(int fd, int queue);
/* Changes the settings to raw mode: keys, including Ctrl-C, are read as soon as they are typed, and are not echoed. */
void cfmakeraw(struct termios *settings);
#endif
