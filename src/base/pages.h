/* SPDX-License-Identifier: MIT
 * Hints about the pages of a mapping: they move data between disk and memory, or assign memory, and change no byte.
 * Errors are ignored: a system that lacks a hint runs as if it had not been given. */
#ifndef WHIT_BASE_PAGES_H
#define WHIT_BASE_PAGES_H

#include <stddef.h>

/* Advises the system that the range will be read at random places, so that it does not read neighbouring pages
 * ahead. */
void whit_pages_scatter(const void *begin, size_t size_bytes);
/* Starts reading the pages of the range; returns before they are in memory. */
void whit_pages_prefetch(const void *begin, size_t size_bytes);
/* Gives the range of a private mapping its memory now, instead of at the first write to each page. */
void whit_pages_populate(void *begin, size_t size_bytes);
/* Removes pages that are completely in the range from the page cache, if the system allows it. Linux misses pages
 * that another processor read a moment ago; they stay mapped, so that another call finds them. */
void whit_pages_evict(const void *begin, size_t size_bytes);
/* Removes pages like whit_pages_evict, as the last call for the range: pages that Linux skips are unmapped, and the
 * system decides when to free them. */
void whit_pages_release(const void *begin, size_t size_bytes);

#endif
