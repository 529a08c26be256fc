/* SPDX-License-Identifier: MIT
 * Shows screens on a terminal: by ncursesw, which supports terminals of every type, or, without ncursesw or with 24-bit
 * colours, by xterm's escape sequences. */
#ifndef WHIT_EDITOR_DISPLAY_H
#define WHIT_EDITOR_DISPLAY_H

#include "base/status.h"
#include "editor/screen.h"
#include "editor/theme.h"

#include <termios.h>

/* A terminal's display. Zero-initialise it and set `in` and `out`. */
typedef struct whit_display {
    int in, out;                /* descriptors of the terminal */
    bool direct;                /* the screen is painted by escape sequences, not by ncursesw */
    struct whit_curses *curses; /* NULL: ncursesw is not used */
    whit_screen before;         /* screen that the terminal shows now, if `direct` */
    struct termios settings;    /* terminal settings to restore at the end, if ncursesw does not restore them */
    bool is_raw;
    bool has_plain; /* NO_COLOR is set, so `plain` is used instead of the theme (if `direct`) */
    whit_theme plain;
} whit_display;

/* Switches the terminal to its alternate screen and to raw mode. Returns WHIT_ERROR_UNSUPPORTED if the terminal's type
 * cannot show a screen. */
whit_status whit_display_open(whit_display *display, const whit_theme *theme, whit_error *error);
void whit_display_show(whit_display *display, const whit_theme *theme, const whit_screen *screen);
/* Adopts the terminal's new size; the next screen is painted in full. */
void whit_display_resize(whit_display *display, int n_columns, int n_rows);
/* Writes bytes to the terminal unchanged. */
void whit_display_send(const whit_display *display, const char *bytes, size_t n_bytes);
/* Restores the terminal's screen and settings; has no effect if the display was not opened. */
void whit_display_close(whit_display *display);

/* ---- ncursesw (display_curses.c), for display.c only ----------------------------------------- */

/* Opens ncursesw. display->curses stays NULL if ncursesw is not installed; sets `direct` if COLORTERM says that the
 * terminal has 24-bit colours, and the theme has colours and NO_COLOR is not set. */
whit_status whit_curses_open(whit_display *display, const whit_theme *theme, whit_error *error);
void whit_curses_show(struct whit_curses *curses, const whit_theme *theme, const whit_screen *screen);
void whit_curses_resize(struct whit_curses *curses, int n_columns, int n_rows);
void whit_curses_close(struct whit_curses *curses);

#endif
