/* SPDX-License-Identifier: MIT */
#include "base/bounds.h"
#include "editor/screen.h"

#include <stdlib.h>

bool whit_screen_resize(whit_screen *screen, int n_columns, int n_rows)
{
    n_columns = (int)whit_within(n_columns, 1, 1000);
    n_rows = (int)whit_within(n_rows, 1, 1000);
    int wanted = n_columns * n_rows;
    if (wanted > screen->room_cells) {
        whit_cell *cells = realloc(screen->cells, (size_t)wanted * sizeof *cells);
        if (!cells) return false;
        screen->cells = cells;
        screen->room_cells = wanted;
    }
    screen->n_columns = n_columns;
    screen->n_rows = n_rows;
    whit_screen_clear(screen);
    return true;
}

void whit_screen_free(whit_screen *screen)
{
    free(screen->cells);
    *screen = (whit_screen){0};
}

void whit_screen_clear(whit_screen *screen)
{
    for (int y = 0; y < screen->n_rows; y++) whit_screen_fill(screen, 0, y, screen->n_columns, WHIT_STYLE_TEXT);
    screen->cursor_x = screen->cursor_y = -1;
}

static bool inside(const whit_screen *screen, int x, int y)
{
    return x >= 0 && y >= 0 && x < screen->n_columns && y < screen->n_rows;
}

void whit_screen_cell(whit_screen *screen, int x, int y, int width, whit_style style, uint8_t flags,
                      const uint32_t *codes, size_t n_codes)
{
    if (!inside(screen, x, y)) return;
    whit_cell *cell = &screen->cells[y * screen->n_columns + x];
    *cell = (whit_cell){.style = (uint8_t)style, .flags = flags};
    for (size_t i = 0; i < n_codes && i < WHIT_CELL_CODES; i++) cell->codes[i] = codes[i];
    if (width < 2) return;
    if (x + 1 >= screen->n_columns) { /* a wide character that does not fit into the last column becomes a blank */
        *cell = (whit_cell){.codes = {' '}, .style = (uint8_t)style, .flags = flags};
        return;
    }
    cell[1] = (whit_cell){.style = (uint8_t)style, .flags = flags};
}

void whit_screen_fill(whit_screen *screen, int x, int y, int limit, whit_style style)
{
    static const uint32_t space = ' ';
    for (; x < limit; x++) whit_screen_cell(screen, x, y, 1, style, 0, &space, 1);
}

void whit_screen_glyph(whit_screen *screen, int x, int y, int first, int limit, whit_style style, uint8_t flags,
                       const whit_glyph *glyph)
{
    for (size_t i = 0, n; i < glyph->n_codes; i += n) {
        int width = glyph->widths[i];
        for (n = 1; i + n < glyph->n_codes && !glyph->widths[i + n];) n++;
        if (x >= first && x + width <= limit) whit_screen_cell(screen, x, y, width, style, flags, glyph->codes + i, n);
        x += width;
    }
}

int whit_screen_put_n(whit_screen *screen, int x, int y, int limit, whit_style style, const char *text, size_t n)
{
    if (limit > screen->n_columns) limit = screen->n_columns;
    whit_glyph glyph;
    for (size_t at = 0; at < n; at += glyph.n_bytes) {
        whit_glyph_read((const uint8_t *)text + at, n - at, &glyph);
        if (x + glyph.width > limit) break;
        whit_screen_glyph(screen, x, y, 0, limit, style, 0, &glyph);
        x += glyph.width;
    }
    return x;
}

int whit_screen_put(whit_screen *screen, int x, int y, int limit, whit_style style, const char *text)
{
    return whit_screen_put_n(screen, x, y, limit, style, text, strlen(text));
}
