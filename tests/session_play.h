/* SPDX-License-Identifier: MIT
 * Plays sessions at random: steps of any tokens of any sequences with any wanted rows, share, truncate, reuse,
 * mount, refused steps and guesses of a draft model, with any options and any level of instructions. The reference
 * is a session that is fed one token at a time. Every wanted row must have the reference's bits. */
#ifndef WHIT_TESTS_SESSION_PLAY_H
#define WHIT_TESTS_SESSION_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Source of the decisions: the bytes of `data` first, then numbers from `seed`; with seed 0 zeros, which end the
 * life. */
typedef struct play_source {
    const uint8_t *data;
    size_t size;
    uint64_t seed;
    uint32_t model; /* number of a model of random_model.h that is drawn; 0: a listed model, chosen by the decisions */
} play_source;

typedef struct play_counts {
    uint64_t n_sequences, n_guessed, n_guesses_compared, n_steps, n_tokens, n_rows, n_estimated, n_refused, n_shares,
        n_truncations, n_mounts, n_back, n_reuses, n_reused;
} play_counts;

/* Plays the life of one session. Returns false if a result differs; `why` then gets one line with the options and the
 * difference. */
bool session_play(play_source *source, play_counts *counts, char *why, size_t why_bytes);
/* Frees the models and references that the lives share. */
void session_play_end(void);

#endif
