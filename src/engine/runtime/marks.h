/* SPDX-License-Identifier: MIT
 * Marks are checkpoints: positions at which a sequence can resume after it was cut back or replaced, because their
 * tails (kv/tail.h) are saved. Packed caches and models with recurrent layers need them; other caches have none.
 *
 * A mark belongs to a prefix of tokens, not to a sequence: it is looked up by the key of the blocks before its tail and
 * the ids of the tail (runtime/reuse.c), so all sequences of a session share it. Marks are made at the ends of prompts
 * and answers, after tokens that end a message (at least 48 tokens after the last mark), at the ends of prefixes that
 * could not be reused, and every `interval` tokens. Their number is fixed when the session is opened, by `state_bytes`
 * or `n_marks`.
 *
 * Eviction: the mark with the least value is evicted. Without a mark, the tokens since the nearest earlier mark of its
 * prefix (`gap`) must be computed again. The value is gap x (1 + uses) x t / (t + age), where age counts marks made or
 * used since its last use, and t is four times the number of marks; it is 0 if the blocks before the tail are gone. The
 * newest WHIT_MARKS_RECENT marks of each sequence are worth 64 times as much: the next prompt most likely resumes
 * there. A mark that is evicted leaves its gap to the next mark of the prefix. */
#ifndef WHIT_RUNTIME_MARKS_H
#define WHIT_RUNTIME_MARKS_H

#include "kv/tail.h"

#define WHIT_MARKS_MAX 4096 /* maximum number of marks of a session */
/* newest marks per sequence, usually the ends of the last prompt, of a message and of the answer */
#define WHIT_MARKS_RECENT 3

typedef struct whit_mark {
    uint8_t key[WHIT_HASH_BYTES]; /* key of the `first` blocks before its ids (runtime/reuse.c) */
    uint32_t n_tokens;            /* position of the mark (length of its prefix); 0: the mark is free */
    uint32_t first;               /* index of the block at which its ids begin */
    uint32_t reach;               /* used by a search: the position at which the sequence can resume with this mark,
                                   * or 0 */
    uint32_t gap;                 /* number of tokens since the nearest earlier mark of the same prefix, or since its
                                   * beginning */
    uint32_t n_uses;              /* how often a sequence resumed here */
    uint64_t when;                /* value of whit_marks.clock at the mark's creation or last use */
    uint64_t number, parent;      /* serial numbers of this mark and of the nearest earlier mark of its prefix; 0: no
                                   * such mark */
} whit_mark;

typedef struct whit_marks {
    uint32_t n;          /* number of marks, used and free; 0: the cache needs no marks, or the options allow 0 */
    uint32_t n_ids;      /* maximum number of ids of a tail */
    uint32_t interval;   /* every position that is a multiple of this is marked */
    uint64_t mark_bytes; /* memory of one mark with its ids and tail */
    uint64_t tail_bytes; /* maximum size of a tail */
    uint64_t clock;
    /* since the session was opened: numbers of marks made and evicted; n_used: number of times that a sequence was
     * resumed at a mark */
    uint64_t n_made, n_used, n_evicted;
    whit_mark *items; /* (n) */
    int32_t *ids;     /* (n, n_ids): ids of each mark from block `first` on */
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
