/* SPDX-License-Identifier: MIT
 * The tokens a sampler has seen, and what repeating them costs: llama.cpp's penalties and DRY.
 *
 * A ring of the last n_history tokens. Both penalties edit newly loaded candidates, and only
 * those of tokens that occur in their window. Nothing is allocated after opening. */
#ifndef WHIT_RUNTIME_HISTORY_H
#define WHIT_RUNTIME_HISTORY_H

#include "runtime/candidates.h"

typedef struct whit_history {
    int32_t *ring;           /* (n_history) */
    int32_t *recent;         /* (n_history) the window, latest first, while DRY looks at it */
    uint32_t *matches;       /* (n_history) how many tokens match the latest ones, from each place on */
    uint32_t *per_id;        /* (n_vocab) zeros between calls */
    const uint8_t *breakers; /* (n_vocab / 8 rounded up) bits: tokens that no repetition spans;
                                NULL: none; the caller's */
    uint32_t n_vocab, n_history;
    uint32_t head, n_tokens; /* next place to write; tokens in the ring */
    const whit_allocator *allocator;
} whit_history;

whit_status whit_history_open(uint32_t n_vocab, uint32_t n_history, const whit_allocator *allocator,
                              whit_history *history, whit_error *error);
void whit_history_close(whit_history *history);
void whit_history_push(whit_history *history, uint32_t id);
void whit_history_clear(whit_history *history);

/* Over the last `window` tokens: a logit is divided by `repeat` (multiplied where it is negative),
 * then lowered by `frequency` per occurrence and by `presence` once. */
void whit_history_penalize(whit_history *history, whit_candidates *candidates, uint32_t window, float repeat,
                           float frequency, float presence);
/* "Don't repeat yourself": a token that would lengthen to n + 1 a repetition of the last n tokens,
 * n >= allowed, is lowered by multiplier * base^(n - allowed). Repetitions end at breakers. */
void whit_history_penalize_repetition(whit_history *history, whit_candidates *candidates, uint32_t window,
                                      float multiplier, float base, uint32_t allowed);

#endif
