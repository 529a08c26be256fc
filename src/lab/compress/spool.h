/* SPDX-License-Identifier: MIT
 * Allocates memory that the system may write to disk: pages of a nameless file, which disappears when the program ends
 * in any way. It contains data that a run keeps for long and rarely reads: activations, finished matrices. */
#ifndef WHIT_COMPRESS_SPOOL_H
#define WHIT_COMPRESS_SPOOL_H

#include <stddef.h>

/* Maps zeroed bytes in an unnamed file in `folder`. The result is NULL if that is impossible or would leave less free
 * space there than it takes, which OUT may need; the caller then allocates memory. */
void *whit_spool_map(const char *folder, size_t bytes);
void whit_spool_unmap(void *memory, size_t bytes); /* accepts NULL */

#endif
