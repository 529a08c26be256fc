/* SPDX-License-Identifier: MIT
 * Makes the edits of vi's keys. The edits of one command are one step of undo. */
#include "editor/state.h"
#include "editor/vi_action.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

#define CASE_BYTES (64u << 20) /* maximum number of bytes whose case one command changes */

/* Starts (`on`) or stops merging all edits of the current buffer into one step of undo. */
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
        ed_vi_fail(e, "%s is read-only: save-as writes a copy that can be changed", e->window->doc->buffer->name);
        return false;
    }
    ed_vi_hold(e, true);
    e->vi.changed = true;
    return true;
}

void ed_vi_place(ed *e, uint64_t at)
{
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
}

/* ---- operators over lines ------------------------------------------------------------------ */

static void delete_lines(ed *e, uint64_t begin, uint64_t last)
{
    uint64_t end = whit_text_line_end(ed_text(e), last), size = whit_text_size(ed_text(e));
    if (end < size)
        end++;
    else if (begin) /* the deleted lines end the text, so delete the line end before them */
        begin = ed_vi_before(e, begin);
    if (end > begin) ed_edit(e, begin, end - begin, NULL, 0);
    if (begin > ed_vi_end(e)) begin = ed_vi_end(e);
    ed_vi_place(e, ed_vi_first(e, begin));
}

/* Deletes the text of lines, but keeps the first line's indentation. */
static void empty_lines(ed *e, uint64_t begin, uint64_t last)
{
    uint64_t from = ed_skip_blanks(e, begin), end = ed_vi_line_end(e, last);
    if (from > ed_vi_line_end(e, begin)) from = ed_vi_line_end(e, begin);
    if (end > from) ed_edit(e, from, end - from, NULL, 0);
    ed_vi_place(e, from);
    e->vi.auto_indent = from > begin;
}

/* Calls `change` for each line from the last to the first, so that the offsets of the remaining lines stay valid. */
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
    if (how == 'u') return lower;
    if (how == 'U') return upper;
    if (code == lower) return upper;
    return lower;
}

/* Changes letters to upper case ('U'), to lower case ('u'), or to the opposite case ('~'). */
void ed_vi_turn_case(ed *e, uint64_t begin, uint64_t end, uint32_t how)
{
    size_t n = (size_t)(end - begin), length;
    if (!n) return;
    uint8_t *text = n > CASE_BYTES ? NULL : malloc(n);
    whit_buf out = {0};
    if (!text) {
        ed_vi_fail(e, "the case of at most 64 MiB can be changed at once");
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

/* Applies an operator to whole lines: from the line that begins at `begin` to the line that contains `last`. */
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
        last = ed_vi_line_end(e, last); /* use the line's end, which stays in the line when outdenting shortens it */
        for (uint32_t n = e->vi.from_visual ? ed_vi_count(e) : 1; n-- && n < 64;) {
            uint64_t size = whit_text_size(ed_text(e));
            each_line(e, begin, last, code == '>' ? indent : ed_outdent_line);
            last += whit_text_size(ed_text(e)) - size;
            if (last < begin) last = begin;
        }
        ed_vi_place(e, ed_vi_first(e, begin));
        break;
    case '=':
        if (!ed_reindent(e, (whit_range){begin, behind})) e->vi.failed = true;
        ed_vi_place(e, ed_vi_first(e, begin));
        break;
    case ED_VI_G | 'q':
        last = ed_reflow(e, (whit_range){begin, behind});
        ed_vi_place(e, ed_vi_first(e, last));
        break;
    case ED_VI_G | 'c':
        toggle_comments(e, begin, last);
        ed_vi_place(e, ed_vi_first(e, begin));
        break;
    case ED_VI_G | '~':
    case ED_VI_G | 'u':
    case ED_VI_G | 'U': ed_vi_turn_case(e, begin, ed_vi_line_end(e, last), code & 127); break;
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
        ed_vi_turn_case(e, begin, end, code & 127);
    }
    ed_vi_place(e, begin);
}

bool ed_vi_is_by_lines(uint32_t code)
{
    return code == '<' || code == '>' || code == '=' || code == (ED_VI_G | 'c') || code == (ED_VI_G | 'q');
}

void ed_vi_operate(ed *e, uint32_t code, struct ed_vi_span span)
{
    uint64_t begin = span.begin < span.end ? span.begin : span.end;
    uint64_t end = span.begin < span.end ? span.end : span.begin;
    bool lines = span.lines;
    if (code != 'y' && !ed_vi_may_change(e)) return;
    if (end > whit_text_size(ed_text(e))) end = whit_text_size(ed_text(e));
    if (!lines && span.inclusive) {
        if (end < ed_vi_line_end(e, end)) end = ed_vi_behind(e, end);
    } else if (!lines && !span.is_fixed && end > begin && end == ed_vi_line_begin(e, end)) {
        /* A motion that ends at the beginning of a line is shortened to the end of the previous line. If only blanks
         * precede its beginning, the operator acts on whole lines. */
        lines = only_blanks_before(e, begin);
        end = ed_vi_before(e, end);
    }
    if (code == 'd' && !lines && !e->vi.from_visual && ed_vi_line_begin(e, begin) != ed_vi_line_begin(e, end) &&
        only_blanks_before(e, begin) && ed_skip_blanks(e, end) >= ed_vi_line_end(e, end))
        lines = true;
    if (ed_vi_is_by_lines(code)) lines = true;
    e->window->doc->mark_begin = begin;
    e->window->doc->mark_end = end > begin ? ed_vi_before(e, end) : begin;
    if (lines) {
        uint64_t first = ed_vi_line_begin(e, begin), cursor = begin;
        ed_vi_lines_do(e, code, first, end);
        if (code == 'y' || ((code & ED_VI_G) && code != (ED_VI_G | 'q'))) ed_vi_place(e, cursor);
    } else {
        chars_do(e, code, begin, end);
    }
    if (code == 'c') ed_vi_begin_insert(e, ED_VI_INSERT, 'c');
}

/* ---- characters ---------------------------------------------------------------------------- */

void ed_vi_replace_char(ed *e, struct ed_vi_call call)
{
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, at), to = at;
    uint32_t code = call.given == WHIT_KEY_TAB ? '\t' : call.given;
    bool feed = code == WHIT_KEY_ENTER;
    if (code >= WHIT_KEY_NONE && !feed) return;
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
        ed_vi_place(e, at);
        ed_vi_run(e, "new-line");
        ed_vi_place(e, ed_vi_first(e, ed_cursor(e)->offset));
        return;
    }
    whit_buf out = {0};
    for (uint32_t i = 0; i < n; i++) whit_buf_append(&out, text, length);
    if (!out.failed) ed_edit(e, at, to - at, out.data, out.size_bytes);
    whit_buf_free(&out);
    ed_vi_place(e, at + (n - 1) * length);
}

void ed_vi_join(ed *e, uint64_t first, uint32_t n_lines, bool with_space)
{
    uint64_t cursor = ED_NONE;
    if (n_lines < 2) n_lines = 2;
    for (; n_lines > 1; n_lines--) {
        uint64_t next = ed_vi_next_line(e, first);
        if (next == ED_NONE) {
            if (cursor == ED_NONE) ed_vi_fail(e, "there is no line below");
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
    if (cursor != ED_NONE) ed_vi_place(e, cursor);
}

/* Keys C-a and C-x: add the count to, or subtract it from, the number at the cursor or the next number in the line. */
void ed_vi_change_number(ed *e, struct ed_vi_call call)
{
    int64_t delta = call.how == 'a' ? (int64_t)ed_vi_count(e) : -(int64_t)ed_vi_count(e);
    uint64_t at = ed_cursor(e)->offset, line = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    whit_layout *layout = ed_layout(e);
    bool hex = false, minus = false;
    char text[72];
    uint64_t begin = at, from;
    const int here = at < end ? whit_layout_byte(layout, at) : ' ';
    const bool is_inside = isxdigit(here) || (here | 32) == 'x';
    while (is_inside && begin > line && isxdigit(whit_layout_byte(layout, begin - 1))) begin--;
    for (from = begin; from < end; from++) /* find a number 0x... that ends at or after the cursor */
        if (whit_layout_byte(layout, from) == '0' && (whit_layout_byte(layout, from + 1) | 32) == 'x' &&
            isxdigit(whit_layout_byte(layout, from + 2)))
            break;
    if (isxdigit(here) && begin >= line + 2 && (whit_layout_byte(layout, begin - 1) | 32) == 'x' &&
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
        ed_vi_fail(e, "there is no number in the line from here on");
        return;
    }
    uint64_t to = begin;
    while (to < end && (hex ? isxdigit(whit_layout_byte(layout, to)) : isdigit(whit_layout_byte(layout, to)))) to++;
    int width = (int)(to - begin);
    if (to - begin > (hex ? 16 : 18)) {
        ed_vi_fail(e, "the number has over 18 digits (16 after 0x), the limit");
        return;
    }
    text[whit_text_read(ed_text(e), begin, text, to - begin)] = 0;
    bool padded = text[0] == '0' && width > 1;
    minus = !hex && begin > line && whit_layout_byte(layout, begin - 1) == '-';
    int n;
    if (hex) { /* the letters of the result get the case of the old number's last letter */
        bool upper = false;
        for (const char *digit = text; *digit; digit++)
            if (isalpha((uint8_t)*digit)) upper = isupper((uint8_t)*digit);
        n = snprintf(text, sizeof text, upper ? "%0*llX" : "%0*llx", width,
                     strtoull(text, NULL, 16) + (unsigned long long)delta);
    } else {
        int64_t value = strtoll(text, NULL, 10);
        value = (minus ? -value : value) + delta;
        begin -= minus;
        const char *sign = value < 0 ? "-" : "";
        long long magnitude = value < 0 ? -value : value;
        n = snprintf(text, sizeof text, "%s%0*lld", sign, padded ? width : 1, magnitude);
    }
    if (!ed_vi_may_change(e)) return;
    ed_edit(e, begin, to - begin, text, (size_t)n);
    ed_vi_place(e, begin + (uint64_t)n - 1);
}

/* ---- actions of single keys ---------------------------------------------------------------- */

void ed_vi_delete_chars(ed *e, struct ed_vi_call call)
{
    bool back = call.how == 'X';
    uint64_t at = ed_cursor(e)->offset, to = at, begin = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    for (uint32_t n = ed_vi_count(e); n-- && (back ? to > begin : to < end);)
        to = back ? ed_vi_before(e, to) : ed_vi_behind(e, to);
    if (to != at) ed_vi_operate(e, 'd', (struct ed_vi_span){.begin = at, .end = to, .is_fixed = true});
}

void ed_vi_substitute_chars(ed *e, struct ed_vi_call call)
{
    (void)call;
    uint64_t at = ed_cursor(e)->offset, to = at, end = ed_vi_line_end(e, at);
    for (uint32_t n = ed_vi_count(e); n-- && to < end;) to = ed_vi_behind(e, to);
    ed_vi_operate(e, 'c', (struct ed_vi_span){.begin = at, .end = to, .is_fixed = true});
}

/* Returns an offset in the last of the lines to which the command's count extends, counted from the line at `line`. */
static uint64_t last_counted_line(ed *e, uint64_t line)
{
    uint64_t next;
    for (uint32_t n = ed_vi_count(e); --n && (next = ed_vi_next_line(e, line)) != ED_NONE;) line = next;
    return line;
}

void ed_vi_operate_to_end(ed *e, struct ed_vi_call call)
{
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, last_counted_line(e, at));
    ed_vi_operate(e, call.how, (struct ed_vi_span){.begin = at, .end = end, .is_fixed = true});
}

void ed_vi_operate_lines(ed *e, struct ed_vi_call call)
{
    uint64_t at = ed_cursor(e)->offset;
    ed_vi_operate(e, call.how, (struct ed_vi_span){.begin = at, .end = last_counted_line(e, at), .lines = true});
}

void ed_vi_undo(ed *e, struct ed_vi_call call)
{
    whit_range changed;
    ed_vi_hold(e, false);
    if (!ed_steps(e, call.how == 'u', ed_vi_count(e), &changed)) e->vi.failed = e->message_is_error = true;
    if (changed.begin != ED_NONE) ed_vi_place(e, changed.begin);
}

void ed_vi_set_mark(ed *e, struct ed_vi_call call)
{
    if (call.given >= 'a' && call.given <= 'z')
        e->window->doc->marks[call.given - 'a'] = ed_cursor(e)->offset;
    else
        ed_vi_fail(e, "a mark must be a letter from a to z");
}

void ed_vi_put_text(ed *e, struct ed_vi_call call)
{
    ed_vi_put(e, (call.how & 127) == 'P', call.how & ED_VI_G, ED_NONE);
}

void ed_vi_join_lines(ed *e, struct ed_vi_call call)
{
    uint64_t line = ed_vi_line_begin(e, ed_cursor(e)->offset);
    if (ed_vi_may_change(e)) ed_vi_join(e, line, ed_vi_count(e), call.how == 'J');
}

void ed_vi_replace_mode(ed *e, struct ed_vi_call call)
{
    (void)call;
    if (ed_vi_may_change(e)) ed_vi_begin_insert(e, ED_VI_REPLACE, 'R');
}

void ed_vi_open_line(ed *e, struct ed_vi_call call)
{
    bool above = call.how == 'O';
    uint64_t at = ed_cursor(e)->offset, begin = ed_vi_line_begin(e, at);
    if (!ed_vi_may_change(e)) return;
    if (above) { /* copy the indentation of the cursor's line */
        uint64_t blanks = ed_skip_blanks(e, begin), end = ed_vi_line_end(e, begin);
        char text[256];
        size_t n = (size_t)((blanks < end ? blanks : end) - begin);
        n = whit_text_read(ed_text(e), begin, text, n < 200 ? n : 200);
        bool carriage = whit_layout_byte(ed_layout(e), end) == '\r';
        memcpy(text + n, "\r\n", 2);
        if (!carriage) text[n] = '\n';
        if (ed_edit(e, begin, 0, text, n + 1 + carriage)) ed_vi_place(e, begin + n);
    } else {
        ed_vi_place(e, ed_vi_line_end(e, at));
        ed_vi_run(e, "new-line");
    }
    ed_vi_begin_insert(e, ED_VI_INSERT, call.how);
    e->vi.auto_indent = true;
}

void ed_vi_toggle_case(ed *e, struct ed_vi_call call)
{
    (void)call;
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, at), to = at;
    for (uint32_t n = ed_vi_count(e); n-- && to < end;) to = ed_vi_behind(e, to);
    if (to == at || !ed_vi_may_change(e)) return;
    uint64_t size = whit_text_size(ed_text(e));
    ed_vi_turn_case(e, at, to, '~');
    ed_vi_place(e, to + (whit_text_size(ed_text(e)) - size));
}

void ed_vi_insert_here(ed *e, struct ed_vi_call call)
{
    uint64_t at = ed_cursor(e)->offset, end = ed_vi_line_end(e, at), last = e->vi.last_insert;
    switch (call.how) {
    case 'a': at = at < end ? ed_vi_behind(e, at) : at; break;
    case 'I': at = ed_skip_blanks(e, ed_vi_line_begin(e, at)); break;
    case 'A': at = end; break;
    case ED_VI_G | 'I': at = ed_vi_line_begin(e, at); break;
    case ED_VI_G | 'i':
        if (last != ED_NONE) at = last < ed_vi_end(e) ? last : ed_vi_end(e);
        break;
    default: break;
    }
    if (!ed_vi_may_change(e)) return;
    ed_vi_place(e, at);
    ed_vi_begin_insert(e, ED_VI_INSERT, 'i');
}
