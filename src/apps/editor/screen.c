/* SPDX-License-Identifier: MIT */
#include "editor/screen.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

bool whit_screen_resize(whit_screen *screen, int n_columns, int n_rows)
{
    n_columns = n_columns < 1 ? 1 : n_columns > 1000 ? 1000 : n_columns;
    n_rows = n_rows < 1 ? 1 : n_rows > 1000 ? 1000 : n_rows;
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

int whit_char_width(uint32_t code)
{
    if (code >= 32 && code < 127) return 1;
    if (code < 32 || code == 127 || code > 0x10FFFF) return -1;
    if (code < 0xA0) return -1;
    if (code < 0x300) return 1;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    if (category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS ||
        category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP)
        return -1;
    return utf8proc_charwidth((utf8proc_int32_t)code);
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
    if (x + 1 >= screen->n_columns) { /* half a character is none */
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

int whit_screen_put_n(whit_screen *screen, int x, int y, int limit, whit_style style, const char *text, size_t n)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + n;
    if (limit > screen->n_columns) limit = screen->n_columns;
    while (at < end) {
        size_t length;
        uint32_t codes[WHIT_CELL_CODES] = {whit_utf8_decode(at, (size_t)(end - at), &length)};
        int width = codes[0] == WHIT_UTF8_INVALID ? -1 : whit_char_width(codes[0]);
        size_t n_codes = 1;
        at += length;
        if (width < 1) {
            codes[0] = 0xFFFD;
            width = 1;
        }
        while (at < end && n_codes < WHIT_CELL_CODES) {
            uint32_t next = whit_utf8_decode(at, (size_t)(end - at), &length);
            if (next == WHIT_UTF8_INVALID || whit_char_width(next) != 0) break;
            codes[n_codes++] = next;
            at += length;
        }
        if (x + width > limit) break;
        whit_screen_cell(screen, x, y, width, style, 0, codes, n_codes);
        x += width;
    }
    return x;
}

int whit_screen_put(whit_screen *screen, int x, int y, int limit, whit_style style, const char *text)
{
    return whit_screen_put_n(screen, x, y, limit, style, text, strlen(text));
}
