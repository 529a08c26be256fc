/* SPDX-License-Identifier: MIT
 * Allocates memory that the system can write to disk: pages of an unnamed file, which disappears when the program ends
 * in whatever way. It is for data that a run keeps long and reads rarely: activations, finished matrices. */
#ifndef WHIT_COMPRESS_SPOOL_H
#define WHIT_COMPRESS_SPOOL_H

#include <stddef.h>

/* Maps zeroed bytes of an unnamed file in `folder`. Returns NULL if that is not possible, or if less than the same
 * number of bytes would remain free there, which the finished file may need. The caller then allocates normal
 * memory. */
void *whit_spool_map(const char *folder, size_t bytes);
void whit_spool_unmap(void *memory, size_t bytes); /* accepts NULL */

#endif
