/* SPDX-License-Identifier: MIT
 * Marks: positions that sequences of a packed cache can go on from after they have left them, because their tails
 * (kv/tail.h) are kept. A session has a fixed number; the one that was of no use for longest is written over.
 *
 * A mark belongs to the tokens before it, not to a sequence: it is found again by the key of the blocks before its
 * tail and the ids of the tail (runtime/reuse.c). */
#ifndef WHIT_RUNTIME_MARKS_H
#define WHIT_RUNTIME_MARKS_H

#include "kv/tail.h"

typedef struct whit_mark {
    uint8_t key[WHIT_HASH_BYTES]; /* over the full blocks before `first` */
    uint32_t n_tokens;            /* 0: free */
    uint32_t first;               /* block that its ids begin with */
    uint32_t reach;               /* of a search: where it leads to, 0: nowhere */
    bool has_served;
    uint64_t when; /* made, or last of use */
} whit_mark;

typedef struct whit_marks {
    uint32_t n;          /* 0 where the cache needs none */
    uint32_t n_ids;      /* of a tail, at most */
    uint64_t tail_bytes; /* at most */
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
