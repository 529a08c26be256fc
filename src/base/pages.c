/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* since Linux 5.4 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* Calls madvise for all pages that the range touches, or with whole_pages only for pages completely in the range. */
static void advise(const void *begin, size_t size_bytes, int advice, bool whole_pages)
{
    const long page = sysconf(_SC_PAGESIZE);
    const uintptr_t mask = page > 0 ? (uintptr_t)page - 1 : 0;
    uintptr_t first = (uintptr_t)begin, end = first + size_bytes;
    if (page <= 0 || !size_bytes) return;
    first = whole_pages ? (first + mask) & ~mask : first & ~mask;
    end = whole_pages ? end & ~mask : (end + mask) & ~mask;
    if (first < end) madvise((void *)first, end - first, advice);
}

void whit_pages_scatter(const void *begin, size_t size_bytes)
{
    advise(begin, size_bytes, MADV_RANDOM, true);
}

void whit_pages_prefetch(const void *begin, size_t size_bytes)
{
    advise(begin, size_bytes, MADV_WILLNEED, false);
}

void whit_pages_populate(void *begin, size_t size_bytes)
{
    advise(begin, size_bytes, MADV_POPULATE_WRITE, false);
}

void whit_pages_evict(const void *begin, size_t size_bytes)
{
    advise(begin, size_bytes, MADV_PAGEOUT, true);
}

void whit_pages_release(const void *begin, size_t size_bytes)
{
    advise(begin, size_bytes, MADV_PAGEOUT, true); /* MADV_PAGEOUT reaches only mapped pages, so it precedes
                                                    * MADV_DONTNEED */
    advise(begin, size_bytes, MADV_DONTNEED, true);
}
