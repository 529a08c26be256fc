/* SPDX-License-Identifier: MIT
 * Includes the part of posix.h that mingw-w64 declares itself, before any name is redefined. */
#ifndef WHIT_BASE_WINDOWS_POSIX_HEAD_H
#define WHIT_BASE_WINDOWS_POSIX_HEAD_H

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#endif
