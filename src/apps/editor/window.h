/* SPDX-License-Identifier: MIT
 * Declares windows, with their places, cursors and movements. */
#ifndef WHIT_EDITOR_WINDOW_H
#define WHIT_EDITOR_WINDOW_H

#include "editor/doc.h"
#include "editor/layout.h"

#define ED_CURSORS_MAX 1024

struct ed_cursor {
    uint64_t offset, anchor; /* anchor: other end of the selection; ED_NONE: no selection */
    int goal;                /* column to keep when moving up or down; -1: the current column */
};

/* A window, which shows a part of a document, or an inner node of the window tree, which has two children. */
struct ed_window {
    struct ed_window *parent, *child[2];
    bool beside; /* the children are side by side, not one below the other */
    /* maximum width of the first child in columns; 0: windows side by side are equally wide */
    int first_columns;
    int x, y, n_columns, n_rows; /* position and size in cells; the last row is the status line */
    struct ed_doc *doc;
    whit_layout layout;
    struct ed_cursor *cursors; /* cursors[n_cursors - 1] is the main cursor */
    size_t n_cursors;
    uint64_t top;
    int left;
    bool wrap, moved_away; /* moved_away: scrolled away from the cursor, which need not be visible then */
};

/* These functions are in window.c. */
void ed_windows_layout(ed *e);
bool ed_window_split(ed *e, bool beside);
void ed_window_close(ed *e);
void ed_window_only(ed *e); /* closes all windows except the current one */
struct ed_window *ed_window_next(const ed *e, const struct ed_window *window);
void ed_window_free(struct ed_window *window);
struct ed_window *ed_window_new(ed *e, struct ed_doc *doc);
void ed_window_show(ed *e, struct ed_window *window, struct ed_doc *doc);
struct ed_window *ed_window_at(ed *e, int x, int y);
int ed_window_margin(const ed *e, const struct ed_window *window);
void ed_window_follow(ed *e, struct ed_window *window);
void ed_windows_changed(ed *e, struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);

/* These functions are in move.c. */
struct ed_cursor *ed_cursor(const ed *e);
whit_text *ed_text(const ed *e);
whit_layout *ed_layout(const ed *e);
whit_range ed_selection(const struct ed_cursor *cursor);
void ed_move_to(ed *e, struct ed_cursor *cursor, uint64_t offset);
void ed_only_main(ed *e);
void ed_merge_cursors(ed *e);
bool ed_add_cursor(ed *e, uint64_t offset, uint64_t anchor);
uint64_t ed_word_left(ed *e, uint64_t offset);
uint64_t ed_word_right(ed *e, uint64_t offset);
bool ed_is_word(int byte);
uint64_t ed_skip_blanks(ed *e, uint64_t at);
/* Returns the offset of the bracket that matches the one at `offset`. Returns ED_NONE if there is no bracket at
 * `offset`, or no match within `limit` bytes. */
uint64_t ed_bracket(ed *e, uint64_t offset, uint64_t limit);
void ed_click(ed *e, whit_key key);

#endif
