/* SPDX-License-Identifier: MIT
 * What a person calls one character: an extended grapheme cluster (UAX #29, by utf8proc's break
 * property), how it is shown in cells, and where it begins. Joined emoji, skin tones, flags, Hangul
 * syllables and combining marks are one glyph each.
 *
 * Terminals disagree about the width of such sequences. A glyph is therefore drawn by characters on
 * whose width all agree: a joined or toned emoji by its first one, a flag by its two letters, jamo by
 * their syllable. Controls, characters that reorder text and characters that cannot be seen are
 * written out (^A, <ff>, <202e>), unless they only shape the character that they belong to. */
#ifndef WHIT_EDITOR_GLYPH_H
#define WHIT_EDITOR_GLYPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHIT_GLYPH_CODES 32
#define WHIT_GLYPH_BYTES 128 /* a longer cluster is divided */

typedef struct whit_glyph {
    uint32_t codes[WHIT_GLYPH_CODES]; /* code points to draw */
    uint8_t widths[WHIT_GLYPH_CODES]; /* columns of each; 0: combines with the preceding one */
    uint8_t n_codes;
    bool is_foreign; /* displayed by other characters than its own */
    uint32_t n_bytes;
    int width; /* sum of the widths */
} whit_glyph;

/* Reads the glyph at the start of n > 0 bytes; those after the first WHIT_GLYPH_BYTES are not looked
 * at. Tabs and line feeds are controls here. */
void whit_glyph_read(const uint8_t *bytes, size_t n, whit_glyph *glyph);
/* Returns the start of the glyph that holds byte `at` < n. The search for it begins at the last place before `at` that
 * divides two glyphs for certain, or at the first byte. */
size_t whit_glyph_begin(const uint8_t *bytes, size_t n, size_t at);
/* Returns the width in columns of a text as whit_screen_put draws it. */
int whit_glyphs_width(const char *text, size_t n);

#endif
