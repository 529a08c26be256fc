/* SPDX-License-Identifier: MIT
 * The module consists of the library's public functions; a program needs a file of its own. */
#include "whit.h"

_Static_assert(sizeof(void *) == 4, "the layouts that make_npm.py computes are those of 32-bit WebAssembly");
