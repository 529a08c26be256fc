/* SPDX-License-Identifier: MIT
 * Lays out, splits and closes windows, and finds the part of a text that each shows. */
#include "editor/state.h"

#include <stdio.h>
#include <stdlib.h>

#define LEAST_COLUMNS 12
#define LEAST_ROWS    3

struct ed_window *ed_window_new(ed *e, struct ed_doc *doc)
{
    struct ed_window *window = calloc(1, sizeof *window);
    if (!window || !(window->cursors = calloc(ED_CURSORS_MAX, sizeof *window->cursors))) {
        free(window);
        return NULL;
    }
    window->n_cursors = 1;
    window->wrap = e->settings.wrap;
    window->n_rows = 1;
    window->n_columns = 1;
    ed_window_show(e, window, doc);
    return window;
}

void ed_window_show(ed *e, struct ed_window *window, struct ed_doc *doc)
{
    (void)e;
    if (window->doc) window->doc->last_offset = window->cursors[window->n_cursors - 1].offset;
    window->doc = doc;
    window->layout = (whit_layout){.text = doc->buffer->text, .tab_columns = doc->tab_columns};
    window->n_cursors = 1;
    window->cursors[0] = (struct ed_cursor){doc->last_offset, ED_NONE, -1};
    window->top = 0;
    window->left = 0;
    window->moved_away = false;
}

void ed_window_free(struct ed_window *window)
{
    if (!window) return;
    ed_window_free(window->child[0]);
    ed_window_free(window->child[1]);
    free(window->cursors);
    free(window);
}

/* Returns the number of windows among which the width (`beside`) or the height of this part of the tree is divided
 * equally. */
static int count_abreast(const struct ed_window *window, bool beside)
{
    if (!window->child[0] || window->beside != beside) return 1;
    return count_abreast(window->child[0], beside) + count_abreast(window->child[1], beside);
}

static void place_window(struct ed_window *window, int x, int y, int n_columns, int n_rows)
{
    window->x = x;
    window->y = y;
    window->n_columns = n_columns < 1 ? 1 : n_columns;
    window->n_rows = n_rows < 1 ? 1 : n_rows;
    if (!window->child[0]) return;
    int n_first = count_abreast(window->child[0], window->beside);
    int n_all = n_first + count_abreast(window->child[1], window->beside);
    if (window->beside) { /* one column is used for the border between the children */
        int first = (n_columns - n_all + 1) / n_all * n_first + n_first - 1;
        if (window->first_columns && window->first_columns < first) first = window->first_columns;
        place_window(window->child[0], x, y, first, n_rows);
        place_window(window->child[1], x + first + 1, y, n_columns - first - 1, n_rows);
    } else {
        int first = n_rows * n_first / n_all;
        place_window(window->child[0], x, y, n_columns, first);
        place_window(window->child[1], x, y + first, n_columns, n_rows - first);
    }
}

void ed_windows_layout(ed *e)
{
    bool tabs = e->docs && e->docs->next;
    place_window(e->root, 0, tabs, e->n_columns, e->n_rows - 1 - tabs);
}

bool ed_window_split(ed *e, bool beside)
{
    struct ed_window *old = e->window;
    if (beside ? old->n_columns < 2 * LEAST_COLUMNS + 1 : old->n_rows < 2 * LEAST_ROWS) {
        if (beside)
            ed_complain(e, "the window is too small: a part needs at least %d columns", LEAST_COLUMNS);
        else
            ed_complain(e, "the window is too small: a part needs at least %d rows", LEAST_ROWS);
        return false;
    }
    struct ed_window *inner = calloc(1, sizeof *inner), *added = ed_window_new(e, old->doc);
    if (!inner || !added) {
        free(inner);
        ed_window_free(added);
        ed_complain(e, "there is not enough memory for another window");
        return false;
    }
    added->cursors[0] = *ed_cursor(e);
    added->top = old->top;
    added->wrap = old->wrap;
    *inner = (struct ed_window){.parent = old->parent, .child = {old, added}, .beside = beside};
    if (old->parent)
        old->parent->child[old->parent->child[1] == old] = inner;
    else
        e->root = inner;
    old->parent = added->parent = inner;
    e->window = added;
    ed_windows_layout(e);
    return true;
}

static struct ed_window *first_leaf(struct ed_window *window)
{
    while (window->child[0]) window = window->child[0];
    return window;
}

void ed_window_close(ed *e)
{
    struct ed_window *window = e->window, *inner = window->parent;
    if (!inner) {
        ed_complain(e, "this is the only window");
        return;
    }
    struct ed_window *other = inner->child[inner->child[0] == window];
    other->parent = inner->parent;
    if (inner->parent)
        inner->parent->child[inner->parent->child[1] == inner] = other;
    else
        e->root = other;
    window->doc->last_offset = ed_cursor(e)->offset;
    ed_window_free(window);
    free(inner);
    e->window = first_leaf(other);
    ed_windows_layout(e);
    ed_check_journal(e);
}

void ed_window_only(ed *e)
{
    while (e->root != e->window) {
        struct ed_window *kept = e->window;
        e->window = ed_window_next(e, kept);
        ed_window_close(e);
        e->window = kept;
    }
}

/* Returns the next window in reading order, which after the last window is the first. */
struct ed_window *ed_window_next(const ed *e, const struct ed_window *window)
{
    for (const struct ed_window *at = window; at->parent; at = at->parent)
        if (at->parent->child[0] == at) return first_leaf(at->parent->child[1]);
    return first_leaf(e->root);
}

struct ed_window *ed_window_at(ed *e, int x, int y)
{
    struct ed_window *first = first_leaf(e->root), *at = first;
    do {
        if (x >= at->x && x < at->x + at->n_columns && y >= at->y && y < at->y + at->n_rows) return at;
        at = ed_window_next(e, at);
    } while (at != first);
    return NULL;
}

/* Columns of the margin in which the panel marks the rows that continue a line, when it has no line numbers: a row that
 * begins with "+" must not look like the next line of a difference. */
#define ROW_MARGIN 2

int ed_window_margin(const ed *e, const struct ed_window *window)
{
    const int least = e->panel.doc && window->doc == e->panel.doc ? ROW_MARGIN : 0;
    if (!e->settings.numbers) return least;
    uint64_t n = whit_text_n_lines(window->doc->buffer->text);
    int digits = 3;
    if (n == UINT64_MAX) n = whit_text_size(window->doc->buffer->text) / 32;
    for (uint64_t most = 999; most < n + 1 && digits < 12; most = most * 10 + 9) digits++;
    return digits + 2 < window->n_columns - 4 ? digits + 2 : least;
}

/* Scrolls a window so that its cursor is visible, unless moved_away is set, and computes the width at which it wraps
 * lines. */
void ed_window_follow(ed *e, struct ed_window *window)
{
    whit_layout *layout = &window->layout;
    int n_rows = window->n_rows - 1, n_columns = window->n_columns - ed_window_margin(e, window);
    layout->wrap_columns = window->wrap ? n_columns : 0;
    layout->tab_columns = window->doc->tab_columns;
    uint64_t size = whit_text_size(layout->text), offset = window->cursors[window->n_cursors - 1].offset;
    if (window->top > size) window->top = size;
    window->top = whit_layout_row(layout, window->top);
    if (window->moved_away || n_rows < 1) return;
    uint64_t row = whit_layout_row(layout, offset), at = window->top;
    int margin = n_rows > 8 ? 2 : 0, y = 0;
    bool seen = row >= window->top;
    for (; seen && at < row && y < n_rows; y++) {
        at = whit_layout_next_row(layout, at);
        if (at == UINT64_MAX) break;
    }
    seen = seen && at == row;
    if (window->doc->grows && offset == size) {
        /* in a growing text, keep the end in the last row, however much was added since the last paint */
        uint64_t previous;
        window->top = row;
        for (int up = n_rows - 1; up > 0; up--) {
            if ((previous = whit_layout_previous_row(layout, window->top)) == UINT64_MAX) break;
            window->top = previous;
        }
    } else if (seen && y >= n_rows - margin) {
        for (int down = y - (n_rows - margin - 1); down > 0; down--) {
            uint64_t next = whit_layout_next_row(layout, window->top);
            if (next != UINT64_MAX) window->top = next;
        }
    } else if (!seen || y < margin) {
        /* scroll by a few rows if the cursor is just above the window; if it is farther away, show its row in the
         * middle */
        uint64_t top = row, previous;
        int up = 0;
        bool near = false;
        for (uint64_t down = row; up < margin && !seen; up++) {
            if (down == window->top) near = true;
            if ((down = whit_layout_next_row(layout, down)) == UINT64_MAX) break;
        }
        near = near || seen || (row < window->top && whit_layout_next_row(layout, row) == window->top);
        for (up = near ? margin : n_rows / 2; up > 0; up--) {
            if ((previous = whit_layout_previous_row(layout, top)) == UINT64_MAX) break;
            top = previous;
        }
        window->top = top;
    }
    if (window->wrap) {
        window->left = 0;
        return;
    }
    int column = whit_layout_column(layout, row, offset), aside = n_columns > 20 ? 5 : 0;
    if (column < window->left + aside) window->left = column > aside ? column - aside : 0;
    if (column >= window->left + n_columns - aside) window->left = column - n_columns + aside + 1;
}

static uint64_t moved(uint64_t position, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    if (position == ED_NONE || position < offset) return position;
    return position < offset + n_removed ? offset + n_inserted : position - n_removed + n_inserted;
}

static void window_changed(struct ed_window *window, struct ed_doc *doc, uint64_t offset, uint64_t n_removed,
                           uint64_t n_inserted)
{
    if (window->child[0]) {
        window_changed(window->child[0], doc, offset, n_removed, n_inserted);
        window_changed(window->child[1], doc, offset, n_removed, n_inserted);
        return;
    }
    if (window->doc != doc) return;
    window->layout.text = doc->buffer->text;
    whit_layout_forget(&window->layout);
    for (size_t i = 0; i < window->n_cursors; i++) {
        struct ed_cursor *cursor = &window->cursors[i];
        cursor->offset = moved(cursor->offset, offset, n_removed, n_inserted);
        cursor->anchor = moved(cursor->anchor, offset, n_removed, n_inserted);
        cursor->goal = -1;
    }
    if (offset < window->top) window->top = moved(window->top, offset, n_removed, n_inserted);
    for (size_t i = 0; i < window->layout.n_folds; i++) {
        whit_range *fold = &window->layout.folds[i];
        bool inside = offset < fold->end && offset + n_removed > fold->begin;
        fold->begin = moved(fold->begin, offset, n_removed, n_inserted);
        if (offset < fold->end) /* an insertion at the fold's end is not part of the fold */
            fold->end = moved(fold->end, offset, n_removed, n_inserted);
        if (!inside && fold->end > fold->begin) continue;
        memmove(fold, fold + 1, (--window->layout.n_folds - i) * sizeof *fold);
        i--;
    }
}

void ed_windows_changed(ed *e, struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    if (e->root) window_changed(e->root, doc, offset, n_removed, n_inserted);
    for (size_t i = 0; i < e->n_jumps; i++)
        if (e->jumps[i].doc == doc) e->jumps[i].offset = moved(e->jumps[i].offset, offset, n_removed, n_inserted);
    if (e->find.to != ED_NONE && e->window && e->window->doc == doc)
        e->find.to = moved(e->find.to, offset, n_removed, n_inserted);
    if (e->vi.on && e->window) ed_vi_changed(e, doc, offset, n_removed, n_inserted);
    if (e->panel.doc == doc && offset < e->panel.from)
        e->panel.from = moved(e->panel.from, offset, n_removed, n_inserted);
    doc->last_offset = moved(doc->last_offset, offset, n_removed, n_inserted);
}
