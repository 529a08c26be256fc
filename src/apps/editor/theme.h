/* SPDX-License-Identifier: MIT
 * Holds the colours of a screen's styles. Colours are stored as 24 bits; terminals with fewer colours get the nearest
 * ones. */
#ifndef WHIT_EDITOR_THEME_H
#define WHIT_EDITOR_THEME_H

#include "editor/screen.h"

#define WHIT_COLOR_NONE (-1) /* the terminal's default colour */

enum {
    WHIT_LOOK_BOLD = 1,
    WHIT_LOOK_DIM = 2,
    WHIT_LOOK_ITALIC = 4,
    WHIT_LOOK_UNDERLINE = 8,
    WHIT_LOOK_REVERSE = 16,
};

typedef struct whit_look {
    int32_t ink, paper; /* 0xRRGGBB, or WHIT_COLOR_NONE */
    uint8_t attributes;
} whit_look;

typedef struct whit_theme {
    whit_look looks[WHIT_N_STYLES];
    whit_look match; /* look of search matches */
    bool colored;
} whit_theme;

/* Sets *theme to a theme by its name: "auto", "dark", "light" or "plain" (no colours). Returns false, with *theme
 * unchanged, for another name. "auto" chooses "light" if COLORFGBG says that the terminal's background is light,
 * otherwise "dark". */
bool whit_theme_named(const char *name, whit_theme *theme);
/* Sets the look of one style: `style` is its name ("comment", "match" ...), `look` a text such as "#808080 italic",
 * "white on #303030" or "default bold". If one of both is invalid, returns false with the reason in `why`, and the
 * theme is unchanged. */
bool whit_theme_set(whit_theme *theme, const char *style, const char *look, char *why, size_t why_bytes);

/* Returns the look of a cell: the look of its style, modified by its flags. */
whit_look whit_theme_look(const whit_theme *theme, const whit_cell *cell);

/* Return the nearest of xterm's 256 colours (only 16 and above, since terminals redefine the others), and of the 8
 * basic colours. WHIT_COLOR_NONE stays WHIT_COLOR_NONE; whit_color_8() also returns it for greys that are neither black
 * nor white. */
int whit_color_256(int32_t color);
int whit_color_8(int32_t color);

/* Appends the ECMA-48 escape sequences that change a terminal's screen from `before` to `after`, with 24-bit colours.
 * If `before` is NULL or has another size, the terminal is cleared first. Returns false if memory runs out. */
bool whit_theme_paint(const whit_theme *theme, const whit_screen *before, const whit_screen *after, whit_buf *out);

#endif
