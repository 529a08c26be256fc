/* SPDX-License-Identifier: MIT */
#include "editor/display.h"

#include "whit_config.h"

#if WHIT_HAVE_NCURSESW
#define NCURSES_WIDECHAR 1
#include "base/phrase.h"
#include "editor/curses_names.h"

#include <dlfcn.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

struct whit_curses {
    void *library;
    WINDOW **screen; /* address of ncurses' variable stdscr */
    int *n_colors;
#define MEMBER(name) __typeof__(&name) name;
    EDITOR_CURSES(MEMBER)
#undef MEMBER
    FILE *in, *out;
    bool colored, shown;
};

/* Loads ncursesw. The library is never unloaded, because it stores pointers to itself until the process ends. */
static bool load_curses(struct whit_curses *curses)
{
    curses->library = dlopen("libncursesw.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!curses->library) return false;
    curses->screen = dlsym(curses->library, "stdscr");
    curses->n_colors = dlsym(curses->library, "COLORS");
    bool ok = curses->screen && curses->n_colors;
#define LOAD(name) ok = (*(void **)&curses->name = dlsym(curses->library, #name)) && ok;
    EDITOR_CURSES(LOAD)
#undef LOAD
    return ok;
}

/* ---- colours ------------------------------------------------------------------------------- */

/* Initialises the colours, if the theme has any, NO_COLOR is not set and the terminal has at least 8. For a terminal
 * with 24-bit colours it only sets *is_direct, because terminfo describes such terminals with fewer colours. */
static void begin_colors(struct whit_curses *curses, const whit_theme *theme, bool *is_direct)
{
    const char *depth = getenv("COLORTERM");
    if (getenv("NO_COLOR") || !theme->colored || curses->start_color() == ERR || *curses->n_colors < 8) return;
    *is_direct = depth && (!strcmp(depth, "truecolor") || !strcmp(depth, "24bit"));
    if (*is_direct) return;
    curses->use_default_colors();
    bool many = *curses->n_colors >= 256;
    for (short i = 0; i <= WHIT_N_STYLES; i++) {
        whit_look look = i < WHIT_N_STYLES ? theme->looks[i] : theme->match;
        int ink = many ? whit_color_256(look.ink) : whit_color_8(look.ink);
        int paper = many ? whit_color_256(look.paper) : whit_color_8(look.paper);
        curses->init_pair((short)(i + 1), (short)ink, (short)paper);
    }
    curses->colored = true;
}

/* Returns a cell's attributes and sets *pair to its colour pair. Bars and matches are shown in reverse video if the
 * terminal cannot show their background colour. */
static attr_t attributes_of(const struct whit_curses *curses, const whit_theme *theme, const whit_cell *cell,
                            short *pair)
{
    static const attr_t known[] = {A_BOLD, A_DIM, A_ITALIC, A_UNDERLINE, A_REVERSE};
    whit_look look = whit_theme_look(theme, cell);
    attr_t attributes = 0;
    for (int i = 0; i < 5; i++)
        if (look.attributes & 1 << i) attributes |= known[i];
    bool bar = cell->style == WHIT_STYLE_STATUS || cell->style == WHIT_STYLE_STATUS_OTHER ||
        cell->style == WHIT_STYLE_LIST_HERE || (cell->flags & WHIT_CELL_MATCH);
    bool paper = curses->colored && (*curses->n_colors >= 256 || whit_color_8(look.paper) >= 0);
    if (bar && look.paper != WHIT_COLOR_NONE && !paper) attributes ^= A_REVERSE;
    *pair = 0;
    if (curses->colored) *pair = (short)((cell->flags & WHIT_CELL_MATCH ? WHIT_N_STYLES : cell->style) + 1);
    return attributes;
}

/* ---- showing ------------------------------------------------------------------------------- */

void whit_curses_show(struct whit_curses *curses, const whit_theme *theme, const whit_screen *screen)
{
    WINDOW *window = *curses->screen;
    for (int y = 0; y < screen->n_rows; y++) {
        for (int x = 0; x < screen->n_columns; x++) {
            const whit_cell *cell = &screen->cells[y * screen->n_columns + x];
            if (!cell->codes[0]) continue; /* right half of a wide character */
            bool wide = x + 1 < screen->n_columns && !cell[1].codes[0];
            wchar_t text[WHIT_CELL_CODES + 1] = {0};
            for (int i = 0; i < WHIT_CELL_CODES && cell->codes[i]; i++) text[i] = (wchar_t)cell->codes[i];
            /* The C library's tables of widths may be older than the editor's. A character whose width differs is
             * replaced by U+FFFD. */
            if (wcwidth(text[0]) != (wide ? 2 : 1)) {
                text[0] = 0xFFFD;
                text[1] = 0;
                wide = false;
            }
            for (int i = 1; text[i]; i++)
                if (wcwidth(text[i]) != 0) text[i] = 0;
            short pair;
            cchar_t out;
            attr_t attributes = attributes_of(curses, theme, cell, &pair);
            curses->setcchar(&out, text, attributes, pair, NULL);
            curses->wmove(window, y, x);
            /* at the last cell of the screen the result is ERR, although the cell is written */
            curses->wadd_wch(window, &out);
            if (!wide && x + 1 < screen->n_columns && !cell[1].codes[0]) {
                wchar_t blank[2] = L" ";
                curses->setcchar(&out, blank, attributes, pair, NULL);
                curses->wadd_wch(window, &out);
            }
        }
    }
    bool visible = screen->cursor_x >= 0;
    if (visible) curses->wmove(window, screen->cursor_y, screen->cursor_x);
    if (visible != curses->shown) curses->curs_set(visible);
    curses->shown = visible;
    curses->wrefresh(window);
}

void whit_curses_resize(struct whit_curses *curses, int n_columns, int n_rows)
{
    curses->resizeterm(n_rows, n_columns);
    curses->wredrawln(*curses->screen, 0, n_rows);
}

static FILE *open_again(int fd, const char *mode)
{
    int own = dup(fd);
    FILE *file = own < 0 ? NULL : fdopen(own, mode);
    if (!file && own >= 0) close(own);
    return file;
}

static void free_curses(struct whit_curses *curses)
{
    if (curses->out) fclose(curses->out);
    if (curses->in) fclose(curses->in);
    free(curses);
}

whit_status whit_curses_open(whit_display *display, const whit_theme *theme, whit_error *error)
{
    const char *type = getenv("TERM");
    struct whit_curses *curses = calloc(1, sizeof *curses);
    if (!curses) return whit_fail_memory(error, "the screen", sizeof *curses);
    if (!load_curses(curses)) {
        free(curses);
        return WHIT_OK;
    }
    whit_status status = WHIT_OK;
    if (!(curses->out = open_again(display->out, "w")) || !(curses->in = open_again(display->in, "r")))
        status = whit_fail_errno(error, "the terminal", "open");
    else if (!type || !*type || !curses->newterm(NULL, curses->out, curses->in))
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                           "the terminal '%s' is not known: set TERM, for example to xterm", whit_or_empty(type));
    if (status != WHIT_OK) {
        free_curses(curses);
        return status;
    }
    curses->raw();
    curses->noecho();
    curses->nonl();
    curses->typeahead(-1); /* otherwise ncurses would interrupt its output to check for typed keys */
    curses->keypad(*curses->screen, TRUE);
    curses->shown = true;
    begin_colors(curses, theme, &display->direct);
    if (display->direct) curses->wrefresh(*curses->screen); /* switches to the alternate screen */
    display->curses = curses;
    return WHIT_OK;
}

void whit_curses_close(struct whit_curses *curses)
{
    curses->endwin();
    free_curses(curses);
}

#else

whit_status whit_curses_open(whit_display *display, const whit_theme *theme, whit_error *error)
{
    (void)display, (void)theme, (void)error;
    return WHIT_OK;
}

void whit_curses_show(struct whit_curses *curses, const whit_theme *theme, const whit_screen *screen)
{
    (void)curses, (void)theme, (void)screen;
}

void whit_curses_resize(struct whit_curses *curses, int n_columns, int n_rows)
{
    (void)curses, (void)n_columns, (void)n_rows;
}

void whit_curses_close(struct whit_curses *curses)
{
    (void)curses;
}

#endif
