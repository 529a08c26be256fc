/* SPDX-License-Identifier: MIT */
#include "editor/pages.h"

#include <stdint.h>

#include "base/pages.h"

#define AHEAD_MIN_BYTES (16u << 10)
#define AHEAD_MAX_BYTES (1u << 20)

size_t whit_pages_ahead(void *memory, size_t used_bytes, size_t ready_bytes, size_t room_bytes)
{
    if (used_bytes <= ready_bytes) return ready_bytes;
    size_t ahead = used_bytes / 8;
    if (ahead < AHEAD_MIN_BYTES) ahead = AHEAD_MIN_BYTES;
    if (ahead > AHEAD_MAX_BYTES) ahead = AHEAD_MAX_BYTES;
    size_t end = ahead < room_bytes - used_bytes ? used_bytes + ahead : room_bytes;
    whit_pages_populate((uint8_t *)memory + ready_bytes, end - ready_bytes);
    return end;
}
