/* SPDX-License-Identifier: MIT
 * Converts names to UTF-16 and Windows errors to errno, for the files of this folder, which call Windows by its own
 * names. */
#ifndef WHIT_BASE_WINDOWS_WIDE_H
#define WHIT_BASE_WINDOWS_WIDE_H

#include <winsock2.h>
/* winsock2.h must precede windows.h. */
#include <windows.h>

enum { WHIT_WIDE_MAX = 4200 }; /* units of a name in UTF-16, its prefix and zero included */

/* Converts a path to UTF-16; a long one gets the prefix that lifts the limit of 260 units. The result is false, with
 * errno, if it is too long or not UTF-8. */
bool whit_wide_path(const char *path, wchar_t wide[WHIT_WIDE_MAX]);
/* Converts to UTF-8, with "/" for "\" where `is_path`; false, with errno, if `text` is too small. */
bool whit_wide_text(const wchar_t *wide, bool is_path, char *text, size_t text_bytes);
/* Fills in the path of the system's cmd.exe: CreateProcess would look for a bare name in the working folder first,
 * which may hold anything. The result is false on failure, with GetLastError. */
bool whit_wide_shell(wchar_t wide[WHIT_WIDE_MAX]);
/* Sets errno from GetLastError and returns -1. */
int whit_wide_error(void);
/* Returns the number of signals since the program began; a wait compares it to learn whether a signal ended it. */
unsigned whit_signal_count(void);

#endif
