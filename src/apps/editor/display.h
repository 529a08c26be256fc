/* SPDX-License-Identifier: MIT
 * Shows screens on a terminal: by ncursesw, which supports terminals of every type, or, without ncursesw or with 24-bit
 * colours, by xterm's escape sequences. */
#ifndef WHIT_EDITOR_DISPLAY_H
#define WHIT_EDITOR_DISPLAY_H

#include "base/status.h"
#include "editor/screen.h"
#include "editor/theme.h"

#include <termios.h>

/* Zero-initialise, and set `in` and `out`. */
typedef struct whit_display {
    int in, out;                /* descriptors of the terminal */
    bool direct;                /* painted by sequences */
    struct whit_curses *curses; /* NULL: without ncursesw */
    whit_screen before;         /* the screen that is shown, if painted by escape sequences */
    struct termios settings;    /* terminal settings before the editor started, if ncursesw does not save them */
    bool is_raw;
    bool has_plain; /* NO_COLOR is set: `plain` replaces the theme, if painted by escape sequences */
    whit_theme plain;
} whit_display;

/* Switches the terminal to its alternate screen and to raw keys. WHIT_ERROR_UNSUPPORTED for a terminal type that
 * cannot show a screen. */
whit_status whit_display_open(whit_display *display, const whit_theme *theme, whit_error *error);
void whit_display_show(whit_display *display, const whit_theme *theme, const whit_screen *screen);
/* The terminal has another size now; the next screen is painted whole. */
void whit_display_resize(whit_display *display, int n_columns, int n_rows);
/* Writes bytes to the terminal as they are. */
void whit_display_send(const whit_display *display, const char *bytes, size_t n_bytes);
/* Restores the terminal's screen and settings; no effect if it was not opened. */
void whit_display_close(whit_display *display);

/* ---- by ncursesw (display_curses.c), for display.c alone ------------------------------------- */

/* display->curses stays NULL where ncursesw is not there; `direct` is set for 24-bit colours. */
whit_status whit_curses_open(whit_display *display, const whit_theme *theme, whit_error *error);
void whit_curses_show(struct whit_curses *curses, const whit_theme *theme, const whit_screen *screen);
void whit_curses_resize(struct whit_curses *curses, int n_columns, int n_rows);
void whit_curses_close(struct whit_curses *curses);

#endif
