/* SPDX-License-Identifier: MIT */
#include "editor/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define AHEAD_MIN_BYTES (16u << 10)
#define AHEAD_MAX_BYTES (1u << 20)

void whit_pages_ready(void *memory, size_t size_bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)memory & -page,
              end = whit_round_up((uintptr_t)memory + size_bytes, page);
    if (size_bytes) madvise((void *)first, end - first, MADV_POPULATE_WRITE);
}

size_t whit_pages_ahead(void *memory, size_t used_bytes, size_t ready_bytes, size_t room_bytes)
{
    if (used_bytes <= ready_bytes) return ready_bytes;
    size_t ahead = used_bytes / 8;
    if (ahead < AHEAD_MIN_BYTES) ahead = AHEAD_MIN_BYTES;
    if (ahead > AHEAD_MAX_BYTES) ahead = AHEAD_MAX_BYTES;
    size_t end = ahead < room_bytes - used_bytes ? used_bytes + ahead : room_bytes;
    whit_pages_ready((uint8_t *)memory + ready_bytes, end - ready_bytes);
    return end;
}
