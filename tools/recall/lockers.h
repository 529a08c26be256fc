/* SPDX-License-Identifier: MIT
 * Names and the letters of their lockers, for the recall model: its text (recall.c) and its questions (the tests). */
#ifndef WHIT_TOOLS_RECALL_LOCKERS_H
#define WHIT_TOOLS_RECALL_LOCKERS_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

#define LOCKERS_NAMES       16
#define LOCKERS_LETTERS     16
#define LOCKERS_LABEL_BYTES 5

typedef struct lockers {
    uint32_t n;                   /* names that take part */
    uint32_t name[LOCKERS_NAMES]; /* by rank */
    char letter[LOCKERS_NAMES];   /* by name */
    uint64_t total;               /* of the weights */
} lockers;

/* A name as text, " ba", with its letter " baK" where that is not 0. */
static inline void lockers_label(uint32_t name, char letter, char text[LOCKERS_LABEL_BYTES])
{
    text[0] = ' ';
    text[1] = "bdfgklmnprstvwxz"[name];
    text[2] = "aeio"[name % 4];
    text[3] = letter;
    text[4] = 0;
}

/* The weight of a rank: whole numbers, so that every machine draws alike. */
static inline uint64_t lockers_weight(uint32_t rank)
{
    return 1000000 / ((rank + 1) * (rank + 1));
}

/* Who takes part in a document, in which order of frequency, and everybody's letter. */
static inline void lockers_draw(lockers *lockers, whit_rng *rng, uint32_t n)
{
    *lockers = (struct lockers){.n = n};
    for (uint32_t i = 0; i < LOCKERS_NAMES; i++) {
        const uint32_t at = (uint32_t)whit_rng_below(rng, i + 1);
        lockers->name[i] = lockers->name[at];
        lockers->name[at] = i;
        lockers->letter[i] = (char)('A' + whit_rng_below(rng, LOCKERS_LETTERS));
    }
    for (uint32_t r = 0; r < n; r++) lockers->total += lockers_weight(r);
}

/* The name that is next. */
static inline uint32_t lockers_next(const lockers *lockers, whit_rng *rng)
{
    uint64_t at = whit_rng_below(rng, lockers->total);
    uint32_t rank = 0;
    for (; at >= lockers_weight(rank); rank++) at -= lockers_weight(rank);
    return lockers->name[rank];
}

#endif
