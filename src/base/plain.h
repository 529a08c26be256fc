/* SPDX-License-Identifier: MIT
 * Makes text from outside safe for a terminal or a line of a log: controls and bytes that are not UTF-8 are replaced by
 * '?', characters that are not seen or that reorder others by their number, <U+202E>. One filter for error lines,
 * messages and output, and a stricter one for what a person agrees to, which tells every two texts apart. */
#ifndef WHIT_BASE_PLAIN_H
#define WHIT_BASE_PLAIN_H

#include "base/mem.h"

/* Holds a character that was split between two pieces of text. Zero-initialised: no bytes are held. */
typedef struct whit_plain {
    uint8_t held[4];
    uint8_t n_held;
    uint8_t n_joiners; /* joiners that may still follow the last character, which was outside ASCII and seen */
    bool is_narrow;    /* hidden characters become '?', so that the text does not grow */
} whit_plain;

#define WHIT_PLAIN_ROOM(n) (4 * (size_t)(n) + 16) /* bytes that a piece of n bytes may become */

/* Returns whether readers do not see the character, or whether it changes the order of others (CVE-2021-42574). An
 * unassigned code point is not seen, either: terminals leave it out. */
bool whit_plain_is_hidden(uint32_t code);
/* Returns whether a text has a hidden character. Up to two joiners and variation selectors after a character outside
 * ASCII belong to scripts and emoji and do not count. */
bool whit_plain_has_hidden(const char *text, size_t n);

/* Copies `text` without controls: U+0000 to U+001F but line feed and tab, U+007F, U+0080 to U+009F. Hidden characters
 * become marks, except the joiners that whit_plain_has_hidden does not count. `out` has room for WHIT_PLAIN_ROOM(n)
 * bytes; returns how many were written. An unfinished character at the end waits in `state` for the next piece. */
size_t whit_plain_text(whit_plain *state, const char *text, size_t n, char *out);
/* Writes the rest at the end: '?' for an incomplete character. The rules are those of whit_plain_text. */
size_t whit_plain_end(whit_plain *state, char *out);

/* Changes a whole line of n bytes in place: line feeds, tabs and hidden characters become '?', too. Returns its new
 * length. */
size_t whit_plain_line(char *line, size_t n);

typedef enum whit_plain_kept {
    WHIT_PLAIN_NAME,  /* one line: line feeds, tabs and a blank at either end are marked, too */
    WHIT_PLAIN_LINES, /* line feeds and tabs stay */
    WHIT_PLAIN_ENDS,  /* CR LF stays unchanged, too */
} whit_plain_kept;

/* Appends `text` as a person must see it before agreeing to it. Every control, hidden or private character, blank
 * outside of ASCII and combining mark after four others is marked by its number, <U+202E>, every byte that is not UTF-8
 * as <0xE9>, and a '<' that begins such a mark in the text itself as <U+003C>: no two texts look alike to a program.
 * The result is false if memory runs out. */
bool whit_plain_show(const char *text, size_t n, whit_plain_kept kept, whit_buf *out);

#endif
