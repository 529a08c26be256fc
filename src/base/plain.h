/* SPDX-License-Identifier: MIT
 * Makes text from outside safe for a terminal or a line of a log: controls and bytes that are not UTF-8 are replaced by
 * '?', characters that are invisible or that reorder others by their number, <U+202E>. There is one filter for error
 * lines, messages and output, and a stricter one for text that a person must agree to, which shows any two different
 * texts differently. */
#ifndef WHIT_BASE_PLAIN_H
#define WHIT_BASE_PLAIN_H

#include "base/mem.h"

/* State between two pieces of text: the first bytes of a character that was split between them. Zero-initialise it
 * before the first piece. */
typedef struct whit_plain {
    uint8_t held[4];
    uint8_t n_held;
    uint8_t n_joiners; /* joiners that may still follow before they count as hidden; 0 unless a visible character
                        * outside ASCII precedes */
    bool is_narrow;    /* hidden characters become '?' instead of marks, so that the text does not grow */
} whit_plain;

#define WHIT_PLAIN_ROOM(n) (4 * (size_t)(n) + 16) /* maximum of bytes that n bytes of text may become */

/* Returns whether the character is invisible or changes the order of others (CVE-2021-42574). Unassigned code points
 * count too, because terminals do not draw them. */
bool whit_plain_is_hidden(uint32_t code);
/* Returns whether the character looks like a blank and is not U+0020. Private-use characters count too, because a font
 * may have no glyph for them. */
bool whit_plain_is_other_blank(uint32_t code);
/* Returns whether a text has a hidden character, or a combining mark that does not belong over its character. Up to
 * two joiners and variation selectors after a character outside ASCII belong to scripts and emoji and do not count. */
bool whit_plain_has_hidden(const char *text, size_t n);

/* Copies a piece of `text` to `out`, which has room for WHIT_PLAIN_ROOM(n) bytes; returns the number of bytes written.
 * Bytes that are not UTF-8 and controls (U+0000 to U+001F except line feed and tab, U+007F to U+009F) become '?'.
 * Hidden characters, except the joiners that whit_plain_has_hidden does not count, become marks such as <U+202E>, or
 * '?' if state->is_narrow. An incomplete character at the end stays in `state` for the next piece. */
size_t whit_plain_text(whit_plain *state, const char *text, size_t n, char *out);
/* Ends a text: writes '?' if `state` contains an incomplete character. Returns the number of bytes written, 0 or 1. */
size_t whit_plain_end(whit_plain *state, char *out);

/* Replaces in place, in a line of n bytes, controls (line feeds and tabs too), hidden characters and bytes that are not
 * UTF-8 by '?'. Returns the line's new length. */
size_t whit_plain_line(char *line, size_t n);

typedef enum whit_plain_kept {
    WHIT_PLAIN_NAME,  /* a name in one line: line feeds, tabs and a space at either end are marked */
    WHIT_PLAIN_LINES, /* line feeds and tabs are kept */
    WHIT_PLAIN_ENDS,  /* line feeds, tabs and CR LF are kept */
    /* as WHIT_PLAIN_LINES; the first character of each line is a difference's sign, which may be a blank */
    WHIT_PLAIN_SIGNED,
} whit_plain_kept;

/* Appends `text` as a person must see it before agreeing to it. Controls, hidden and private-use characters, blanks
 * outside ASCII, letters that look like Latin ones or signs (lookalike.h), and combining marks after four others or
 * over a character over which they do not belong are replaced by marks such as <U+202E>, bytes that are not UTF-8 by
 * marks such as <0xE9>. So are blanks that a reader does not see: those at the end of a line, and runs of more than 64
 * columns. A '<' that begins such a mark in the text itself becomes <U+003C>, so that different texts are always shown
 * differently. The result is false if memory runs out. */
bool whit_plain_show(const char *text, size_t n, whit_plain_kept kept, whit_buf *out);
#define WHIT_PLAIN_ORDER "\xE2\x80\x8E" /* U+200E, the left-to-right mark */
/* Appends `text` with left-to-right marks before the first and after each run of right-to-left letters, words
 * divided by single blanks, or of Arabic digits. A terminal or editor that orders such letters (UAX #9) then shows each
 * run from right to left and everything else where the text has it: without the marks, a run would also draw the digits
 * and punctuation beside it to its other side. The result is false if memory runs out. */
bool whit_plain_keep_order(const char *text, size_t n, whit_buf *out);
/* Returns the maximum number of columns of a character in usual terminals: one or two. A combining mark has one, since
 * some terminals draw it beside the letter. */
unsigned whit_plain_columns(uint32_t code);
#define WHIT_PLAIN_ROW "> " /* begins each further row of a line that is longer than a row of the terminal */
/* Appends `text` for a terminal, as whit_plain_keep_order() does, and with each tab replaced by blanks up to the next
 * multiple of eight columns: a tab in the terminal's last column moves nothing, so that the words around it would be
 * shown as one. A line that does not fit in a row of n_columns is broken into rows, which begin with WHIT_PLAIN_ROW:
 * where the terminal breaks it, a row that begins with "+" would look like the next line of a difference. n_columns: 0
 * breaks no lines. The result is false if memory runs out. */
bool whit_plain_for_terminal(const char *text, size_t n, unsigned n_columns, whit_buf *out);

#endif
