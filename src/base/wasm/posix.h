/* SPDX-License-Identifier: MIT
 * Declares functions that emscripten's C library lacks; the build includes this header before every file. */
#ifndef WHIT_BASE_WASM_POSIX_H
#define WHIT_BASE_WASM_POSIX_H

#include <stddef.h>

void qsort_r(void *items, size_t n, size_t item_bytes, int (*compare)(const void *, const void *, void *),
             void *context);

#endif
