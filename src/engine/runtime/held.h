/* SPDX-License-Identifier: MIT
 * Filters stop sequences: generated text that might be the beginning of a stop string is held back until more text
 * decides.
 *
 *     text:  [ taken | final, not taken yet | held back ]  */
#ifndef WHIT_RUNTIME_HELD_H
#define WHIT_RUNTIME_HELD_H

#include "base/mem.h"

typedef struct whit_stop_string {
    const char *text;
    size_t n;
} whit_stop_string;

typedef struct whit_held {
    whit_buf text;
    /* offsets in `text`: end of the text that was returned to the caller, and end of the text that is not held back */
    size_t n_taken, n_final;
    whit_stop_string *stops; /* (n_stops): copies of the stop strings; their texts follow the array in the same
                              * allocation */
    size_t n_stops, stops_bytes, longest_stop;
    bool stopped;  /* a stop string was found, so further text is dropped */
    size_t i_stop; /* index of the stop string that was found */
} whit_held;

/* Copies the stop strings (empty strings never match), and reserves text_bytes bytes for text. */
whit_status whit_held_open(const char *const *stop, size_t n_stop, size_t text_bytes, const whit_allocator *allocator,
                           whit_held *held, whit_error *error);
void whit_held_close(whit_held *held);
/* Adds text. `last`: no more text follows, so nothing is held back. On failure no text is added. */
whit_status whit_held_add(whit_held *held, const char *text, size_t n, bool last, whit_error *error);
/* Returns the text that is not held back and was not returned before (*n bytes); valid until the next whit_held_add. */
const char *whit_held_take(whit_held *held, size_t *n);

#endif
