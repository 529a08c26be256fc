/* SPDX-License-Identifier: MIT
 * Reads glyphs: a glyph is one character to a person, which is an extended grapheme cluster (UAX #29, by utf8proc's
 * break property). A joined emoji, an emoji with a skin tone, a flag, a Hangul syllable and a letter with combining
 * marks are one glyph each.
 *
 * Terminals disagree about the width of such sequences. A glyph is therefore drawn by characters on whose width all
 * agree: an emoji with others or a tone by its first character, a flag by its two letters, jamo by their syllable.
 * Control characters, characters that reorder text and characters that cannot be seen are written out (^A, <ff>,
 * <202e>), unless they only shape the character to which they belong. */
#ifndef WHIT_EDITOR_GLYPH_H
#define WHIT_EDITOR_GLYPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHIT_GLYPH_CODES 32
#define WHIT_GLYPH_BYTES 128 /* maximum size of a glyph in bytes; a longer cluster is divided */

typedef struct whit_glyph {
    uint32_t codes[WHIT_GLYPH_CODES]; /* code points to draw */
    uint8_t widths[WHIT_GLYPH_CODES]; /* width of each code point in columns; 0: it combines with the preceding one */
    uint8_t n_codes;
    bool is_foreign; /* the glyph is drawn by other characters than its own, such as <202e> */
    uint32_t n_bytes;
    int width; /* sum of the widths */
} whit_glyph;

/* Reads the glyph at the start of n > 0 bytes; at most WHIT_GLYPH_BYTES belong to it. Tabs and line feeds are treated
 * as control characters. */
void whit_glyph_read(const uint8_t *bytes, size_t n, whit_glyph *glyph);
/* Returns the start of the glyph that contains byte `at` < n. The search begins at the last certain glyph boundary at
 * or before `at`, or at the first byte. */
size_t whit_glyph_begin(const uint8_t *bytes, size_t n, size_t at);
/* Returns the width in columns of a text when drawn by whit_screen_put(). */
int whit_glyphs_width(const char *text, size_t n);

#endif
