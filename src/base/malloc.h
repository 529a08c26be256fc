/* SPDX-License-Identifier: MIT
 * Changes settings of the C library's malloc for the whole process, for long runs and servers. */
#ifndef WHIT_BASE_MALLOC_H
#define WHIT_BASE_MALLOC_H

#include <stddef.h>

/* Makes glibc's malloc map every later allocation of from_bytes or more separately, so that its memory returns to the
 * system when it is freed. By default glibc raises this threshold when such an allocation is freed, and takes later
 * ones from the heap, whose gaps do not return to the system. Has no effect with other C libraries. */
void whit_malloc_map_from(size_t from_bytes);

#endif
