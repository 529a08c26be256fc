/* SPDX-License-Identifier: MIT
 * Lists the functions of ncurses, which is loaded when an editor starts, so that the program's other verbs need not
 * load it. */
#ifndef WHIT_EDITOR_CURSES_NAMES_H
#define WHIT_EDITOR_CURSES_NAMES_H

#define EDITOR_CURSES(X)                                                                                               \
    X(newterm)                                                                                                         \
    X(endwin)                                                                                                          \
    X(raw)                                                                                                             \
    X(noecho)                                                                                                          \
    X(nonl)                                                                                                            \
    X(typeahead)                                                                                                       \
    X(keypad)                                                                                                          \
    X(start_color)                                                                                                     \
    X(use_default_colors)                                                                                              \
    X(init_pair)                                                                                                       \
    X(setcchar)                                                                                                        \
    X(wmove)                                                                                                           \
    X(wadd_wch)                                                                                                        \
    X(wrefresh)                                                                                                        \
    X(wredrawln)                                                                                                       \
    X(curs_set)                                                                                                        \
    X(resizeterm)

#endif
