/* SPDX-License-Identifier: MIT
 * Prompt lookup: guesses that the last few tokens are followed by the tokens that followed their
 * previous occurrence in the text (Saxena, "Prompt Lookup Decoding", 2023). Guesses cost a wider step and are
 * checked token by token, so they change the speed only. */
#ifndef WHIT_RUNTIME_DRAFT_H
#define WHIT_RUNTIME_DRAFT_H

#include "base/mem.h"

#define WHIT_DRAFT_MAX 31 /* tokens guessed at once */

typedef struct whit_draft {
    int32_t *history; /* (capacity) all tokens so far */
    size_t n_tokens, capacity;
    const whit_allocator *allocator;
} whit_draft;

/* Allocates the history for `capacity` tokens; nothing is allocated later. */
whit_status whit_draft_open(size_t capacity, const whit_allocator *allocator, whit_draft *draft, whit_error *error);
void whit_draft_close(whit_draft *draft);
void whit_draft_push(whit_draft *draft, int32_t id);
/* At most n_most guesses; returns their number, 0 if the last tokens have no earlier occurrence. */
uint32_t whit_draft_guess(const whit_draft *draft, uint32_t n_most, int32_t *ids);

#endif
