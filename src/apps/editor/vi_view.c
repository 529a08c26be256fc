/* SPDX-License-Identifier: MIT
 * What vi's keys do to the view: scrolling, folds, windows. */
#include "editor/state.h"

void ed_vi_scroll(ed *e, int rows, bool with_cursor)
{
    struct ed_window *window = e->window;
    whit_layout *layout = ed_layout(e);
    struct ed_cursor *cursor = ed_cursor(e);
    uint64_t next;
    int n = rows < 0 ? -rows : rows;
    int goal = cursor->goal >= 0 ? cursor->goal : ed_vi_column(e, cursor->offset);
    uint64_t line = ed_vi_line_begin(e, cursor->offset);
    for (int i = 0; i < n; i++) {
        next = rows < 0 ? whit_layout_previous_row(layout, window->top) : whit_layout_next_row(layout, window->top);
        if (next != UINT64_MAX && next <= ed_vi_end(e)) window->top = next;
        if (!with_cursor) continue;
        next = rows < 0 ? (line ? ed_vi_line_begin(e, line - 1) : ED_NONE) : ed_vi_next_line(e, line);
        if (next != ED_NONE) line = next;
    }
    if (with_cursor) {
        *cursor = (struct ed_cursor){ed_vi_at_column(e, line, goal), ED_NONE, goal};
        return;
    }
    /* The cursor stays in the window. */
    uint64_t row = window->top, at = whit_layout_row(layout, cursor->offset);
    int margin = window->n_rows > 9 ? 2 : 0, y = 0;
    for (int i = 0; i < margin && row < at && row; i++)
        if ((next = whit_layout_next_row(layout, row)) != UINT64_MAX) row = next;
    if (at < row) {
        cursor->offset = ed_vi_at_column(e, ed_vi_line_begin(e, row), goal);
        cursor->goal = goal;
        return;
    }
    uint64_t last = window->top;
    for (row = window->top; y < window->n_rows - 2 - margin && (next = whit_layout_next_row(layout, row)) != UINT64_MAX;
         y++)
        last = row = next;
    if (at > last) {
        cursor->offset = ed_vi_at_column(e, ed_vi_line_begin(e, last), goal);
        cursor->goal = goal;
    }
}

/* zt zz zb: the cursor's row at the top, in the middle, at the bottom. */
static void show_at(ed *e, int rows_above)
{
    struct ed_window *window = e->window;
    uint64_t row = whit_layout_row(ed_layout(e), ed_cursor(e)->offset), previous;
    while (rows_above-- > 0 && (previous = whit_layout_previous_row(ed_layout(e), row)) != UINT64_MAX) row = previous;
    window->top = row;
}

void ed_vi_behind_z(ed *e, uint32_t code)
{
    int n_rows = e->window->n_rows - 1;
    switch (code) {
    case 'z':
    case '.': show_at(e, n_rows / 2); break;
    case 't':
    case WHIT_KEY_ENTER: show_at(e, 0); break;
    case 'b':
    case '-': show_at(e, n_rows - 1); break;
    case 'a':
    case 'o':
    case 'c': ed_vi_run(e, "fold"); break;
    default: ed_vi_fail(e, "z goes with z, t, b, a, o or c"); break;
    }
}

void ed_vi_behind_window_key(ed *e, uint32_t code)
{
    ed_vi_leave_visual(e); /* the other window has a cursor of its own */
    switch (code) {
    case 's': ed_vi_run(e, "split-below"); break;
    case 'v': ed_vi_run(e, "split-beside"); break;
    case 'c':
    case 'q': ed_vi_run(e, "close-window"); break;
    case 'o': ed_window_only(e); break;
    case 'k':
    case 'h':
    case 'p':
    case 'W': /* the one before, in reading order */
        for (struct ed_window *own = e->window, *at = own;; at = e->window) {
            if (ed_window_next(e, at) == own) break;
            e->window = ed_window_next(e, at);
        }
        break;
    default: ed_vi_run(e, "next-window"); break;
    }
}
