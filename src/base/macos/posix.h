/* SPDX-License-Identifier: MIT
 * Declares calls and names of Linux that the libraries use and macOS lacks or has in another form; the build includes
 * this header before every file. */
#ifndef WHIT_BASE_MACOS_POSIX_H
#define WHIT_BASE_MACOS_POSIX_H

#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Maps Linux's names of a file's times in `struct stat` to macOS's. */
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#define st_atim st_atimespec

/* Sorts as qsort_r does, with the order of arguments of the GNU C library. */
#define qsort_r whit_qsort_r
void whit_qsort_r(void *items, size_t n, size_t item_bytes, int (*compare)(const void *, const void *, void *),
                  void *context);

/* Fills at most 256 bytes per call, as getentropy does. */
ssize_t getrandom(void *bytes, size_t size_bytes, unsigned flags);

/* Creates a file without a name, in the folder of temporary files. */
#define MFD_CLOEXEC 1u
int memfd_create(const char *name, unsigned flags);

/* Returns an error number, 0 for success. */
int posix_fallocate(int fd, off_t offset, off_t size_bytes);

/* Hints for pages of two megabytes have no effect, because macOS chooses such pages by itself. */
#define MADV_HUGEPAGE   0 /* MADV_NORMAL */
#define MADV_NOHUGEPAGE 0

#endif
