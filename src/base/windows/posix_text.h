/* SPDX-License-Identifier: MIT
 * Declares the part of posix.h for locales, strings, sorting, name patterns and libraries. */
#ifndef WHIT_BASE_WINDOWS_POSIX_TEXT_H
#define WHIT_BASE_WINDOWS_POSIX_TEXT_H

#include "posix_head.h"

/* ---- locales: numbers are always read and written as in C, since nobody calls setlocale for them ------ */

typedef int locale_t;
enum { LC_ALL_MASK = 1, LC_NUMERIC_MASK = 2, LC_CTYPE_MASK = 4 };
#define newlocale(parts, name, base) ((locale_t)1)
#define freelocale(locale)           ((void)(locale))
#define strtod_l(text, end, locale)  ((void)(locale), strtod(text, end))

/* ---- strings, sorting, names ---------------------------------------------------------------- */

void *memmem(const void *text, size_t n_text, const void *part, size_t n_part);
void *memrchr(const void *text, int byte, size_t n);
char *stpcpy(char *to, const char *from);
char *strndup(const char *text, size_t n);
char *strchrnul(const char *text, int byte);
char *strcasestr(const char *text, const char *part);
int dprintf(int fd, const char *format, ...);
typedef int whit_posix_order(const void *a, const void *b, void *context);
/* Sort stably, as glibc usually does, so that equal items have the same order as on Linux. */
void qsort_r(void *items, size_t n, size_t item_bytes, whit_posix_order *order, void *context);
void whit_posix_qsort(void *items, size_t n, size_t item_bytes, int (*order)(const void *, const void *));
#define qsort whit_posix_qsort

enum { FNM_PATHNAME = 1, FNM_PERIOD = 4, FNM_CASEFOLD = 16, FNM_NOMATCH = 1 };
int fnmatch(const char *pattern, const char *name, int flags);

void *dlopen(const char *name, int flags);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
char *dlerror(void);
enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 0, RTLD_GLOBAL = 256 };

#endif
