/* SPDX-License-Identifier: MIT
 * Shows screens on a terminal: by ncursesw, which supports terminals of every type, or, without ncursesw or with 24-bit
 * colours, by xterm's escape sequences. */
#ifndef WHIT_EDITOR_DISPLAY_H
#define WHIT_EDITOR_DISPLAY_H

#include "base/status.h"
#include "editor/screen.h"
#include "editor/theme.h"

#include <termios.h>

/* holds a terminal's display; zero-initialise it, and set `in` and `out` */
typedef struct whit_display {
    int in, out;                /* descriptors of the terminal */
    bool direct;                /* the screen is painted by escape sequences */
    struct whit_curses *curses; /* NULL: ncursesw is not used */
    whit_screen before;         /* the screen that is shown, if it is painted by escape sequences */
    struct termios settings;    /* terminal settings before the editor started, if ncursesw does not save them */
    bool is_raw;
    bool has_plain; /* NO_COLOR is set, so that `plain` replaces the theme; for painting by escape sequences */
    whit_theme plain;
} whit_display;

/* Switches the terminal to its alternate screen and to raw keys. Returns WHIT_ERROR_UNSUPPORTED for a type of terminal
 * that cannot show a screen. */
whit_status whit_display_open(whit_display *display, const whit_theme *theme, whit_error *error);
void whit_display_show(whit_display *display, const whit_theme *theme, const whit_screen *screen);
/* Sets the terminal's new size; the next screen is painted whole. */
void whit_display_resize(whit_display *display, int n_columns, int n_rows);
/* Writes bytes to the terminal as they are. */
void whit_display_send(const whit_display *display, const char *bytes, size_t n_bytes);
/* Restores the terminal's screen and settings; has no effect if the display was not opened. */
void whit_display_close(whit_display *display);

/* ---- by ncursesw (display_curses.c), for display.c alone ------------------------------------- */

/* Opens ncursesw. display->curses stays NULL if ncursesw is not installed; `direct` is set for 24-bit colours. */
whit_status whit_curses_open(whit_display *display, const whit_theme *theme, whit_error *error);
void whit_curses_show(struct whit_curses *curses, const whit_theme *theme, const whit_screen *screen);
void whit_curses_resize(struct whit_curses *curses, int n_columns, int n_rows);
void whit_curses_close(struct whit_curses *curses);

#endif
