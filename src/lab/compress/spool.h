/* SPDX-License-Identifier: MIT
 * Memory that the system may write out: pages of a file without a name, which is gone with the program, however it
 * ends. What a run keeps for long and reads seldom lies there: activations, finished matrices. */
#ifndef WHIT_COMPRESS_SPOOL_H
#define WHIT_COMPRESS_SPOOL_H

#include <stddef.h>

/* Zeroed bytes in a nameless file in `folder`. NULL where that is not to be had, or would leave less room there than it
 * takes, which OUT may need: the caller takes memory then. */
void *whit_spool_map(const char *folder, size_t bytes);
void whit_spool_unmap(void *memory, size_t bytes); /* NULL is unmapped */

#endif
