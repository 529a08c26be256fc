/* SPDX-License-Identifier: MIT
 * Makes the kernel provide pages of memory before they are written to. An edit that needs a new page waits for the
 * kernel, so it is better that one edit is slow for many pages than that many edits are slow. A kernel before Linux
 * 5.14 cannot do this, and then the pages come one by one as usual. */
#ifndef WHIT_EDITOR_PAGES_H
#define WHIT_EDITOR_PAGES_H

#include <stddef.h>

/* Provides pages of a memory block of `room_bytes` that is filled from its beginning and whose first `ready_bytes` are
 * provided already. If `used_bytes` exceed these, provides the bytes up to `used_bytes` and an eighth more, but at
 * least 16 KiB and at most 1 MiB more, within the block. Returns the number of bytes that are then provided. */
size_t whit_pages_ahead(void *memory, size_t used_bytes, size_t ready_bytes, size_t room_bytes);

#endif
