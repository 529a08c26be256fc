/* SPDX-License-Identifier: MIT
 * Changes the view by vi's keys: scrolling and windows. */
#include "editor/state.h"
#include "editor/vi_action.h"

static void scroll_rows(ed *e, int rows, bool with_cursor)
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
        if (rows < 0)
            next = line ? ed_vi_line_begin(e, line - 1) : ED_NONE;
        else
            next = ed_vi_next_line(e, line);
        if (next != ED_NONE) line = next;
    }
    if (with_cursor) {
        *cursor = (struct ed_cursor){ed_vi_at_column(e, line, goal), ED_NONE, goal};
        return;
    }
    /* move the cursor into the window, `margin` rows from its edges */
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

/* Scrolls by half windows (C-d C-u), windows (C-f C-b) or rows (C-e C-y). A count is the number of windows for C-f and
 * C-b, and of rows for the others. */
void ed_vi_scroll(ed *e, struct ed_vi_call call)
{
    int n_rows = e->window->n_rows - 1, n = (int)(ed_vi_count(e) < 10000 ? ed_vi_count(e) : 10000);
    int half = n_rows > 1 ? n_rows / 2 : 1;
    int page = n_rows > 3 ? n_rows - 2 : 1;
    bool by_row = call.how == 'e' || call.how == 'y', back = strchr("uby", (int)call.how);
    if ((call.how == 'd' || call.how == 'u') && !e->vi.count) n = half;
    if (call.how == 'f' || call.how == 'b') n = page * (n < 1000 ? n : 1000);
    scroll_rows(e, back ? -n : n, !by_row);
}

/* Scrolls so that the cursor's row is at the top (zt), middle (zz) or bottom (zb) of the window. */
void ed_vi_show_row(ed *e, struct ed_vi_call call)
{
    struct ed_window *window = e->window;
    int n_rows = window->n_rows - 1, rows_above = 0;
    if (call.how == 'z') rows_above = n_rows / 2;
    if (call.how == 'b') rows_above = n_rows - 1;
    uint64_t row = whit_layout_row(ed_layout(e), ed_cursor(e)->offset), previous;
    while (rows_above-- > 0 && (previous = whit_layout_previous_row(ed_layout(e), row)) != UINT64_MAX) row = previous;
    window->top = row;
}

/* Keys after C-w: s and v split the window, c closes it, o closes all others, w and p go to the next and the previous
 * window in reading order. */
void ed_vi_choose_window(ed *e, struct ed_vi_call call)
{
    ed_vi_leave_visual(e); /* end a visual mode, since the other window has its own cursor */
    switch (call.how) {
    case 's': ed_vi_run(e, "split-below"); break;
    case 'v': ed_vi_run(e, "split-beside"); break;
    case 'c': ed_vi_run(e, "close-window"); break;
    case 'o': ed_window_only(e); break;
    case 'p':
        for (struct ed_window *own = e->window; ed_window_next(e, e->window) != own;)
            e->window = ed_window_next(e, e->window);
        break;
    default: ed_vi_run(e, "next-window"); break;
    }
}
