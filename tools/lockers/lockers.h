/* SPDX-License-Identifier: MIT
 * Generates texts about names and the letters of their lockers, from which the recall model is trained (lockers.c) and
 * with which the test `recall` examines it.
 *
 * A word " baK" says that the name "ba" has the locker K. A word " ba" asks for the letter, and the next word, " baK",
 * answers. Letters are drawn anew for each document, so that only the document has the answers. After each answer a
 * name is due again 8 to 2,047 words later, each octave of distances equally likely. When no name is due, one of the
 * first few names is used. */
#ifndef WHIT_TOOLS_LOCKERS_H
#define WHIT_TOOLS_LOCKERS_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    LOCKERS_NAMES = 128,
    LOCKERS_LETTERS = 8,
    LOCKERS_LABEL_BYTES = 5,
    LOCKERS_ASKED = 10, /* names that an exam tells once and asks for at its end */
    LOCKERS_NEAREST = 256,
    LOCKERS_FARTHEST = 1900 /* words from telling to asking: at least NEAREST, fewer than FARTHEST */
};

typedef struct lockers_room {
    uint32_t n;                   /* number of names in the document */
    uint32_t name[LOCKERS_NAMES]; /* (n) */
    char letter[LOCKERS_NAMES];   /* letter of each name, in the order of `name` */
    uint32_t due[LOCKERS_NAMES];  /* number of the word at which a name is due; UINT32_MAX: never */
    bool is_told[LOCKERS_NAMES];
    uint32_t n_hot; /* the first n_hot names are used when no name is due */
} lockers_room;

/* Receives a text, one word per call; letter 0: the word is a question. */
typedef void lockers_word_fn(void *context, uint32_t name, char letter);

/* Writes the word for a name: " ba", or " baK" if `letter` is not 0. */
static inline void lockers_label(uint32_t name, char letter, char text[LOCKERS_LABEL_BYTES])
{
    text[0] = ' ';
    text[1] = "bdfgklmnprstvwxz"[name / 8];
    text[2] = "aeiouyhq"[name % 8];
    text[3] = letter;
    text[4] = 0;
}

static inline uint32_t lockers_below(whit_rng *rng, uint32_t n)
{
    return (uint32_t)whit_rng_below(rng, n);
}

/* Draws n names, from 4 to LOCKERS_NAMES, their letters, and the word at which each is due first, in the first seven
 * eighths of n_words. */
static inline void lockers_draw(lockers_room *room, whit_rng *rng, uint32_t n, uint32_t n_words)
{
    *room = (lockers_room){.n = n, .n_hot = 4 + lockers_below(rng, n / 4)};
    uint32_t all[LOCKERS_NAMES];
    for (uint32_t i = 0; i < LOCKERS_NAMES; i++) {
        const uint32_t at = lockers_below(rng, i + 1);
        all[i] = all[at];
        all[at] = i;
    }
    memcpy(room->name, all, n * sizeof *all);
    for (uint32_t i = 0; i < n; i++) {
        room->letter[i] = (char)('A' + lockers_below(rng, LOCKERS_LETTERS));
        room->due[i] = lockers_below(rng, n_words - n_words / 8);
    }
}

/* Returns the index of the name for word `at`: the name that is due first, if it is due by then, otherwise a random one
 * of the first n_hot names. */
static inline uint32_t lockers_next(const lockers_room *room, whit_rng *rng, uint32_t at)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < room->n; i++)
        if (room->due[i] < room->due[first]) first = i;
    return room->due[first] <= at ? first : lockers_below(rng, room->n_hot);
}

/* Writes a document of n_words words, or one more, in which n_names names return again and again. */
static inline void lockers_document(whit_rng *rng, uint32_t n_names, uint32_t n_words, lockers_word_fn *word,
                                    void *context)
{
    lockers_room room;
    lockers_draw(&room, rng, n_names, n_words);
    for (uint32_t at = 0; at < n_words;) {
        const uint32_t i = lockers_next(&room, rng, at);
        if (room.is_told[i]) word(context, room.name[i], 0), at++;
        word(context, room.name[i], room.letter[i]), at++;
        room.is_told[i] = true;
        const uint32_t octave = 8u << lockers_below(rng, 8);
        room.due[i] = at + octave + lockers_below(rng, octave);
    }
}

/* Writes an exam of n_words words, an even number from 2,000. Its last LOCKERS_ASKED pairs of words ask for names, and
 * answer, that were told only once, about LOCKERS_NEAREST to LOCKERS_FARTHEST words before. */
static inline void lockers_exam(whit_rng *rng, uint32_t n_words, lockers_word_fn *word, void *context)
{
    lockers_room room;
    uint32_t told_at[LOCKERS_ASKED];
    lockers_draw(&room, rng, LOCKERS_NAMES, n_words);
    const uint32_t end = n_words - 2 * LOCKERS_ASKED, first_asked = room.n - LOCKERS_ASKED;
    for (uint32_t k = 0; k < LOCKERS_ASKED; k++) {
        room.due[first_asked + k] = UINT32_MAX;
        told_at[k] = end + 2 * k - LOCKERS_NEAREST - lockers_below(rng, LOCKERS_FARTHEST - LOCKERS_NEAREST);
    }
    for (uint32_t at = 0; at < end;) {
        uint32_t k = 0;
        while (k < LOCKERS_ASKED && (told_at[k] > at || room.is_told[first_asked + k])) k++;
        const bool is_asked_later = k < LOCKERS_ASKED;
        const uint32_t i = is_asked_later ? first_asked + k : lockers_next(&room, rng, at);
        if (room.is_told[i] && at + 1 < end) word(context, room.name[i], 0), at++;
        word(context, room.name[i], room.letter[i]), at++;
        room.is_told[i] = true;
        const uint32_t octave = 8u << lockers_below(rng, 8);
        if (!is_asked_later) room.due[i] = at + octave + lockers_below(rng, octave);
    }
    for (uint32_t k = 0; k < LOCKERS_ASKED; k++) {
        word(context, room.name[first_asked + k], 0);
        word(context, room.name[first_asked + k], room.letter[first_asked + k]);
    }
}

#endif
