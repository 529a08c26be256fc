/* SPDX-License-Identifier: MIT */
#include "base/malloc.h"

#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

void whit_malloc_map_from(size_t from_bytes)
{
    (void)from_bytes;
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, from_bytes < INT_MAX ? (int)from_bytes : INT_MAX);
#endif
}
