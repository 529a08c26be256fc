/* SPDX-License-Identifier: MIT
 * Runs vi's visual modes: their selection, and their keys that are neither motions nor operators. */
#include "editor/state.h"
#include "editor/vi_action.h"

#include "base/utf8.h"

#include <stdlib.h>

#define FILL_BYTES (1u << 20) /* maximum size in bytes of a selection whose characters are replaced at once */

/* ---- the visual modes ---------------------------------------------------------------------- */

size_t ed_vi_selection(ed *e, uint64_t from, uint64_t to, whit_range *ranges, size_t max)
{
    const struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b;
    uint64_t last = a < b ? b : a;
    uint64_t size = whit_text_size(ed_text(e));
    if (!ed_vi_is_visual(e) || !max) return 0;
    if (last > size) last = size;
    if (vi->mode == ED_VI_VISUAL) {
        ranges[0] = (whit_range){first, whit_layout_behind(ed_layout(e), last)};
        return 1;
    }
    if (vi->mode == ED_VI_VISUAL_LINES) {
        uint64_t end = whit_text_line_end(ed_text(e), last);
        ranges[0] = (whit_range){ed_vi_line_begin(e, first), end < size ? end + 1 : end};
        return 1;
    }
    bool to_end = ed_cursor(e)->goal >= ED_VI_LAST_COLUMN;
    int ca = ed_vi_column(e, a), cb = ed_vi_column(e, b), left = ca < cb ? ca : cb;
    int right = ca < cb ? cb : ca;
    size_t n = 0;
    if (from < first) from = first;
    for (uint64_t line = ed_vi_line_begin(e, from); n < max && line != ED_NONE && line <= to && line <= last;
         line = ed_vi_next_line(e, line)) {
        uint64_t end = ed_vi_line_end(e, line), begin = ed_vi_at_column(e, line, left);
        uint64_t right_end = to_end ? end : ed_vi_at_column(e, line, right);
        if (begin >= end || (begin == end && left > 0)) continue;
        if (!to_end && right_end < end) right_end = whit_layout_behind(ed_layout(e), right_end);
        ranges[n++] = (whit_range){begin, right_end};
    }
    return n;
}

void ed_vi_leave_visual(ed *e)
{
    struct ed_vi *vi = &e->vi;
    if (!ed_vi_is_visual(e)) return;
    vi->last_mode = vi->mode;
    vi->last_begin = vi->anchor;
    vi->last_end = ed_cursor(e)->offset;
    vi->mode = ED_VI_NORMAL;
}

void ed_vi_select(ed *e, struct ed_vi_call call)
{
    struct ed_vi *vi = &e->vi;
    ed_vi_mode mode = (ed_vi_mode)call.how;
    if (vi->mode == mode) {
        ed_vi_leave_visual(e);
        return;
    }
    if (!ed_vi_is_visual(e)) vi->anchor = ed_cursor(e)->offset;
    vi->mode = mode;
}

void ed_vi_select_again(ed *e, struct ed_vi_call call)
{
    (void)call;
    struct ed_vi *vi = &e->vi;
    uint64_t end = ed_vi_end(e);
    if (!vi->last_mode) {
        ed_vi_fail(e, "nothing was selected yet");
        return;
    }
    vi->mode = vi->last_mode;
    vi->anchor = vi->last_begin < end ? vi->last_begin : end;
    *ed_cursor(e) = (struct ed_cursor){vi->last_end < end ? vi->last_end : end, ED_NONE, -1};
}

/* For '.': selects from the cursor as much text as the repeated command had selected. */
void ed_vi_select_extent(ed *e, const struct ed_vi_extent *extent)
{
    struct ed_vi *vi = &e->vi;
    uint64_t at = ed_cursor(e)->offset, line = at, next;
    vi->anchor = at;
    vi->mode = extent->mode;
    for (uint64_t n = extent->n_lines; n-- && (next = ed_vi_next_line(e, line)) != ED_NONE;) line = next;
    int column = extent->n_columns;
    if (extent->mode == ED_VI_VISUAL_BLOCK || !extent->n_lines) column += ed_vi_column(e, at);
    line = ed_vi_line_begin(e, line);
    uint64_t end = ed_vi_line_end(e, line);
    if (extent->mode != ED_VI_VISUAL_LINES) at = ed_vi_at_column(e, line, column);
    if (extent->mode == ED_VI_VISUAL_LINES) at = line;
    if (at == end && end > line && !extent->to_end) at = ed_vi_before(e, end);
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, extent->to_end ? ED_VI_LAST_COLUMN : -1};
}

/* Ends a visual mode and converts its selection to the editor's cursors and selections. */
void ed_vi_hand_over(ed *e)
{
    whit_range ranges[ED_CURSORS_MAX];
    size_t n = ed_vi_selection(e, 0, ED_NONE, ranges, ED_CURSORS_MAX);
    if (!n) return;
    ed_vi_leave_visual(e);
    for (size_t i = 0; i < n; i++) e->window->cursors[i] = (struct ed_cursor){ranges[i].end, ranges[i].begin, -1};
    e->window->n_cursors = n;
}

/* ---- operators over a selection ------------------------------------------------------------ */

/* Calls `change` for the selected part of each line of a block, from the last line to the first, so that edits do not
 * move the remaining parts. */
static void each_block_line(ed *e, void (*change)(ed *e, whit_range range, uint32_t code), uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = ed_vi_line_begin(e, a < b ? a : b);
    /* compute all ranges before the first edit, because an edit may change the columns of other lines */
    uint64_t *lines = NULL;
    size_t n = 0, room = 0;
    for (uint64_t line = first; line != ED_NONE && line <= (a < b ? b : a); line = ed_vi_next_line(e, line)) {
        if (n == room) {
            room = room ? 2 * room : 64;
            uint64_t *grown = realloc(lines, room * sizeof *grown);
            if (!grown) break;
            lines = grown;
        }
        lines[n++] = line;
    }
    whit_range *ranges = malloc((n + 1) * sizeof *ranges);
    size_t n_ranges = 0;
    for (size_t i = 0; ranges && i < n; i++) {
        ranges[i] = (whit_range){lines[i], lines[i]};
        n_ranges += ed_vi_selection(e, lines[i], lines[i], &ranges[i], 1);
    }
    for (size_t i = n; ranges && i-- > 0;)
        if (ranges[i].end > ranges[i].begin) change(e, ranges[i], code);
    free(lines);
    free(ranges);
}

static void block_delete(ed *e, whit_range range, uint32_t code)
{
    (void)code;
    ed_edit(e, range.begin, range.end - range.begin, NULL, 0);
}
static void block_case(ed *e, whit_range range, uint32_t code)
{
    ed_vi_turn_case(e, range.begin, range.end, code);
}

/* Sets a cursor at `column`, or at the end (to_end), of each line of a block, so that typing affects all of them. */
static void block_cursors(ed *e, uint64_t first, uint64_t n_lines, int column, bool to_end)
{
    size_t n = 0;
    uint64_t main = ED_NONE;
    for (uint64_t line = first; line != ED_NONE && n_lines--; line = ed_vi_next_line(e, line)) {
        uint64_t at = to_end ? ed_vi_line_end(e, line) : ed_vi_at_column(e, line, column);
        if (!to_end && ed_vi_column(e, at) < column) {
            if (e->vi.block_appends) { /* A pads short lines with blanks, I skips them */
                int there = ed_vi_column(e, at);
                char blanks[256];
                size_t n_blanks = (size_t)(column - there) < sizeof blanks ? (size_t)(column - there) : sizeof blanks;
                memset(blanks, ' ', n_blanks);
                if (!ed_edit(e, at, 0, blanks, n_blanks)) break;
                at += n_blanks;
            } else if (main != ED_NONE) {
                continue;
            }
        }
        if (main == ED_NONE) {
            main = at;
            continue;
        }
        if (n == ED_CURSORS_MAX - 1) {
            ed_complain(e, "only the first %d lines have a cursor", ED_CURSORS_MAX);
            break;
        }
        e->window->cursors[n++] = (struct ed_cursor){at, ED_NONE, -1};
    }
    e->window->cursors[n] = (struct ed_cursor){main, ED_NONE, -1};
    e->window->n_cursors = n + 1;
}

struct block {
    uint64_t first, last, n_lines;
    int column, behind; /* left column; the column after the right column */
    bool to_end;
};

static struct block block_of(ed *e)
{
    uint64_t a = e->vi.anchor, b = ed_cursor(e)->offset;
    whit_range range = {0, 0};
    struct block block = {a < b ? a : b, a < b ? b : a, 1, 0, 0, ed_cursor(e)->goal >= ED_VI_LAST_COLUMN};
    for (uint64_t line = block.first; (line = ed_vi_next_line(e, line)) != ED_NONE && line <= block.last;)
        block.n_lines++;
    int ca = ed_vi_column(e, a), cb = ed_vi_column(e, b);
    block.column = ca < cb ? ca : cb;
    uint64_t wider = ca < cb ? b : a;
    if (ed_vi_selection(e, ed_vi_line_begin(e, wider), wider, &range, 1)) block.behind = ed_vi_column(e, range.end);
    return block;
}

static void operate_block(ed *e, uint32_t code)
{
    struct block block = block_of(e);
    uint64_t first_line = ed_vi_line_begin(e, block.first);
    if (code == 'd' || code == 'c' || code == 'y')
        ed_vi_register_keep(e, (whit_range){block.first, block.last}, false, true, code != 'y');
    if (code == 'd' || code == 'c') each_block_line(e, block_delete, 0);
    if (code & ED_VI_G) each_block_line(e, block_case, code & 127);
    ed_vi_leave_visual(e);
    ed_vi_place(e, ed_vi_at_column(e, first_line, block.column));
    if (code != 'c') return;
    block_cursors(e, first_line, block.n_lines, block.column, false);
    ed_vi_begin_insert(e, ED_VI_INSERT, 'c');
}

static void remember_extent(ed *e)
{
    struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b;
    uint64_t last = a < b ? b : a;
    struct ed_vi_extent *extent = &vi->repeat_extent;
    if (vi->repeating) return;
    *extent = (struct ed_vi_extent){.mode = vi->mode, .to_end = ed_cursor(e)->goal >= ED_VI_LAST_COLUMN};
    for (uint64_t line = ed_vi_line_begin(e, first); (line = ed_vi_next_line(e, line)) != ED_NONE && line <= last;)
        extent->n_lines++;
    int ca = ed_vi_column(e, a), cb = ed_vi_column(e, b);
    if (vi->mode == ED_VI_VISUAL_BLOCK)
        extent->n_columns = ca < cb ? cb - ca : ca - cb;
    else if (extent->n_lines)
        extent->n_columns = ed_vi_column(e, last);
    else if (ca < cb)
        extent->n_columns = cb - ca;
    else
        extent->n_columns = ca - cb;
}

void ed_vi_operate_visual(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b;
    uint64_t last = a < b ? b : a;
    if (code != 'y' && !ed_vi_may_change(e)) {
        ed_vi_leave_visual(e);
        return;
    }
    remember_extent(e);
    vi->from_visual = true;
    bool by_lines = ed_vi_is_by_lines(code);
    if (vi->mode == ED_VI_VISUAL_BLOCK && !by_lines) {
        operate_block(e, code);
        return;
    }
    struct ed_vi_span span = {.begin = first, .end = last, .lines = vi->mode == ED_VI_VISUAL_LINES || by_lines};
    if (!span.lines) {
        span.end = whit_layout_behind(ed_layout(e), last);
        span.is_fixed = true;
    }
    ed_vi_leave_visual(e);
    ed_vi_operate(e, code, span);
    if (span.lines && (code == 'y' || ((code & ED_VI_G) && code != (ED_VI_G | 'q'))))
        ed_vi_place(e, ed_vi_line_begin(e, first));
}

void ed_vi_visual_put(ed *e, struct ed_vi_call call)
{
    bool keeps = call.how == 'P';
    struct ed_vi *vi = &e->vi;
    struct ed_vi_register reg;
    uint32_t name = vi->wanted_register;
    if (!ed_vi_may_change(e)) return;
    if (!ed_vi_register_read(e, name, &reg)) {
        ed_vi_fail(e, "that register is empty");
        return;
    }
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b;
    const char *ending = ed_line_ending(e, ed_vi_line_begin(e, first));
    size_t n_ending = strlen(ending);
    char *text = malloc(reg.n_bytes + n_ending + 1);
    if (!text) return;
    bool by_lines = vi->mode == ED_VI_VISUAL_LINES, block = vi->mode == ED_VI_VISUAL_BLOCK;
    size_t n_front = reg.lines && !by_lines ? n_ending : 0, n = n_front + reg.n_bytes;
    memcpy(text, ending, n_front);
    memcpy(text + n_front, reg.text, reg.n_bytes);
    if (by_lines && !reg.lines) {
        memcpy(text + n, ending, n_ending);
        n += n_ending;
    }
    uint64_t size = whit_text_size(ed_text(e)), last = a < b ? b : a;
    /* the last selected line is the text's last line and has no line feed */
    bool at_end = by_lines && whit_text_line_end(ed_text(e), last) >= size;
    if (by_lines) first = ed_vi_line_begin(e, first);
    if (block) first = ed_vi_at_column(e, ed_vi_line_begin(e, first), block_of(e).column);
    vi->wanted_register = keeps ? '_' : 0;
    if (at_end) {
        ed_vi_register_keep(e, (whit_range){first, size}, true, false, true);
        ed_edit(e, first, size - first, NULL, 0);
        ed_vi_leave_visual(e);
        if (n && text[n - 1] == '\n') n -= n > 1 && text[n - 2] == '\r' ? 2 : 1;
    } else {
        ed_vi_operate_visual(e, 'd');
    }
    ed_edit(e, first, 0, text, n);
    ed_vi_place(e, reg.lines || by_lines ? ed_vi_first(e, first + n_front) : ed_vi_before(e, first + n));
    free(text);
    vi->wanted_register = name;
}

/* Keys X D Y S R C: act on all lines of the selection. In a block, C and D act on the block extended to the ends of its
 * lines, and X and Y on the block. */
void ed_vi_visual_lines(ed *e, struct ed_vi_call call)
{
    bool is_block = e->vi.mode == ED_VI_VISUAL_BLOCK;
    if (is_block && (call.how == 'C' || call.how == 'D'))
        ed_cursor(e)->goal = ED_VI_LAST_COLUMN;
    else if (!is_block || (call.how != 'X' && call.how != 'Y'))
        e->vi.mode = ED_VI_VISUAL_LINES;
    uint32_t how = 'c';
    if (call.how == 'X' || call.how == 'D')
        how = 'd';
    else if (call.how == 'Y')
        how = 'y';
    ed_vi_operate_visual(e, how);
}

void ed_vi_visual_join(ed *e, struct ed_vi_call call)
{
    uint64_t a = e->vi.anchor, b = ed_cursor(e)->offset, first = ed_vi_line_begin(e, a < b ? a : b);
    if (!ed_vi_may_change(e)) return;
    remember_extent(e);
    e->vi.from_visual = true;
    uint32_t n = 1;
    for (uint64_t line = first; (line = ed_vi_next_line(e, line)) != ED_NONE && line <= (a < b ? b : a);) n++;
    ed_vi_leave_visual(e);
    ed_vi_join(e, first, n, call.how == 'J');
}

void ed_vi_visual_turn(ed *e, struct ed_vi_call call)
{
    (void)call;
    uint64_t anchor = e->vi.anchor;
    e->vi.anchor = ed_cursor(e)->offset;
    ed_vi_place(e, anchor);
}

/* Keys I and A: begin inserting before or after the selection. */
void ed_vi_visual_insert(ed *e, struct ed_vi_call call)
{
    struct ed_vi *vi = &e->vi;
    bool before = call.how == 'I', is_block = vi->mode == ED_VI_VISUAL_BLOCK;
    bool by_lines = vi->mode == ED_VI_VISUAL_LINES;
    if (!ed_vi_may_change(e)) return;
    remember_extent(e);
    vi->from_visual = true;
    struct block block = block_of(e);
    ed_vi_leave_visual(e);
    if (is_block) {
        vi->block_appends = !before;
        block_cursors(e, ed_vi_line_begin(e, block.first), block.n_lines, before ? block.column : block.behind,
                      !before && block.to_end);
    } else {
        uint64_t at = before ? block.first : whit_layout_behind(ed_layout(e), block.last);
        if (by_lines) at = before ? ed_vi_line_begin(e, block.first) : ed_vi_line_end(e, block.last);
        ed_vi_place(e, at);
    }
    ed_vi_begin_insert(e, ED_VI_INSERT, 'i');
}

static void block_fill(ed *e, whit_range range, uint32_t code)
{
    uint8_t text[4];
    size_t n = whit_utf8_encode(code, text);
    for (uint64_t at = range.begin, end = range.end; at < end;) {
        int byte = whit_layout_byte(ed_layout(e), at);
        uint64_t next = whit_layout_behind(ed_layout(e), at);
        if (byte == '\n' || byte == '\r' || byte < 0) {
            at = next > at ? next : end;
            continue;
        }
        ed_edit(e, at, next - at, text, n);
        end = end - (next - at) + n;
        at += n;
    }
}

void ed_vi_visual_replace(ed *e, struct ed_vi_call call)
{
    uint32_t code = call.given == WHIT_KEY_TAB ? '\t' : call.given;
    uint64_t at;
    if (code >= WHIT_KEY_NONE || !ed_vi_may_change(e)) return;
    remember_extent(e);
    e->vi.from_visual = true;
    if (e->vi.mode == ED_VI_VISUAL_BLOCK) {
        struct block block = block_of(e);
        at = ed_vi_at_column(e, ed_vi_line_begin(e, block.first), block.column);
        each_block_line(e, block_fill, code);
    } else {
        whit_range range;
        ed_vi_selection(e, 0, ED_NONE, &range, 1);
        if (range.end - range.begin > FILL_BYTES)
            ed_vi_fail(e, "only selections of up to 1 MiB can be changed at once");
        else
            block_fill(e, range, code);
        at = range.begin;
    }
    ed_vi_leave_visual(e);
    ed_vi_place(e, at);
}
