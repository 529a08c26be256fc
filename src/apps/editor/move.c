/* SPDX-License-Identifier: MIT
 * Moves cursors. */
#include "editor/state.h"

#include <ctype.h>

struct ed_cursor *ed_cursor(const ed *e)
{
    return &e->window->cursors[e->window->n_cursors - 1];
}

whit_text *ed_text(const ed *e)
{
    return e->window->doc->buffer->text;
}

whit_layout *ed_layout(const ed *e)
{
    return &e->window->layout;
}

whit_range ed_selection(const struct ed_cursor *cursor)
{
    if (cursor->anchor == ED_NONE) return (whit_range){cursor->offset, cursor->offset};
    return cursor->anchor < cursor->offset ? (whit_range){cursor->anchor, cursor->offset}
                                           : (whit_range){cursor->offset, cursor->anchor};
}

void ed_move_to(ed *e, struct ed_cursor *cursor, uint64_t offset)
{
    uint64_t size = whit_text_size(ed_text(e));
    if (e->shift && cursor->anchor == ED_NONE) cursor->anchor = cursor->offset;
    if (!e->shift) cursor->anchor = ED_NONE;
    cursor->offset = offset < size ? offset : size;
    cursor->goal = -1;
}

void ed_only_main(ed *e)
{
    e->window->cursors[0] = *ed_cursor(e);
    e->window->n_cursors = 1;
}

/* Removes each cursor whose selection begins at the same offset as the selection of a later cursor, or overlaps that
 * selection. */
void ed_merge_cursors(ed *e)
{
    struct ed_window *window = e->window;
    for (size_t i = 0; i + 1 < window->n_cursors; i++) {
        whit_range a = ed_selection(&window->cursors[i]);
        for (size_t k = i + 1; k < window->n_cursors; k++) {
            whit_range b = ed_selection(&window->cursors[k]);
            bool same = a.begin == b.begin || (a.begin < b.end && b.begin < a.end);
            if (!same) continue;
            memmove(window->cursors + i, window->cursors + i + 1, (--window->n_cursors - i) * sizeof *window->cursors);
            i--;
            break;
        }
    }
}

bool ed_add_cursor(ed *e, uint64_t offset, uint64_t anchor)
{
    if (e->window->n_cursors == ED_CURSORS_MAX) return false;
    e->window->cursors[e->window->n_cursors++] = (struct ed_cursor){offset, anchor, -1};
    ed_merge_cursors(e);
    return true;
}

bool ed_is_word(int byte)
{
    return byte >= 0x80 || byte == '_' || (byte >= 0 && isalnum(byte));
}

uint64_t ed_word_right(ed *e, uint64_t offset)
{
    whit_layout *layout = ed_layout(e);
    bool word = ed_is_word(whit_layout_byte(layout, offset)), moved = false;
    int byte;
    while ((byte = whit_layout_byte(layout, offset)) >= 0 && ed_is_word(byte) == word && !isspace(byte)) {
        offset = whit_layout_behind(layout, offset);
        moved = true;
    }
    /* Skips blanks, but across a line end only if the movement begins there. */
    for (uint64_t from = offset; (byte = whit_layout_byte(layout, offset)) >= 0 && isspace(byte);) {
        bool ends = byte == '\n' || byte == '\r';
        if (ends && (moved || offset > from)) break;
        offset = whit_layout_behind(layout, offset);
    }
    return offset;
}

uint64_t ed_word_left(ed *e, uint64_t offset)
{
    whit_layout *layout = ed_layout(e);
    while (offset && isspace(whit_layout_byte(layout, offset - 1))) offset--;
    if (!offset) return 0;
    bool word = ed_is_word(whit_layout_byte(layout, offset - 1));
    int byte;
    while (offset && (byte = whit_layout_byte(layout, offset - 1)) >= 0 && ed_is_word(byte) == word && !isspace(byte))
        offset--;
    return offset;
}

uint64_t ed_bracket(ed *e, uint64_t offset, uint64_t limit)
{
    static const char pairs[] = "()[]{}";
    int here = whit_layout_byte(ed_layout(e), offset);
    const char *found = here > 0 ? strchr(pairs, here) : NULL;
    if (!found) return ED_NONE;
    bool opens = (found - pairs) % 2 == 0;
    int other = opens ? found[1] : found[-1];
    long depth = 0;
    for (uint64_t i = 0; i < limit; i++) {
        int byte = whit_layout_byte(ed_layout(e), offset);
        if (byte < 0) return ED_NONE;
        if (byte == here) depth++;
        if (byte == other && --depth == 0) return offset;
        if (!opens && !offset) return ED_NONE;
        if (opens) {
            offset++;
        } else { /* backwards, the cached bytes are refilled about 4 KiB at a time */
            offset--;
            if (offset < ed_layout(e)->span_begin) {
                uint64_t from = offset > 4096 ? offset - 4096 : 0;
                whit_span span = whit_text_at(ed_text(e), from);
                if (from + span.size_bytes > offset) {
                    ed_layout(e)->span = span;
                    ed_layout(e)->span_begin = from;
                }
            }
        }
    }
    return ED_NONE;
}

/* Returns the offset of the text at column x and row y of the screen. */
static uint64_t offset_at(ed *e, struct ed_window *window, int x, int y)
{
    uint64_t row = window->top;
    for (int i = window->y; i < y; i++) {
        uint64_t next = whit_layout_next_row(&window->layout, row);
        if (next == UINT64_MAX) return whit_text_size(window->doc->buffer->text);
        row = next;
    }
    int column = x - window->x - ed_window_margin(e, window);
    return whit_layout_at_column(&window->layout, row, column < 0 ? 0 : column + window->left);
}

static void scroll(struct ed_window *window, int rows)
{
    for (; rows > 0; rows--) {
        uint64_t next = whit_layout_next_row(&window->layout, window->top);
        if (next != UINT64_MAX) window->top = next;
    }
    for (; rows < 0; rows++) {
        uint64_t previous = whit_layout_previous_row(&window->layout, window->top);
        if (previous != UINT64_MAX) window->top = previous;
    }
    window->moved_away = true;
}

void ed_click(ed *e, whit_key key)
{
    struct ed_window *window = ed_window_at(e, key.x, key.y);
    if (key.code == WHIT_KEY_WHEEL_UP || key.code == WHIT_KEY_WHEEL_DOWN) {
        if (window) scroll(window, key.code == WHIT_KEY_WHEEL_UP ? -3 : 3);
        return;
    }
    if (key.code == WHIT_KEY_PRESS && key.y == 0 && e->docs->next && e->root->y == 1) {
        int x = 0;
        for (struct ed_doc *doc = e->docs; doc; doc = doc->next) {
            const char *slash = strrchr(doc->buffer->name, '/');
            const char *name = slash ? slash + 1 : doc->buffer->name;
            x += whit_glyphs_width(name, strlen(name)) + 3;
            if (key.x < x) {
                ed_show(e, doc);
                return;
            }
        }
        return;
    }
    if (key.code == WHIT_KEY_DRAG) window = e->window;
    if (!window || key.y >= window->y + window->n_rows - 1) return;
    if (key.y < window->y) key.y = window->y;
    if (key.code == WHIT_KEY_PRESS) {
        e->window = window;
        window->moved_away = false;
        ed_check_journal(e);
        whit_buffer_seal(window->doc->buffer);
        uint64_t offset = offset_at(e, window, key.x, key.y);
        if (key.mods & (WHIT_MOD_ALT | WHIT_MOD_CTRL)) {
            ed_add_cursor(e, offset, ED_NONE);
            return;
        }
        ed_only_main(e);
        e->shift = key.mods & WHIT_MOD_SHIFT;
        ed_move_to(e, ed_cursor(e), offset);
    } else if (key.code == WHIT_KEY_DRAG) {
        e->shift = true;
        ed_move_to(e, ed_cursor(e), offset_at(e, window, key.x, key.y));
    }
    e->shift = false;
}

uint64_t ed_skip_blanks(ed *e, uint64_t at)
{
    int byte;
    while ((byte = whit_layout_byte(ed_layout(e), at)) == ' ' || byte == '\t') at++;
    return at;
}
