/* SPDX-License-Identifier: MIT
 * Divides one allocation, the arena, among arrays. The same code runs twice: first without memory, which only counts
 * bytes, then with memory, which returns the addresses. So the predicted size is the used size. */
#ifndef WHIT_BASE_ARENA_H
#define WHIT_BASE_ARENA_H

#include "base/mem.h"

typedef struct whit_arena {
    uint8_t *memory; /* NULL while bytes are only counted */
    uint64_t used_bytes;
    bool overflow; /* a product or the sum exceeded SIZE_MAX / 2: used_bytes is too small */
} whit_arena;

/* Returns the next n * elem_bytes bytes, 64-byte aligned; NULL while counting and on overflow. */
static inline void *whit_arena_take(whit_arena *arena, uint64_t n, uint64_t elem_bytes)
{
    uint64_t bytes, end;
    if (__builtin_mul_overflow(n, elem_bytes, &bytes) || __builtin_add_overflow(arena->used_bytes, bytes, &end) ||
        end > SIZE_MAX / 2) {
        arena->overflow = true;
        return NULL;
    }
    void *memory = arena->memory ? arena->memory + arena->used_bytes : NULL;
    arena->used_bytes = (end + WHIT_ALIGN_BYTES - 1) & ~(uint64_t)(WHIT_ALIGN_BYTES - 1);
    return memory;
}

#endif
