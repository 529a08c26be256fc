/* SPDX-License-Identifier: MIT
 * Sessions played at random: steps of any tokens of any sequences, rows wanted anywhere, share, truncate, reuse, mount,
 * refused steps, guesses of a draft model, with any options and any level of instructions, against a session that takes
 * one token at a time with those of this machine. Every wanted row must have its bits. */
#ifndef WHIT_TESTS_SESSION_PLAY_H
#define WHIT_TESTS_SESSION_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where decisions come from: bytes while there are some, then `seed` for as long as it takes; nothing but zeros,
 * and so an end, where that is 0. */
typedef struct play_source {
    const uint8_t *data;
    size_t size;
    uint64_t seed;
    uint32_t model; /* which of random_model.h, one that is drawn; 0: one of the others, by the decisions */
} play_source;

typedef struct play_counts {
    uint64_t n_sequences, n_guessed, n_guesses_compared, n_steps, n_tokens, n_rows, n_estimated, n_refused, n_shares,
        n_truncations, n_mounts, n_back, n_reuses, n_reused;
} play_counts;

/* Plays one life of a session. False where something differs: `why` (a line) says what, after the options. */
bool session_play(play_source *source, play_counts *counts, char *why, size_t why_bytes);
/* Frees the models and references that lives share. */
void session_play_end(void);

#endif
