/* SPDX-License-Identifier: MIT
 * Changes settings of the C library's malloc for the whole process, for long runs and servers. */
#ifndef WHIT_BASE_MALLOC_H
#define WHIT_BASE_MALLOC_H

#include <stddef.h>

/* Makes malloc map every piece of from_bytes or more by itself from now on, so that the piece goes back to the system
 * when it is freed. Without this glibc raises its bound with each such piece that is freed, and cuts later ones from a
 * heap whose gaps stay. Other C libraries are left as they are. */
void whit_malloc_map_from(size_t from_bytes);

#endif
