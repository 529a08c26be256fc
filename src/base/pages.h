/* SPDX-License-Identifier: MIT
 * Hints about pages of a file's mapping: they move data between disk and memory and change no byte. Errors are ignored:
 * a system that does not know a hint runs as without it. */
#ifndef WHIT_BASE_PAGES_H
#define WHIT_BASE_PAGES_H

#include <stddef.h>

/* The range will be read here and there: the system reads no neighbouring pages ahead. */
void whit_pages_scatter(const void *begin, size_t size_bytes);
/* Starts to read the pages of the range; returns before they are there. */
void whit_pages_prefetch(const void *begin, size_t size_bytes);
/* Takes pages that lie wholly in the range out of the page cache, where the system lets this process. Linux misses
 * pages that were read a moment ago on another processor; they stay mapped, so that another call finds them. */
void whit_pages_evict(const void *begin, size_t size_bytes);
/* The same for the last time: pages that are missed again are unmapped and left to the system. */
void whit_pages_release(const void *begin, size_t size_bytes);

#endif
