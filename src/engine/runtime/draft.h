/* SPDX-License-Identifier: MIT
 * Guesses tokens by prompt lookup, which assumes that the tokens after the previous occurrence of the last few tokens
 * in the text follow again (Saxena, "Prompt Lookup Decoding", 2023). Guesses are additional columns of a step and are
 * checked token by token, so they only change the speed. */
#ifndef WHIT_RUNTIME_DRAFT_H
#define WHIT_RUNTIME_DRAFT_H

#include "base/mem.h"

#define WHIT_DRAFT_MAX 31 /* maximum number of tokens guessed at once */
/* largest and smallest number of last tokens that are compared with an earlier occurrence */
#define WHIT_DRAFT_MATCH_MAX 4
#define WHIT_DRAFT_MATCH_MIN 2

typedef struct whit_draft {
    int32_t *history; /* (capacity): tokens of the text so far; a full history loses its older half */
    size_t n_tokens, capacity;
    /* Index of pairs of adjacent tokens by a hash (bucket). A pair is represented by 1 + the position of its second
     * token; 0: no pair. latest[bucket] is the latest pair of a bucket; earlier[position] is the pair before it in the
     * same bucket. */
    uint32_t *latest, *earlier; /* (n_buckets), (capacity) */
    size_t n_buckets;           /* a power of two */
    const whit_allocator *allocator;
    /* Replaces the lookup, for tests; NULL: the lookup is used. */
    uint32_t (*script)(void *user, size_t n_tokens, uint32_t n_most, int32_t *ids);
    void *script_user;
} whit_draft;

/* Allocates the history for `capacity` tokens; nothing is allocated later. */
whit_status whit_draft_open(size_t capacity, const whit_allocator *allocator, whit_draft *draft, whit_error *error);
void whit_draft_close(whit_draft *draft);
void whit_draft_push(whit_draft *draft, int32_t id);
/* Writes at most n_most guesses to ids: the tokens that follow the earlier occurrence of the last tokens with the
 * longest match (the latest one of several; the 64 latest are searched). If fewer tokens follow, the guesses begin
 * again at the first of them. Returns the number of guesses, 0 if the last tokens have no earlier occurrence.
 * *n_matched (may be NULL): number of tokens that match. */
uint32_t whit_draft_guess(const whit_draft *draft, uint32_t n_most, int32_t *ids, uint32_t *n_matched);

#endif
