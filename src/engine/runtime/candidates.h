/* SPDX-License-Identifier: MIT
 * Keeps the candidates of one pick: token ids ordered by logit, ties by id. They are sorted lazily, only as far as the
 * order is asked for.
 *
 * A candidate is a 64-bit key: the logit's bits, made to sort as unsigned numbers, over the
 * complement of the id. One comparison of keys therefore orders by descending logit, then by ascending id.
 *
 *     keys:  [ heap, n_heap | free | n_sorted greatest, ascending ]   (size)
 *
 * The next greatest key is moved from the heap to the sorted end. Sums over candidates are computed in token order over
 * 16 virtual lanes (docs/dev/numerics.md), independently of the order of the keys. */
#ifndef WHIT_RUNTIME_CANDIDATES_H
#define WHIT_RUNTIME_CANDIDATES_H

#include "base/status.h"

typedef struct whit_candidates {
    uint64_t *keys; /* (n_vocab) keys in the layout above */
    double *terms;  /* (n_vocab) terms of a sum being computed; zeros between calls */
    float *maxima;  /* scratch of whit_candidates_load_greatest: greatest logit of each block of ids */
    uint32_t n_vocab;
    uint32_t size, n_heap, n_sorted;
    bool is_heap; /* keys [0, n_heap) form a heap; false: they are in no order */
    const whit_allocator *allocator;
} whit_candidates;

whit_status whit_candidates_open(uint32_t n_vocab, const whit_allocator *allocator, whit_candidates *candidates,
                                 whit_error *error);
void whit_candidates_close(whit_candidates *candidates);

static inline uint64_t whit_key(float logit, uint32_t id)
{
    logit += 0.0f; /* turns -0 into 0 */
    uint32_t bits;
    __builtin_memcpy(&bits, &logit, sizeof bits);
    bits ^= (uint32_t)((int32_t)bits >> 31) | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}
static inline uint32_t whit_key_id(uint64_t key)
{
    return ~(uint32_t)key;
}
static inline float whit_key_logit(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    bits ^= bits >> 31 ? 0x80000000u : 0xffffffffu;
    float logit;
    __builtin_memcpy(&logit, &bits, sizeof logit);
    return logit;
}

/* Loads all logits (n_vocab) as candidates. Returns false if a logit is neither finite nor -infinity. A logit of
 * -infinity bans its id: *any_banned is then set, and the caller must remove these candidates. Until another function
 * is called, keys[id] belongs to id and may be replaced. */
bool whit_candidates_load(whit_candidates *candidates, const float *logits, bool *any_banned);
/* Loads the k greatest of the logits (n_vocab) and some more, in one pass over them. Returns false, with no candidates,
 * if a logit is not finite, k is 0 or above 256, or the vocabulary has fewer than 64 k ids. */
bool whit_candidates_load_greatest(whit_candidates *candidates, const float *logits, uint32_t k);
static inline uint32_t whit_candidates_count(const whit_candidates *candidates)
{
    return candidates->n_heap + candidates->n_sorted;
}
/* Returns the largest key; there must be a candidate. */
uint64_t whit_candidates_max(const whit_candidates *candidates);
/* Returns the key of the i-th greatest candidate, counted from 0; i < whit_candidates_count. */
uint64_t whit_candidates_at(whit_candidates *candidates, uint32_t i);
/* Keep the n greatest candidates; the candidates with a logit of at least min_logit; all candidates except the n
 * greatest. */
void whit_candidates_keep(whit_candidates *candidates, uint32_t n);
void whit_candidates_keep_from(whit_candidates *candidates, double min_logit);
void whit_candidates_drop_greatest(whit_candidates *candidates, uint32_t n);
/* Returns the sum of term(logit, context) over the candidates. */
double whit_candidates_sum(whit_candidates *candidates, double (*term)(double logit, const void *context),
                           const void *context);

#endif
