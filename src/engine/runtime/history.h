/* SPDX-License-Identifier: MIT
 * Stores the last tokens that a sampler has seen, and computes penalties for repetitions: the penalties of llama.cpp,
 * and DRY.
 *
 * The last n_history tokens are in a ring buffer. Both penalties edit newly loaded candidates, and only the candidates
 * of tokens that occur in their window. Nothing is allocated after opening. */
#ifndef WHIT_RUNTIME_HISTORY_H
#define WHIT_RUNTIME_HISTORY_H

#include "runtime/candidates.h"

typedef struct whit_history {
    int32_t *ring;   /* (n_history) the last tokens */
    int32_t *recent; /* (n_history): tokens of the window that is being examined, latest first */
    /* (n_history): for each index in `recent`, how many tokens from there on equal the latest tokens (DRY) */
    uint32_t *matches;
    uint32_t *per_id; /* (n_vocab): scratch, all 0 between calls: number of occurrences of an id, or length of the
                       * repetition that it would give */
    /* (n_vocab / 8 rounded up): a bit per token, 1 for tokens (breakers) that end repetitions; owned by the caller;
     * NULL: none */
    const uint8_t *breakers;
    uint32_t n_vocab, n_history;
    uint32_t head, n_tokens; /* index in the ring of the next write; number of tokens in the ring */
    const whit_allocator *allocator;
} whit_history;

whit_status whit_history_open(uint32_t n_vocab, uint32_t n_history, const whit_allocator *allocator,
                              whit_history *history, whit_error *error);
void whit_history_close(whit_history *history);
void whit_history_push(whit_history *history, uint32_t id);
void whit_history_clear(whit_history *history);

/* Penalises every token that occurs in the last `window` tokens: its logit is divided by `repeat` (multiplied if
 * negative), then reduced by `frequency` for each occurrence and by `presence` once. */
void whit_history_penalize(whit_history *history, whit_candidates *candidates, uint32_t window, float repeat,
                           float frequency, float presence);
/* Applies DRY ("Don't repeat yourself"): if a token would lengthen a repetition of the last n tokens to n + 1, with n
 * >= allowed, its logit is reduced by multiplier * base^(n - allowed). Only the last `window` tokens are searched.
 * Repetitions end at breakers; breakers and banned tokens are not penalised. */
void whit_history_penalize_repetition(whit_history *history, whit_candidates *candidates, uint32_t window,
                                      float multiplier, float base, uint32_t allowed);

#endif
