/* SPDX-License-Identifier: MIT
 * Holds the screen, a grid of cells with characters and styles. Terminals and tests read it; drawing never touches a
 * terminal. */
#ifndef WHIT_EDITOR_SCREEN_H
#define WHIT_EDITOR_SCREEN_H

#include "base/mem.h"
#include "editor/glyph.h"

typedef enum whit_style {
    WHIT_STYLE_TEXT,
    WHIT_STYLE_KEYWORD,
    WHIT_STYLE_TYPE,
    WHIT_STYLE_CONSTANT,
    WHIT_STYLE_STRING,
    WHIT_STYLE_NUMBER,
    WHIT_STYLE_COMMENT,
    WHIT_STYLE_FUNCTION,
    WHIT_STYLE_DIRECTIVE,
    WHIT_STYLE_FOREIGN, /* control characters and invalid UTF-8 */
    WHIT_STYLE_MARGIN,
    WHIT_STYLE_MARGIN_HERE,
    WHIT_STYLE_ADDED,
    WHIT_STYLE_CHANGED,
    WHIT_STYLE_REMOVED,
    WHIT_STYLE_STATUS,
    WHIT_STYLE_STATUS_OTHER, /* status line of a window that is not the current one */
    WHIT_STYLE_PROMPT,
    WHIT_STYLE_ERROR,
    WHIT_STYLE_LIST,
    WHIT_STYLE_LIST_HERE,
    WHIT_STYLE_SUGGESTION, /* text suggested by a model */
    WHIT_N_STYLES,
} whit_style;
/* Flags of a cell, in addition to its style. */
enum { WHIT_CELL_SELECTED = 1, WHIT_CELL_MATCH = 2, WHIT_CELL_CURSOR = 4, WHIT_CELL_BRACKET = 8, WHIT_CELL_WRONG = 16 };

#define WHIT_CELL_CODES 4

typedef struct whit_cell {
    /* a character and its combining characters, ended by 0 if there is room; codes[0] is 0 in the right half of a wide
     * character */
    uint32_t codes[WHIT_CELL_CODES];
    uint8_t style, flags;
} whit_cell;

typedef struct whit_screen {
    int n_columns, n_rows, room_cells;
    whit_cell *cells;
    int cursor_x, cursor_y; /* position of the cursor; -1: hidden */
} whit_screen;

/* Sets the size, limited to the range 1 x 1 to 1000 x 1000, and clears the screen. Returns false if memory runs out;
 * the screen is then unchanged. */
bool whit_screen_resize(whit_screen *screen, int n_columns, int n_rows);
void whit_screen_free(whit_screen *screen);
void whit_screen_clear(whit_screen *screen);
/* Writes UTF-8 text up to column `limit` (exclusive) and returns the column after it. Characters that glyph.h writes as
 * codes appear as codes. Outside the screen nothing is written. */
int whit_screen_put(whit_screen *screen, int x, int y, int limit, whit_style style, const char *text);
int whit_screen_put_n(whit_screen *screen, int x, int y, int limit, whit_style style, const char *text, size_t n);
/* Writes one character of `width` columns (1 or 2) with its combining characters. */
void whit_screen_cell(whit_screen *screen, int x, int y, int width, whit_style style, uint8_t flags,
                      const uint32_t *codes, size_t n_codes);
/* Draws the part of a glyph that is in the columns first <= x < limit. */
void whit_screen_glyph(whit_screen *screen, int x, int y, int first, int limit, whit_style style, uint8_t flags,
                       const whit_glyph *glyph);
void whit_screen_fill(whit_screen *screen, int x, int y, int limit, whit_style style);

#endif
