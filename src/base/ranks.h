/* SPDX-License-Identifier: MIT
 * Declares the transport between processes (ranks) that compute together. src/files/ranks implements it by MPI, tests
 * by threads of one process. */
#ifndef WHIT_BASE_RANKS_H
#define WHIT_BASE_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All ranks make the same calls in the same order, each rank in one thread at a time. Every call returns false if a
 * rank is lost; no later call can then succeed. */
typedef struct whit_ranks {
    uint32_t rank, n_ranks;
    bool (*send)(void *user, uint32_t to, const void *data, size_t n_bytes);
    bool (*receive)(void *user, uint32_t from, void *data, size_t n_bytes);
    bool (*broadcast)(void *user, void *data, size_t n_bytes); /* sends n_bytes at `data` from rank 0 to all ranks */
    /* Piece r of `data` is bytes [offsets[r], offsets[r + 1]). Each rank has filled its own piece before the call;
     * afterwards every rank has all pieces, or with to_first only rank 0 has. Each rank sends its piece, unless it is
     * empty, to every other rank, or with to_first to rank 0 only. By MPI a piece has at most 1 GiB. */
    bool (*gather)(void *user, void *data, const size_t *offsets, bool to_first);
    void *user;
} whit_ranks;

#define WHIT_RANKS_MAX 64

/* Returns the index of the first of n items in a rank's share; the share ends before the first item of rank + 1. */
static inline uint32_t whit_rank_begin(const whit_ranks *ranks, uint32_t rank, uint32_t n)
{
    return (uint32_t)((uint64_t)n * rank / ranks->n_ranks);
}

#endif
