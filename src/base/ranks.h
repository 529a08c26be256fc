/* SPDX-License-Identifier: MIT
 * Declares the transport between processes (ranks) that compute together. src/files/ranks implements it by MPI, tests
 * by threads of one process. */
#ifndef WHIT_BASE_RANKS_H
#define WHIT_BASE_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All ranks make the same calls in the same order, each in one thread at a time. Every call returns false if a rank is
 * lost; nothing can be computed together after that. */
typedef struct whit_ranks {
    uint32_t rank, n_ranks;
    bool (*send)(void *user, uint32_t to, const void *data, size_t n_bytes);
    bool (*receive)(void *user, uint32_t from, void *data, size_t n_bytes);
    bool (*broadcast)(void *user, void *data, size_t n_bytes); /* from rank 0 to all */
    /* Piece r of `data` is bytes [offsets[r], offsets[r + 1]). Each rank has filled its own piece; afterwards all
     * pieces are filled, with to_first only those of rank 0. Every rank sends its piece, unless it is empty, to each
     * other rank, or to rank 0 alone. */
    bool (*gather)(void *user, void *data, const size_t *offsets, bool to_first);
    void *user;
} whit_ranks;

#define WHIT_RANKS_MAX 64

/* Returns the first of n items in a rank's share, which ends at the first item of rank + 1. */
static inline uint32_t whit_rank_begin(const whit_ranks *ranks, uint32_t rank, uint32_t n)
{
    return (uint32_t)((uint64_t)n * rank / ranks->n_ranks);
}

#endif
