/* SPDX-License-Identifier: MIT
 * Pages of memory before they are written to: an edit that meets new ones waits for the kernel, and many
 * at once are one slow edit rather than many. Where the kernel (before Linux 5.14) cannot, they come one
 * by one as always. */
#ifndef WHIT_EDITOR_PAGES_H
#define WHIT_EDITOR_PAGES_H

#include <stddef.h>

/* Asks the kernel to provide the pages of a range of memory now. */
void whit_pages_ready(void *memory, size_t size_bytes);
/* For memory of `room_bytes` that fills from its beginning and is ready for `ready_bytes`: where
 * `used_bytes` go over that, lets an eighth more be there, from 16 KiB to 1 MiB. Returns what is ready then. */
size_t whit_pages_ahead(void *memory, size_t used_bytes, size_t ready_bytes, size_t room_bytes);

#endif
