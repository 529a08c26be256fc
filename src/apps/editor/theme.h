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
    whit_look match; /* look of a search's matches */
    bool colored;
} whit_theme;

/* Makes a theme by its name: "auto", "dark", "light" or "plain" (no colours). Returns false for another name, and
 * *theme is unchanged. "auto" is light if COLORFGBG says that the terminal's background is light. */
bool whit_theme_named(const char *name, whit_theme *theme);
/* Applies "STYLE = LOOK": the name of a style ("comment", "match" ...) and a look such as "#808080 italic", "white
 * on #303030" or "default bold". If it is invalid, it returns false with the reason in `why`, and the theme is
 * unchanged. */
bool whit_theme_set(whit_theme *theme, const char *style, const char *look, char *why, size_t why_bytes);

/* Returns the look of a cell: the look of its style, modified by its flags. */
whit_look whit_theme_look(const whit_theme *theme, const whit_cell *cell);

/* These functions return the nearest of the 256 colours of xterm (of those from 16 on, which no terminal redefines),
 * and of the first 8 colours. WHIT_COLOR_NONE stays, and of 8 colours greys that are neither black nor white become it,
 * too. */
int whit_color_256(int32_t color);
int whit_color_8(int32_t color);

/* Appends the ECMA-48 sequences that turn a terminal's display of `before` into a display of `after`, with 24-bit
 * colours. If `before` is NULL or has another size, the terminal is cleared first. Returns false if memory runs out. */
bool whit_theme_paint(const whit_theme *theme, const whit_screen *before, const whit_screen *after, whit_buf *out);

#endif
