/* SPDX-License-Identifier: MIT
 * Opens a few files, which are named before the caller enters a sandbox, also inside the sandbox.
 *
 * Landlock allows files or whole folders. A file that an editor replaces is a new file, and its folder may contain
 * files that the program must not read. A process that is forked before the sandbox therefore opens the files of a
 * list, and no others, and passes their descriptors on. At all other times it waits for a request on its socket. */
#ifndef WHIT_BASE_OPENER_H
#define WHIT_BASE_OPENER_H

#include <stdio.h>

#include "base/status.h"

/* Forks the process that opens the n paths; *fd is the caller's end of the socket pair, or -1 on systems without a
 * sandbox. The process ends when the socket is closed. Call before threads are started; at most 256 paths. Errors:
 * io. */
whit_status whit_opener_start(const char *const *paths, size_t n, int *fd, whit_error *error);
/* Opens path number i (from 0), which is `path`, for reading: in the forked process or, if fd is -1, in the calling
 * one. The caller closes *file. Reads of a file that is not regular do not block. Errors: io. */
whit_status whit_opener_open(int fd, size_t i, const char *path, FILE **file, whit_error *error);

#endif
