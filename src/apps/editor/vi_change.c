/* SPDX-License-Identifier: MIT
 * What vi's keys do to the text. What one command does is one step of undo. */
#include "editor/state.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

#define CASE_BYTES (64u << 20) /* longest text whose case is changed at once */

/* Merges all edits into one step of undo until it is switched off. */
void ed_vi_hold(ed *e, bool on)
{
    struct ed_vi *vi = &e->vi;
    whit_buffer *buffer = on ? e->window->doc->buffer : NULL;
    if (vi->held == buffer) return;
    if (vi->held) {
        vi->held->held = false;
        whit_buffer_seal(vi->held);
    }
    vi->held = buffer;
    if (!buffer) return;
    whit_buffer_seal(buffer);
    buffer->held = true;
}

bool ed_vi_may_change(ed *e)
{
    if (e->window->doc->buffer->read_only) {
        ed_vi_fail(e, "%s is read-only", e->window->doc->buffer->name);
        return false;
    }
    ed_vi_hold(e, true);
    e->vi.changed = true;
    return true;
}

static void place(ed *e, uint64_t at)
{
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
}

/* ---- operators over lines ------------------------------------------------------------------ */

static void delete_lines(ed *e, uint64_t begin, uint64_t last)
{
    uint64_t end = whit_text_line_end(ed_text(e), last), size = whit_text_size(ed_text(e));
    if (end < size)
        end++;
    else if (begin) /* the last line: the end of the line before is removed */
        begin = ed_vi_before(e, begin);
    if (end > begin) ed_edit(e, begin, end - begin, NULL, 0);
    if (begin > ed_vi_end(e)) begin = ed_vi_end(e);
    place(e, ed_vi_first(e, begin));
}

/* Removes the text of lines but for the first one's indentation. */
static void empty_lines(ed *e, uint64_t begin, uint64_t last)
{
    uint64_t from = ed_skip_blanks(e, begin), end = ed_vi_line_end(e, last);
    if (from > ed_vi_line_end(e, begin)) from = ed_vi_line_end(e, begin);
    if (end > from) ed_edit(e, from, end - from, NULL, 0);
    place(e, from);
    e->vi.auto_indent = from > begin;
}

/* Calls `change` from the last line to the first, so that preceding offsets stay valid. */
static void each_line(ed *e, uint64_t begin, uint64_t last, void (*change)(ed *e, uint64_t line))
{
    for (uint64_t line = ed_vi_line_begin(e, last);; line = ed_vi_line_begin(e, line - 1)) {
        change(e, line);
        if (line <= begin) break;
    }
}

static void indent(ed *e, uint64_t line)
{
    ed_indent_line(e, line, false);
}

static utf8proc_int32_t turned(utf8proc_int32_t code, uint32_t how)
{
    utf8proc_int32_t upper = utf8proc_toupper(code), lower = utf8proc_tolower(code);
    return how == 'u' ? lower : how == 'U' ? upper : code == lower ? upper : lower;
}

/* Changes letters to upper case ('U'), to lower case ('u'), or the other way round ('~'). */
static void turn_case(ed *e, uint64_t begin, uint64_t end, uint32_t how)
{
    size_t n = (size_t)(end - begin), length;
    if (!n) return;
    uint8_t *text = n > CASE_BYTES ? NULL : malloc(n);
    whit_buf out = {0};
    if (!text) {
        ed_vi_fail(e, "that is too much at once");
        return;
    }
    n = whit_text_read(ed_text(e), begin, text, n);
    for (size_t i = 0; i < n; i += length) {
        uint32_t code = whit_utf8_decode(text + i, n - i, &length);
        uint8_t bytes[4];
        if (code == WHIT_UTF8_INVALID)
            whit_buf_append(&out, text + i, length);
        else
            whit_buf_append(&out, bytes, whit_utf8_encode((uint32_t)turned((int32_t)code, how), bytes));
    }
    if (!out.failed && (out.size_bytes != n || memcmp(out.data, text, n)))
        ed_edit(e, begin, n, out.data, out.size_bytes);
    whit_buf_free(&out);
    free(text);
}

static void toggle_comments(ed *e, uint64_t begin, uint64_t last)
{
    uint64_t end = ed_vi_line_end(e, last);
    *ed_cursor(e) = (struct ed_cursor){end, end > begin ? begin : ED_NONE, -1};
    ed_vi_run(e, "toggle-comment");
}

/* Applies an operator to whole lines, from the line that begins at `begin` to the line that contains `last`. */
void ed_vi_lines_do(ed *e, uint32_t code, uint64_t begin, uint64_t last)
{
    uint64_t behind = whit_text_line_end(ed_text(e), last);
    if (behind < whit_text_size(ed_text(e))) behind++;
    if (code == 'd' || code == 'c' || code == 'y')
        ed_vi_register_keep(e, (whit_range){begin, behind}, true, false, code != 'y');
    switch (code) {
    case 'd': delete_lines(e, begin, last); break;
    case 'c': empty_lines(e, begin, last); break;
    case '<':
    case '>':
        last = ed_vi_line_end(e, last); /* the end of the line stays in it when it gets shorter */
        for (uint32_t n = e->vi.from_visual ? ed_vi_count(e) : 1; n-- && n < 64;) {
            uint64_t size = whit_text_size(ed_text(e));
            each_line(e, begin, last, code == '>' ? indent : ed_outdent_line);
            last += whit_text_size(ed_text(e)) - size;
            if (last < begin) last = begin;
        }
        place(e, ed_vi_first(e, begin));
        break;
    case '=':
        if (!ed_reindent(e, (whit_range){begin, behind})) e->vi.failed = true;
        place(e, ed_vi_first(e, begin));
        break;
    case ED_VI_G | 'q':
        last = ed_reflow(e, (whit_range){begin, behind});
        place(e, ed_vi_first(e, last));
        break;
    case ED_VI_G | 'c':
        toggle_comments(e, begin, last);
        place(e, ed_vi_first(e, begin));
        break;
    case ED_VI_G | '~':
    case ED_VI_G | 'u':
    case ED_VI_G | 'U': turn_case(e, begin, ed_vi_line_end(e, last), code & 127); break;
    default: break;
    }
}

/* ---- operators ----------------------------------------------------------------------------- */

static bool only_blanks_before(ed *e, uint64_t at)
{
    return ed_skip_blanks(e, ed_vi_line_begin(e, at)) >= at;
}

static void chars_do(ed *e, uint32_t code, uint64_t begin, uint64_t end)
{
    if (end > begin && (code == 'd' || code == 'c' || code == 'y'))
        ed_vi_register_keep(e, (whit_range){begin, end}, false, false, code != 'y');
    if (code == 'd' || code == 'c') {
        if (end > begin) ed_edit(e, begin, end - begin, NULL, 0);
    } else if (code & ED_VI_G) {
        turn_case(e, begin, end, code & 127);
    }
    place(e, begin);
}

static bool is_by_lines(uint32_t code)
{
    return code == '<' || code == '>' || code == '=' || code == (ED_VI_G | 'c') || code == (ED_VI_G | 'q');
}

void ed_vi_operate(ed *e, uint32_t code, struct ed_vi_span span)
{
    uint64_t begin = span.begin < span.end ? span.begin : span.end, end = span.begin < span.end ? span.end : span.begin;
    bool lines = span.lines;
    if (code != 'y' && !ed_vi_may_change(e)) return;
    if (end > whit_text_size(ed_text(e))) end = whit_text_size(ed_text(e));
    if (!lines && span.inclusive) {
        if (end < ed_vi_line_end(e, end)) end = ed_vi_behind(e, end);
    } else if (!lines && !span.is_fixed && end > begin && end == ed_vi_line_begin(e, end)) {
        /* A motion to the beginning of a line ends at the end of the line before; it takes whole lines if only
         * blanks precede its beginning. */
        lines = only_blanks_before(e, begin);
        end = ed_vi_before(e, end);
    }
    if (code == 'd' && !lines && !e->vi.from_visual && ed_vi_line_begin(e, begin) != ed_vi_line_begin(e, end) &&
        only_blanks_before(e, begin) && ed_skip_blanks(e, end) >= ed_vi_line_end(e, end))
        lines = true;
    if (is_by_lines(code)) lines = true;
    e->window->doc->mark_begin = begin;
    e->window->doc->mark_end = end > begin ? ed_vi_before(e, end) : begin;
    if (lines) {
        uint64_t first = ed_vi_line_begin(e, begin), cursor = begin;
        ed_vi_lines_do(e, code, first, end);
        if (code == 'y' || ((code & ED_VI_G) && code != (ED_VI_G | 'q'))) place(e, cursor);
    } else {
        chars_do(e, code, begin, end);
    }
    if (code == 'c') ed_vi_begin_insert(e, ED_VI_INSERT, 'c');
}

/* ---- visual mode --------------------------------------------------------------------------- */

/* Calls `change` for the lines of a block from the last to the first, so that edits do not move the remaining lines. */
static void each_block_line(ed *e, void (*change)(ed *e, whit_range range, uint32_t code), uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = ed_vi_line_begin(e, a < b ? a : b);
    /* Columns are taken before the first edit. */
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
    turn_case(e, range.begin, range.end, code);
}

/* Puts cursors at the same column of all the block's lines; typing continues in all of them. */
static void block_cursors(ed *e, uint64_t first, uint64_t n_lines, int column, bool to_end)
{
    size_t n = 0;
    uint64_t main = ED_NONE;
    for (uint64_t line = first; line != ED_NONE && n_lines--; line = ed_vi_next_line(e, line)) {
        uint64_t at = to_end ? ed_vi_line_end(e, line) : ed_vi_at_column(e, line, column);
        if (!to_end && ed_vi_column(e, at) < column) {
            if (e->vi.block_appends) { /* A pads, I leaves short lines out */
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
            ed_complain(e, "in the first %d lines", ED_CURSORS_MAX);
            break;
        }
        e->window->cursors[n++] = (struct ed_cursor){at, ED_NONE, -1};
    }
    e->window->cursors[n] = (struct ed_cursor){main, ED_NONE, -1};
    e->window->n_cursors = n + 1;
}

struct block {
    uint64_t first, last, n_lines;
    int column, behind; /* the left column, and the column after the right one */
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
    place(e, ed_vi_at_column(e, first_line, block.column));
    if (code != 'c') return;
    block_cursors(e, first_line, block.n_lines, block.column, false);
    ed_vi_begin_insert(e, ED_VI_INSERT, 'c');
}

static void remember_extent(ed *e)
{
    struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b, last = a < b ? b : a;
    struct ed_vi_extent *extent = &vi->repeat_extent;
    if (vi->repeating) return;
    *extent = (struct ed_vi_extent){.mode = vi->mode, .to_end = ed_cursor(e)->goal >= ED_VI_LAST_COLUMN};
    for (uint64_t line = ed_vi_line_begin(e, first); (line = ed_vi_next_line(e, line)) != ED_NONE && line <= last;)
        extent->n_lines++;
    int ca = ed_vi_column(e, a), cb = ed_vi_column(e, b);
    extent->n_columns = vi->mode == ED_VI_VISUAL_BLOCK ? (ca < cb ? cb - ca : ca - cb)
        : extent->n_lines                              ? ed_vi_column(e, last)
                                                       : (ca < cb ? cb - ca : ca - cb);
}

void ed_vi_operate_visual(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b, last = a < b ? b : a;
    if (code != 'y' && !ed_vi_may_change(e)) {
        ed_vi_leave_visual(e);
        return;
    }
    remember_extent(e);
    vi->from_visual = true;
    bool by_lines = is_by_lines(code);
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
        place(e, ed_vi_line_begin(e, first));
}

static void put_over(ed *e, bool keeps)
{
    struct ed_vi *vi = &e->vi;
    struct ed_vi_register reg;
    uint32_t name = vi->wanted_register;
    if (!ed_vi_may_change(e)) return;
    if (!ed_vi_register_read(e, name, &reg)) {
        ed_vi_fail(e, "nothing is in that register");
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
    bool at_end = by_lines && whit_text_line_end(ed_text(e), last) >= size; /* a last line without a line feed */
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
    place(e, reg.lines || by_lines ? ed_vi_first(e, first + n_front) : ed_vi_before(e, first + n));
    free(text);
    vi->wanted_register = name;
}

/* Keys of the visual modes that are neither motions nor operators. */
bool ed_vi_visual_command(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    bool is_block = vi->mode == ED_VI_VISUAL_BLOCK;
    struct ed_cursor *cursor = ed_cursor(e);
    uint64_t a = vi->anchor, b = cursor->offset;
    switch (code) {
    case 'x':
    case WHIT_KEY_DELETE:
    case WHIT_KEY_BACKSPACE: ed_vi_operate_visual(e, 'd'); return true;
    case 's': ed_vi_operate_visual(e, 'c'); return true;
    case 'X':
    case 'D':
    case 'Y':
    case 'S':
    case 'R':
    case 'C':
        if (is_block && (code == 'C' || code == 'D'))
            cursor->goal = ED_VI_LAST_COLUMN;
        else if (!is_block || (code != 'X' && code != 'Y'))
            vi->mode = ED_VI_VISUAL_LINES;
        ed_vi_operate_visual(e, code == 'X' || code == 'D' ? 'd' : code == 'Y' ? 'y' : 'c');
        return true;
    case '~': ed_vi_operate_visual(e, ED_VI_G | '~'); return true;
    case 'u': ed_vi_operate_visual(e, ED_VI_G | 'u'); return true;
    case 'U': ed_vi_operate_visual(e, ED_VI_G | 'U'); return true;
    case 'J':
    case ED_VI_G | 'J': {
        uint64_t first = ed_vi_line_begin(e, a < b ? a : b);
        if (!ed_vi_may_change(e)) return true;
        remember_extent(e);
        vi->from_visual = true;
        uint32_t n = 1;
        for (uint64_t line = first; (line = ed_vi_next_line(e, line)) != ED_NONE && line <= (a < b ? b : a);) n++;
        ed_vi_leave_visual(e);
        ed_vi_join(e, first, n, code == 'J');
        return true;
    }
    case 'p':
    case 'P': put_over(e, code == 'P'); return true;
    case 'o':
    case 'O':
        vi->anchor = b;
        *cursor = (struct ed_cursor){a, ED_NONE, -1};
        return true;
    case 'I':
    case 'A': {
        if (!ed_vi_may_change(e)) return true;
        remember_extent(e);
        vi->from_visual = true;
        struct block block = block_of(e);
        bool by_lines = vi->mode == ED_VI_VISUAL_LINES;
        ed_vi_leave_visual(e);
        if (is_block) {
            vi->block_appends = code == 'A';
            block_cursors(e, ed_vi_line_begin(e, block.first), block.n_lines, code == 'I' ? block.column : block.behind,
                          code == 'A' && block.to_end);
        } else {
            uint64_t at = code == 'I' ? block.first : whit_layout_behind(ed_layout(e), block.last);
            if (by_lines) at = code == 'I' ? ed_vi_line_begin(e, block.first) : ed_vi_line_end(e, block.last);
            place(e, at);
        }
        ed_vi_begin_insert(e, ED_VI_INSERT, 'i');
        return true;
    }
    default: return false;
    }
}

/* ---- characters ---------------------------------------------------------------------------- */

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

void ed_vi_replace_char(ed *e, whit_key key)
{
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, at), to = at;
    uint32_t code = key.code == WHIT_KEY_TAB ? '\t' : key.code;
    bool feed = code == WHIT_KEY_ENTER;
    if ((code >= WHIT_KEY_NONE && !feed) || key.mods) return;
    if (ed_vi_is_visual(e)) {
        if (feed || !ed_vi_may_change(e)) return;
        remember_extent(e);
        e->vi.from_visual = true;
        if (e->vi.mode == ED_VI_VISUAL_BLOCK) {
            struct block block = block_of(e);
            at = ed_vi_at_column(e, ed_vi_line_begin(e, block.first), block.column);
            each_block_line(e, block_fill, code);
        } else {
            whit_range range;
            ed_vi_selection(e, 0, ED_NONE, &range, 1);
            if (range.end - range.begin > CASE_BYTES / 64)
                ed_vi_fail(e, "that is too much at once");
            else
                block_fill(e, range, code);
            at = range.begin;
        }
        ed_vi_leave_visual(e);
        place(e, at);
        return;
    }
    uint32_t n = ed_vi_count(e);
    for (uint32_t i = 0; i < n; i++) {
        if (to >= end) {
            ed_vi_fail(e, "the line has no %u characters here", n);
            return;
        }
        to = ed_vi_behind(e, to);
    }
    if (!ed_vi_may_change(e)) return;
    uint8_t text[4];
    size_t length = feed ? 0 : whit_utf8_encode(code, text);
    if (feed) {
        ed_edit(e, at, to - at, NULL, 0);
        place(e, at);
        ed_vi_run(e, "new-line");
        place(e, ed_vi_first(e, ed_cursor(e)->offset));
        return;
    }
    whit_buf out = {0};
    for (uint32_t i = 0; i < n; i++) whit_buf_append(&out, text, length);
    if (!out.failed) ed_edit(e, at, to - at, out.data, out.size_bytes);
    whit_buf_free(&out);
    place(e, at + (n - 1) * length);
}

void ed_vi_join(ed *e, uint64_t first, uint32_t n_lines, bool with_space)
{
    uint64_t cursor = ED_NONE;
    if (n_lines < 2) n_lines = 2;
    for (; n_lines > 1; n_lines--) {
        uint64_t next = ed_vi_next_line(e, first);
        if (next == ED_NONE) {
            if (cursor == ED_NONE) ed_vi_fail(e, "no line below");
            break;
        }
        uint64_t end = ed_vi_line_end(e, first), from = with_space ? ed_skip_blanks(e, next) : next;
        uint64_t next_end = ed_vi_line_end(e, next);
        if (from > next_end) from = next_end;
        int last = end > first ? whit_layout_byte(ed_layout(e), end - 1) : ' ';
        bool space =
            with_space && from < next_end && whit_layout_byte(ed_layout(e), from) != ')' && last != ' ' && last != '\t';
        if (!ed_edit(e, end, from - end, " ", space)) return;
        cursor = space || end == first || from < next_end ? end : ed_vi_before(e, end);
    }
    if (cursor != ED_NONE) place(e, cursor);
}

/* Adds to the number at the cursor or after it in the line. */
void ed_vi_add_number(ed *e, int64_t delta)
{
    uint64_t at = ed_cursor(e)->offset, line = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    whit_layout *layout = ed_layout(e);
    bool hex = false, minus = false;
    char text[72];
    uint64_t begin = at, from;
    while (begin > line && isxdigit(whit_layout_byte(layout, begin - 1))) begin--;
    for (from = begin; from < end; from++) /* 0x... that ends at or after the cursor */
        if (whit_layout_byte(layout, from) == '0' && (whit_layout_byte(layout, from + 1) | 32) == 'x' &&
            isxdigit(whit_layout_byte(layout, from + 2)))
            break;
    if (begin >= line + 2 && (whit_layout_byte(layout, begin - 1) | 32) == 'x' &&
        whit_layout_byte(layout, begin - 2) == '0')
        from = begin - 2;
    for (begin = at;
         begin > line && isdigit(whit_layout_byte(layout, begin)) && isdigit(whit_layout_byte(layout, begin - 1));)
        begin--;
    while (begin < end && !isdigit(whit_layout_byte(layout, begin))) begin++;
    if (from < end && from <= begin) {
        hex = true;
        begin = from + 2;
    }
    if (begin >= end) {
        ed_vi_fail(e, "no number in the line from here on");
        return;
    }
    uint64_t to = begin;
    while (to < end && (hex ? isxdigit(whit_layout_byte(layout, to)) : isdigit(whit_layout_byte(layout, to)))) to++;
    int width = (int)(to - begin);
    if (to - begin > (hex ? 16 : 18)) {
        ed_vi_fail(e, "the number is too large");
        return;
    }
    text[whit_text_read(ed_text(e), begin, text, to - begin)] = 0;
    bool padded = text[0] == '0' && width > 1;
    minus = !hex && begin > line && whit_layout_byte(layout, begin - 1) == '-';
    int n;
    if (hex) { /* the case of the last letter is used for all */
        bool upper = false;
        for (const char *digit = text; *digit; digit++)
            if (isalpha((uint8_t)*digit)) upper = isupper((uint8_t)*digit);
        n = snprintf(text, sizeof text, upper ? "%0*llX" : "%0*llx", width,
                     strtoull(text, NULL, 16) + (unsigned long long)delta);
    } else {
        int64_t value = strtoll(text, NULL, 10);
        value = (minus ? -value : value) + delta;
        begin -= minus;
        n = snprintf(text, sizeof text, "%s%0*lld", value < 0 ? "-" : "", padded ? width : 1,
                     (long long)(value < 0 ? -value : value));
    }
    if (!ed_vi_may_change(e)) return;
    ed_edit(e, begin, to - begin, text, (size_t)n);
    place(e, begin + (uint64_t)n - 1);
}

/* ---- one key ------------------------------------------------------------------------------- */

static void delete_chars(ed *e, bool back)
{
    uint64_t at = ed_cursor(e)->offset, to = at, begin = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    for (uint32_t n = ed_vi_count(e); n-- && (back ? to > begin : to < end);)
        to = back ? ed_vi_before(e, to) : ed_vi_behind(e, to);
    if (to != at) ed_vi_operate(e, 'd', (struct ed_vi_span){.begin = at, .end = to, .is_fixed = true});
}

static void to_line_end(ed *e, uint32_t operator)
{
    uint64_t at = ed_cursor(e)->offset, line = at, next;
    for (uint32_t n = ed_vi_count(e); --n && (next = ed_vi_next_line(e, line)) != ED_NONE;) line = next;
    ed_vi_operate(e, operator,(struct ed_vi_span){.begin = at, .end = ed_vi_line_end(e, line), .is_fixed = true});
}

static void whole_lines(ed *e, uint32_t operator)
{
    uint64_t at = ed_cursor(e)->offset, line = at, next;
    for (uint32_t n = ed_vi_count(e); --n && (next = ed_vi_next_line(e, line)) != ED_NONE;) line = next;
    ed_vi_operate(e, operator,(struct ed_vi_span){.begin = at, .end = line, .lines = true});
}

static void step(ed *e, bool back)
{
    whit_range changed;
    ed_vi_hold(e, false);
    if (!ed_steps(e, back, ed_vi_count(e), &changed)) e->vi.failed = e->message_is_error = true;
    if (changed.begin != ED_NONE) place(e, changed.begin);
}

void ed_vi_undo(ed *e, bool back)
{
    step(e, back);
}

static void open_line(ed *e, bool above)
{
    uint64_t at = ed_cursor(e)->offset, begin = ed_vi_line_begin(e, at);
    if (!ed_vi_may_change(e)) return;
    if (above) { /* indented as this one is */
        uint64_t blanks = ed_skip_blanks(e, begin), end = ed_vi_line_end(e, begin);
        char text[256];
        size_t n = (size_t)((blanks < end ? blanks : end) - begin);
        n = whit_text_read(ed_text(e), begin, text, n < 200 ? n : 200);
        bool carriage = whit_layout_byte(ed_layout(e), end) == '\r';
        memcpy(text + n, "\r\n", 2);
        if (!carriage) text[n] = '\n';
        if (ed_edit(e, begin, 0, text, n + 1 + carriage)) place(e, begin + n);
    } else {
        place(e, ed_vi_line_end(e, at));
        ed_vi_run(e, "new-line");
    }
    ed_vi_begin_insert(e, ED_VI_INSERT, above ? 'O' : 'o');
    e->vi.auto_indent = true;
}

static void toggle_case(ed *e)
{
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, at), to = at;
    for (uint32_t n = ed_vi_count(e); n-- && to < end;) to = ed_vi_behind(e, to);
    if (to == at || !ed_vi_may_change(e)) return;
    uint64_t size = whit_text_size(ed_text(e));
    turn_case(e, at, to, '~');
    place(e, to + (whit_text_size(ed_text(e)) - size));
}

static void insert_at(ed *e, uint64_t at, uint32_t key)
{
    if (!ed_vi_may_change(e)) return;
    place(e, at);
    ed_vi_begin_insert(e, ED_VI_INSERT, key);
}

bool ed_vi_command(ed *e, uint32_t code)
{
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, at);
    switch (code) {
    case 'i':
    case WHIT_KEY_INSERT: insert_at(e, at, 'i'); break;
    case 'a': insert_at(e, at < end ? ed_vi_behind(e, at) : at, 'i'); break;
    case 'I': insert_at(e, ed_skip_blanks(e, ed_vi_line_begin(e, at)), 'i'); break;
    case 'A': insert_at(e, end, 'i'); break;
    case ED_VI_G | 'I': insert_at(e, ed_vi_line_begin(e, at), 'i'); break;
    case ED_VI_G | 'i':
        at = e->vi.last_insert == ED_NONE ? at : e->vi.last_insert;
        insert_at(e, at < ed_vi_end(e) ? at : ed_vi_end(e), 'i');
        break;
    case 'o':
    case 'O': open_line(e, code == 'O'); break;
    case 'x':
    case WHIT_KEY_DELETE:
    case 'X': delete_chars(e, code == 'X'); break;
    case 's': {
        uint64_t to = at;
        for (uint32_t n = ed_vi_count(e); n-- && to < end;) to = ed_vi_behind(e, to);
        ed_vi_operate(e, 'c', (struct ed_vi_span){.begin = at, .end = to, .is_fixed = true});
        break;
    }
    case 'S': whole_lines(e, 'c'); break;
    case 'Y': whole_lines(e, 'y'); break;
    case 'D': to_line_end(e, 'd'); break;
    case 'C': to_line_end(e, 'c'); break;
    case 'p':
    case 'P': ed_vi_put(e, code == 'P', false, ED_NONE); break;
    case ED_VI_G | 'p':
    case ED_VI_G | 'P': ed_vi_put(e, (code & 127) == 'P', true, ED_NONE); break;
    case 'J':
    case ED_VI_G | 'J':
        if (ed_vi_may_change(e)) ed_vi_join(e, ed_vi_line_begin(e, at), ed_vi_count(e), code == 'J');
        break;
    case 'u': step(e, true); break;
    case '~': toggle_case(e); break;
    case 'R':
        if (!ed_vi_may_change(e)) break;
        ed_vi_begin_insert(e, ED_VI_REPLACE, 'R');
        break;
    default: return false;
    }
    return true;
}
