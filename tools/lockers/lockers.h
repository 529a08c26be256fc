/* SPDX-License-Identifier: MIT
 * Names and the letters of their lockers: what the recall model learns from (lockers.c) and is asked (the test
 * `recall`).
 *
 * A document says who has which locker, " baK", and asks, " ba", which is answered at once, " baK". Letters are drawn
 * for each document anew, so that only the document tells them. A name comes again after 8 to 2,048 words, every
 * octave as often; a few names fill the room between. */
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
    LOCKERS_ASKED = 10, /* names that a document asks for at its end, having told them once */
    LOCKERS_NEAREST = 256,
    LOCKERS_FARTHEST = 1900 /* words before that */
};

typedef struct lockers_room {
    uint32_t n;                   /* names that take part */
    uint32_t name[LOCKERS_NAMES]; /* (n) */
    char letter[LOCKERS_NAMES];   /* by place in `name` */
    uint32_t due[LOCKERS_NAMES];  /* the word at which a place comes again; UINT32_MAX: never */
    bool is_told[LOCKERS_NAMES];
    uint32_t n_hot; /* the places that fill the room */
} lockers_room;

/* Where the text goes, a word at a time; letter 0: a question. */
typedef void lockers_word_fn(void *context, uint32_t name, char letter);

/* A name as text, " ba", with its letter " baK" where that is not 0. */
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

/* Draws the participants, their letters, and the word at which each appears first, within n_words. */
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

/* The place that is next at word `at`. */
static inline uint32_t lockers_next(const lockers_room *room, whit_rng *rng, uint32_t at)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < room->n; i++)
        if (room->due[i] < room->due[first]) first = i;
    return room->due[first] <= at ? first : lockers_below(rng, room->n_hot);
}

/* Writes n_words words, or one more, of names that come again and again. */
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

/* Writes n_words words, an even number of 2,000 or more, of which the last LOCKERS_ASKED pairs ask for names that have
 * been told once, LOCKERS_NEAREST to LOCKERS_FARTHEST words before they are asked for. */
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
