/* SPDX-License-Identifier: MIT
 * Marks are checkpoints of packed caches: positions at which a sequence can resume after it was cut back or replaced,
 * because their tails (kv/tail.h) are saved. A session has a fixed number and evicts the least recently used.
 *
 * A mark belongs to a prefix of tokens, not to a sequence: it is looked up by the key of the blocks before its
 * tail and the ids of the tail (runtime/reuse.c). */
#ifndef WHIT_RUNTIME_MARKS_H
#define WHIT_RUNTIME_MARKS_H

#include "kv/tail.h"

typedef struct whit_mark {
    uint8_t key[WHIT_HASH_BYTES]; /* key of the blocks before `first` */
    uint32_t n_tokens;            /* 0: free */
    uint32_t first;               /* index of the block that its ids begin with */
    uint32_t reach;               /* during a search: the position at which it can resume, or 0 */
    bool has_served;
    uint64_t when; /* when it was made or last used */
} whit_mark;

typedef struct whit_marks {
    uint32_t n;          /* 0 where the cache needs none */
    uint32_t n_ids;      /* maximum ids of a tail */
    uint64_t tail_bytes; /* maximum size of a tail */
    uint64_t clock;
    whit_mark *items; /* (n) */
    int32_t *ids;     /* (n, n_ids) from block `first` on */
    uint8_t *tails;   /* (n, tail_bytes) */
} whit_marks;

static inline int32_t *whit_mark_ids(const whit_marks *marks, uint32_t i)
{
    return marks->ids + (size_t)i * marks->n_ids;
}
static inline uint8_t *whit_mark_tail(const whit_marks *marks, uint32_t i)
{
    return marks->tails + i * marks->tail_bytes;
}

#endif
