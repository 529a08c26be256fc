/* SPDX-License-Identifier: MIT
 * Makes the kernel provide pages of memory before they are written to. An edit that needs a new page waits for the
 * kernel, so it is better that one edit is slow for many pages than that many edits are slow. A kernel before Linux
 * 5.14 cannot do this, and then the pages come one by one as usual. */
#ifndef WHIT_EDITOR_PAGES_H
#define WHIT_EDITOR_PAGES_H

#include <stddef.h>

/* Serves memory of `room_bytes` that fills from its beginning and whose first `ready_bytes` are provided. If
 * `used_bytes` exceed that, an eighth more is provided, from 16 KiB to 1 MiB. Returns the number of bytes that are then
 * provided. */
size_t whit_pages_ahead(void *memory, size_t used_bytes, size_t ready_bytes, size_t room_bytes);

#endif
