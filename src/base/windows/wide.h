/* SPDX-License-Identifier: MIT
 * Converts names to UTF-16 and Windows errors to errno, for the files of this folder that call functions of Windows
 * directly. */
#ifndef WHIT_BASE_WINDOWS_WIDE_H
#define WHIT_BASE_WINDOWS_WIDE_H

#include <winsock2.h>
/* winsock2.h must precede windows.h. */
#include <windows.h>

enum { WHIT_WIDE_MAX = 4200 }; /* UTF-16 units of a path, including its prefix and its zero */

/* Converts a path to UTF-16 with "\" as separator, /dev/null and /dev/tty to their names in Windows; a long path gets
 * the prefix that lifts Windows' limit of 260 units. The result is false, with errno, if the path is empty, too long or
 * not UTF-8. */
bool whit_wide_path(const char *path, wchar_t wide[WHIT_WIDE_MAX]);
/* Converts `wide` to UTF-8; if is_path, also "\" to "/", without the prefix of a long path. The result is false, with
 * errno, if `text` is too small. */
bool whit_wide_text(const wchar_t *wide, bool is_path, char *text, size_t text_bytes);
/* Writes the full path of the system's cmd.exe, because CreateProcess would search for a bare name first in the working
 * folder, which may be untrusted. The result is false, with GetLastError, on failure. */
bool whit_wide_shell(wchar_t wide[WHIT_WIDE_MAX]);
/* Sets errno from GetLastError and returns -1. */
int whit_wide_error(void);
/* Returns the number of signals that were handled since the program's start; a wait compares two results to find out
 * whether a signal arrived. */
unsigned whit_signal_count(void);

#endif
