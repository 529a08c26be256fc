/* SPDX-License-Identifier: MIT
 * Targets of vi's motions. Positions are characters and the ends of lines; the empty line that the editor shows
 * after a last line feed does not exist for vi. */
#include "editor/state.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define BRACKET_BYTES 1000000u /* a key does not wait for more */

uint64_t ed_vi_line_begin(ed *e, uint64_t at)
{
    return whit_layout_line_begin(ed_layout(e), at);
}

uint64_t ed_vi_line_end(ed *e, uint64_t at)
{
    return whit_layout_line_end(ed_layout(e), at);
}

uint64_t ed_vi_end(ed *e)
{
    uint64_t size = whit_text_size(ed_text(e));
    if (!size || whit_layout_byte(ed_layout(e), size - 1) != '\n') return size;
    return size > 1 && whit_layout_byte(ed_layout(e), size - 2) == '\r' ? size - 2 : size - 1;
}

uint64_t ed_vi_next_line(ed *e, uint64_t at)
{
    uint64_t end = whit_text_line_end(ed_text(e), at), size = whit_text_size(ed_text(e));
    return end + 1 < size ? end + 1 : ED_NONE;
}

uint64_t ed_vi_before(ed *e, uint64_t at)
{
    return whit_layout_before(ed_layout(e), at);
}

uint64_t ed_vi_behind(ed *e, uint64_t at)
{
    return at < ed_vi_end(e) ? whit_layout_behind(ed_layout(e), at) : at;
}

bool ed_vi_is_empty_line(ed *e, uint64_t at)
{
    return ed_vi_line_begin(e, at) == ed_vi_line_end(e, at);
}

int ed_vi_class(ed *e, uint64_t at, bool big)
{
    int byte = whit_layout_byte(ed_layout(e), at);
    return byte < 0 || isspace(byte) ? 0 : big || ed_is_word(byte) ? 1 : 2;
}

uint64_t ed_vi_first(ed *e, uint64_t at)
{
    uint64_t begin = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    uint64_t first = ed_skip_blanks(e, begin);
    if (first < end) return first;
    return end > begin ? ed_vi_before(e, end) : begin;
}

/* Lines are taken as they are, not as they are wrapped. */
uint64_t ed_vi_at_column(ed *e, uint64_t line, int column)
{
    whit_layout *layout = ed_layout(e);
    uint64_t end = ed_vi_line_end(e, line);
    if (column >= ED_VI_LAST_COLUMN) return end;
    int wrap = layout->wrap_columns;
    layout->wrap_columns = 0;
    uint64_t at = whit_layout_at_column(layout, line, column);
    layout->wrap_columns = wrap;
    return at < end ? at : end;
}

int ed_vi_column(ed *e, uint64_t at)
{
    whit_layout *layout = ed_layout(e);
    int wrap = layout->wrap_columns;
    layout->wrap_columns = 0;
    int column = whit_layout_column(layout, ed_vi_line_begin(e, at), at);
    layout->wrap_columns = wrap;
    return column;
}

/* ---- words --------------------------------------------------------------------------------- */

/* w and W. For an operator, the last word ends at the end of its line at the latest. */
static bool words_forward(ed *e, uint64_t *to, uint32_t n, bool big, bool stays)
{
    uint64_t end = ed_vi_end(e), at = *to;
    if (at >= end) return false;
    while (n--) {
        int class = ed_vi_class(e, at, big);
        bool crossed = at == ed_vi_line_end(e, at);
        if (at >= end) break;
        at = ed_vi_behind(e, at);
        if (stays && !n && (crossed || at == ed_vi_line_end(e, at))) break;
        if (class)
            while (at < end && ed_vi_class(e, at, big) == class) at = ed_vi_behind(e, at);
        if (stays && !n && at == ed_vi_line_end(e, at)) break;
        while (at < end && !ed_vi_class(e, at, big) && !ed_vi_is_empty_line(e, at)) at = ed_vi_behind(e, at);
    }
    *to = at;
    return true;
}

static bool words_back(ed *e, uint64_t *to, uint32_t n, bool big)
{
    uint64_t at = *to;
    if (!at) return false;
    while (n-- && at) {
        at = ed_vi_before(e, at);
        while (at && !ed_vi_class(e, at, big) && !ed_vi_is_empty_line(e, at)) at = ed_vi_before(e, at);
        int class = ed_vi_class(e, at, big);
        if (!class) continue;
        for (uint64_t begin = ed_vi_line_begin(e, at), before; at > begin; at = before)
            if (ed_vi_class(e, before = ed_vi_before(e, at), big) != class) break;
    }
    *to = at;
    return true;
}

/* e and E; `stays`: cw at the end of a word stays there. */
static bool word_ends_forward(ed *e, uint64_t *to, uint32_t n, bool big, bool stays)
{
    uint64_t end = ed_vi_end(e), at = *to;
    if (at >= end) return false;
    for (; n--; stays = false) {
        int class = ed_vi_class(e, at, big);
        uint64_t next = ed_vi_behind(e, at);
        if (next >= end && !stays) break;
        bool inside = class && ed_vi_class(e, next, big) == class;
        if (!inside) {
            if (stays && class) continue;
            while (next < end && !ed_vi_class(e, next, big)) next = ed_vi_behind(e, next);
            if (next >= end) {
                at = ed_vi_before(e, end);
                break;
            }
            class = ed_vi_class(e, next, big);
        }
        for (at = next; (next = ed_vi_behind(e, at)) < end && ed_vi_class(e, next, big) == class;) at = next;
    }
    *to = at;
    return true;
}

/* ge and gE */
static bool word_ends_back(ed *e, uint64_t *to, uint32_t n, bool big)
{
    uint64_t at = *to;
    if (!at) return false;
    while (n-- && at) {
        int class = ed_vi_class(e, at, big);
        at = ed_vi_before(e, at);
        if (class)
            while (at && ed_vi_class(e, at, big) == class) at = ed_vi_before(e, at);
        while (at && !ed_vi_class(e, at, big) && !ed_vi_is_empty_line(e, at)) at = ed_vi_before(e, at);
    }
    *to = at;
    return true;
}

/* ---- in a line ----------------------------------------------------------------------------- */

static bool has_code(ed *e, uint64_t at, uint32_t code)
{
    uint8_t wanted[4], text[4];
    size_t n = whit_utf8_encode(code, wanted);
    return whit_text_read(ed_text(e), at, text, n) == n && !memcmp(text, wanted, n);
}

/* f t F T. `again` (; and ,): t skips the character that the cursor is already before. */
static bool find_char(ed *e, uint64_t *to, uint32_t how, uint32_t code, uint32_t n, bool again)
{
    bool back = how == 'F' || how == 'T', before = how == 't' || how == 'T';
    uint64_t begin = ed_vi_line_begin(e, *to), end = ed_vi_line_end(e, *to), at = *to;
    if (!code || code >= WHIT_KEY_NONE) return false;
    if (again && before && n == 1) { /* t;  moves on */
        uint64_t next = back ? (at > begin ? ed_vi_before(e, at) : at) : ed_vi_behind(e, at);
        if (next != at && has_code(e, next, code)) at = next;
    }
    while (n--) {
        do {
            if (back ? at <= begin : at >= end) return false;
            at = back ? ed_vi_before(e, at) : ed_vi_behind(e, at);
            if (at >= end) return false;
        } while (!has_code(e, at, code));
    }
    if (before) at = back ? ed_vi_behind(e, at) : ed_vi_before(e, at);
    *to = at;
    return true;
}

static bool find_again(ed *e, bool turned, uint64_t *to, bool *back)
{
    uint32_t how = e->vi.find;
    if (turned) how = (uint32_t)(isupper((int)how) ? tolower((int)how) : toupper((int)how));
    *back = how == 'F' || how == 'T';
    return how && find_char(e, to, how, e->vi.find_char, ed_vi_count(e), true);
}

static bool match_bracket(ed *e, uint64_t *to)
{
    uint64_t end = ed_vi_line_end(e, *to);
    for (uint64_t at = *to; at < end; at++) {
        int byte = whit_layout_byte(ed_layout(e), at);
        if (byte <= 0 || !strchr("()[]{}", byte)) continue;
        uint64_t match = ed_bracket(e, at, BRACKET_BYTES);
        if (match == ED_NONE) return false;
        *to = match;
        return true;
    }
    return false;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Moves up or down by lines; false if there is no line in that direction. */
static bool by_lines(ed *e, uint64_t *line, uint32_t n, bool upward)
{
    uint64_t at = ed_vi_line_begin(e, *line), from = at;
    while (n--) {
        uint64_t next = upward ? (at ? ed_vi_line_begin(e, at - 1) : ED_NONE) : ed_vi_next_line(e, at);
        if (next == ED_NONE) break;
        at = next;
    }
    *line = at;
    return at != from;
}

uint64_t ed_vi_nth_line(ed *e, uint64_t number)
{
    whit_text *text = ed_text(e);
    whit_buffer *buffer = e->window->doc->buffer;
    uint64_t start;
    if (!number) number = 1;
    while ((start = whit_text_line_start(text, number - 1)) == UINT64_MAX && /* counted as far as is needed */
           whit_text_count(text, 16u << 20, whit_file_drop, &buffer->file)) {
    }
    uint64_t last = ed_vi_line_begin(e, ed_vi_end(e));
    return start < last ? start : last;
}

/* { and }: moves to an empty line that follows (with {, precedes) a line that is not empty. */
static bool paragraph(ed *e, uint64_t *to, uint32_t n, bool back, bool *at_end)
{
    uint64_t at = ed_vi_line_begin(e, *to);
    *at_end = false;
    while (n--) {
        bool inside = false;
        for (bool first = true;; first = false) {
            bool empty = ed_vi_is_empty_line(e, at);
            inside |= !empty;
            if (!first && inside && empty) break;
            uint64_t next = at;
            if (by_lines(e, &next, 1, back)) {
                at = next;
                continue;
            }
            if (n) return false;
            *at_end = !back;
            break;
        }
    }
    if (*at_end) { /* the last character */
        uint64_t end = ed_vi_end(e);
        *at_end = end > at;
        at = end > at ? ed_vi_before(e, end) : at;
    }
    *to = at;
    return true;
}

/* Does a sentence end before an offset: a stop, closing signs, and then this blank or end of a line? */
static bool ends_sentence(ed *e, uint64_t at)
{
    int byte = 0;
    uint64_t begin = ed_vi_line_begin(e, at);
    while (at > begin && (byte = whit_layout_byte(ed_layout(e), at - 1)) > 0 && strchr(")]\"'", byte)) at--;
    return at > begin && (byte = whit_layout_byte(ed_layout(e), at - 1)) > 0 && strchr(".!?", byte);
}

static bool begins_sentence(ed *e, uint64_t at)
{
    if (!at) return true;
    if (ed_vi_is_empty_line(e, at))
        return !ed_vi_is_empty_line(e, ed_vi_before(e, at)); /* the first of several empty lines */
    if (!ed_vi_class(e, at, true)) return false;
    uint64_t before = ed_vi_before(e, at);
    if (ed_vi_class(e, before, true)) return false;
    for (;;) {
        if (ed_vi_is_empty_line(e, before) || ends_sentence(e, before)) return true;
        if (!before || ed_vi_class(e, before, true)) return false;
        before = ed_vi_before(e, before);
    }
}

uint64_t ed_vi_sentence(ed *e, uint64_t at, bool back)
{
    uint64_t end = ed_vi_end(e);
    if (back) {
        while (at) {
            at = ed_vi_before(e, at);
            if (begins_sentence(e, at)) break;
        }
        return at;
    }
    while (at < end) {
        at = ed_vi_behind(e, at);
        if (begins_sentence(e, at)) break;
    }
    return at;
}

/* ---- searching ----------------------------------------------------------------------------- */

ed_vi_found ed_vi_search(ed *e, bool back, uint64_t at, struct ed_vi_span *span)
{
    whit_range found;
    whit_text *text = ed_text(e);
    if (!e->search) {
        ed_vi_fail(e, "nothing was searched for yet");
        return ED_VI_FAILED;
    }
    bool ok = back ? ed_search_backward(e, text, at, &found)
                   : ed_search_forward(e, text, whit_layout_behind(ed_layout(e), at), ED_NONE, &found);
    if (!ok) {
        ok = back ? ed_search_backward(e, text, whit_text_size(text) + 1, &found)
                  : ed_search_forward(e, text, 0, ED_NONE, &found);
        if (ok) ed_say(e, back ? "went on from the end" : "went on from the beginning");
    }
    if (!ok) {
        ed_vi_fail(e, "'%s' was not found", e->pattern);
        return ED_VI_FAILED;
    }
    span->end = found.begin;
    return ED_VI_FOUND;
}

/* * and #: searches the word at the cursor, or the next one of the line, or else the signs there; after g also as a
 * part of other words. */
static ed_vi_found search_word(ed *e, bool back, bool parts, uint64_t at, struct ed_vi_span *span)
{
    char word[200], pattern[480], why[200];
    uint64_t end = ed_vi_line_end(e, at), begin = at, to;
    while (begin < end && ed_vi_class(e, begin, false) != 1) begin = ed_vi_behind(e, begin);
    bool signs = begin >= end;
    if (signs)
        for (begin = at; begin < end && !ed_vi_class(e, begin, true);) begin = ed_vi_behind(e, begin);
    if (begin >= end) {
        ed_vi_fail(e, "no word here");
        return ED_VI_FAILED;
    }
    uint64_t line = ed_vi_line_begin(e, at);
    while (begin > line && ed_vi_class(e, ed_vi_before(e, begin), signs) == 1) begin = ed_vi_before(e, begin);
    for (to = begin; to < end && ed_vi_class(e, to, signs) == 1;) to = ed_vi_behind(e, to);
    if (to - begin >= sizeof word) {
        ed_vi_fail(e, "the word is too long");
        return ED_VI_FAILED;
    }
    word[whit_text_read(ed_text(e), begin, word, (size_t)(to - begin))] = 0;
    snprintf(pattern, sizeof pattern, parts || signs ? "(*UCP)(?-i)\\Q%s\\E" : "(*UCP)(?-i)\\b\\Q%s\\E\\b", word);
    if (!ed_search_set(e, pattern, true, why, sizeof why)) {
        ed_vi_fail(e, "%s", why);
        return ED_VI_FAILED;
    }
    e->vi.search_back = back;
    span->end = begin;
    for (uint32_t n = ed_vi_count(e); n--;)
        if (ed_vi_search(e, back, span->end, span) != ED_VI_FOUND) return ED_VI_FAILED;
    return ED_VI_FOUND;
}

/* ---- marks --------------------------------------------------------------------------------- */

static ed_vi_found to_mark(ed *e, uint32_t code, bool line, struct ed_vi_span *span)
{
    const struct ed_vi *vi = &e->vi;
    const struct ed_doc *doc = e->window->doc;
    uint64_t to = ED_NONE;
    if (code >= 'a' && code <= 'z') to = doc->marks[code - 'a'];
    if (code == '\'' || code == '`') to = doc->mark_jump == ED_NONE ? 0 : doc->mark_jump;
    if (code == '.') to = doc->mark_change;
    if (code == '^') to = vi->last_insert;
    if (code == '<' && vi->last_mode) to = vi->last_begin < vi->last_end ? vi->last_begin : vi->last_end;
    if (code == '>' && vi->last_mode) to = vi->last_begin < vi->last_end ? vi->last_end : vi->last_begin;
    if (code == '[') to = doc->mark_begin;
    if (code == ']') to = doc->mark_end;
    if (to == ED_NONE) {
        ed_vi_fail(e, "that mark is not set");
        return ED_VI_FAILED;
    }
    if (to > ed_vi_end(e)) to = ed_vi_end(e);
    span->end = line ? ed_vi_first(e, to) : to;
    span->lines = line;
    span->jumps = true;
    return ED_VI_FOUND;
}

/* ---- all of them --------------------------------------------------------------------------- */

static ed_vi_found said(bool ok)
{
    return ok ? ED_VI_FOUND : ED_VI_FAILED;
}

/* Returns the number before the key, or before the operator (both: their product); 0 if there is no number. It may be
 * a line's, so it is not limited to ED_VI_COUNT_MAX as other counts are. */
static uint64_t given_count(const ed *e)
{
    uint64_t n = e->vi.count, before = e->vi.operator_count;
    return n && before ? n * before : n + before;
}

static ed_vi_found behind_g(ed *e, uint32_t code, uint64_t at, struct ed_vi_span *span)
{
    uint32_t n = ed_vi_count(e);
    switch (code) {
    case 'g':
        span->end = ed_vi_first(e, ed_vi_nth_line(e, given_count(e)));
        span->lines = span->jumps = true;
        return ED_VI_FOUND;
    case 'e':
    case 'E': span->inclusive = true; return said(word_ends_back(e, &span->end, n, code == 'E'));
    case '_': {
        if (n > 1 && !by_lines(e, &span->end, n - 1, false)) return ED_VI_FAILED;
        uint64_t line = ed_vi_line_begin(e, span->end), to = ed_vi_line_end(e, span->end);
        while (to > line && !ed_vi_class(e, ed_vi_before(e, to), true)) to = ed_vi_before(e, to);
        span->end = to > line ? ed_vi_before(e, to) : line;
        span->inclusive = true;
        return ED_VI_FOUND;
    }
    case 'j':
    case 'k':
    case WHIT_KEY_UP:
    case WHIT_KEY_DOWN: { /* by what is seen */
        whit_layout *layout = ed_layout(e);
        bool upward = code == 'k' || code == WHIT_KEY_UP;
        uint64_t row = whit_layout_row(layout, at);
        int column = whit_layout_column(layout, row, at);
        while (n--) {
            uint64_t next = upward ? whit_layout_previous_row(layout, row) : whit_layout_next_row(layout, row);
            if (next == UINT64_MAX || next > ed_vi_end(e)) break;
            row = next;
        }
        span->end = whit_layout_at_column(layout, row, column);
        return ED_VI_FOUND;
    }
    case '*':
    case '#': span->jumps = true; return search_word(e, code == '#', true, at, span);
    default: return ED_VI_OTHER;
    }
}

static ed_vi_found up_or_down(ed *e, bool upward, uint64_t at, struct ed_vi_span *span)
{
    int goal = ed_cursor(e)->goal >= 0 ? ed_cursor(e)->goal : ed_vi_column(e, at);
    if (!by_lines(e, &span->end, ed_vi_count(e), upward)) return ED_VI_FAILED;
    span->end = ed_vi_at_column(e, span->end, goal);
    span->lines = true;
    return ED_VI_FOUND;
}

/* H M L: by the window's rows. */
static uint64_t of_window(ed *e, uint32_t code)
{
    const struct ed_window *window = e->window;
    uint64_t row = window->top, next;
    int n_rows = window->n_rows > 1 ? window->n_rows - 2 : 0, wanted = (int)ed_vi_count(e) - 1, n = 0;
    for (uint64_t at = row; n < n_rows && (at = whit_layout_next_row(ed_layout(e), at)) != UINT64_MAX; n++)
        if (at > ed_vi_end(e)) break;
    wanted = code == 'H' ? wanted : code == 'M' ? n / 2 : n - wanted;
    wanted = wanted < 0 ? 0 : wanted > n ? n : wanted;
    for (; wanted-- && (next = whit_layout_next_row(ed_layout(e), row)) != UINT64_MAX;) row = next;
    return ed_vi_first(e, row);
}

static ed_vi_found of_lines(ed *e, uint32_t code, uint64_t at, struct ed_vi_span *span)
{
    uint32_t n = ed_vi_count(e);
    uint64_t begin = ed_vi_line_begin(e, at);
    bool at_end;
    switch (code) {
    case '0':
    case WHIT_KEY_HOME: span->end = begin; return ED_VI_FOUND;
    case '^': span->end = ed_vi_first(e, at); return ED_VI_FOUND;
    case '|': span->end = ed_vi_at_column(e, begin, (int)n - 1); return ED_VI_FOUND;
    case '$':
    case WHIT_KEY_END: {
        uint64_t line = at;
        if (n > 1 && !by_lines(e, &line, n - 1, false)) return ED_VI_FAILED;
        span->end = ed_vi_line_end(e, line);
        span->is_fixed = true;
        return ED_VI_FOUND;
    }
    case '_':
    case '+':
    case WHIT_KEY_ENTER:
    case '-':
        if (code == '_') n--;
        span->lines = true;
        if (n && !by_lines(e, &span->end, n, code == '-')) return ED_VI_FAILED;
        span->end = ed_vi_first(e, span->end);
        return ED_VI_FOUND;
    case 'G':
        span->end =
            ed_vi_first(e, given_count(e) ? ed_vi_nth_line(e, given_count(e)) : ed_vi_line_begin(e, ed_vi_end(e)));
        span->lines = span->jumps = true;
        return ED_VI_FOUND;
    case 'H':
    case 'M':
    case 'L':
        span->end = of_window(e, code);
        span->lines = span->jumps = true;
        return ED_VI_FOUND;
    case '{':
    case '}':
        span->jumps = true;
        at_end = false;
        if (!paragraph(e, &span->end, n, code == '{', &at_end)) return ED_VI_FAILED;
        span->inclusive = at_end;
        return ED_VI_FOUND;
    case '(':
    case ')':
        span->jumps = true;
        for (uint64_t from; n--;) {
            span->end = ed_vi_sentence(e, from = span->end, code == '(');
            if (from == span->end) return said(at != from);
        }
        return ED_VI_FOUND;
    default: return ED_VI_OTHER;
    }
}

static ed_vi_found of_words(ed *e, uint32_t code, uint64_t at, struct ed_vi_span *span)
{
    const struct ed_vi *vi = &e->vi;
    uint32_t n = ed_vi_count(e);
    bool big = code < 128 && isupper((int)code);
    switch (code) {
    case 'w':
    case 'W':
        if (vi->operator== 'c' && ed_vi_class(e, at, big)) { /* as vi has it */
            span->inclusive = true;
            return said(word_ends_forward(e, &span->end, n, big, true));
        }
        return said(words_forward(e, &span->end, n, big, vi->operator!= 0) || (vi->operator&& ed_vi_end(e)));
    case 'b':
    case 'B': return said(words_back(e, &span->end, n, big));
    case 'e':
    case 'E': span->inclusive = true; return said(word_ends_forward(e, &span->end, n, big, false));
    default: return ED_VI_OTHER;
    }
}

static ed_vi_found of_chars(ed *e, uint32_t code, uint64_t at, struct ed_vi_span *span)
{
    uint32_t n = ed_vi_count(e);
    uint64_t begin = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    bool back;
    switch (code) {
    case 'h':
    case WHIT_KEY_LEFT:
        if (at == begin && !e->vi.operator) return ED_VI_FAILED;
        while (n-- && span->end > begin) span->end = ed_vi_before(e, span->end);
        return ED_VI_FOUND;
    case 'l':
    case WHIT_KEY_RIGHT: {
        uint64_t last = e->vi.operator|| end == begin ? end : ed_vi_before(e, end);
        if (at >= last && !e->vi.operator&& !ed_vi_is_visual(e)) return ED_VI_FAILED;
        while (n-- && span->end < last) span->end = ed_vi_behind(e, span->end);
        return ED_VI_FOUND;
    }
    case ' ':
        span->is_fixed = true;
        while (n-- && span->end < ed_vi_end(e)) {
            span->end = ed_vi_behind(e, span->end);
            bool on_end = span->end == ed_vi_line_end(e, span->end) && !ed_vi_is_empty_line(e, span->end);
            if (on_end && (!e->vi.operator|| n) && span->end < ed_vi_end(e)) span->end = ed_vi_behind(e, span->end);
        }
        return said(span->end != at);
    case WHIT_KEY_BACKSPACE:
        span->is_fixed = true;
        while (n-- && span->end) {
            span->end = ed_vi_before(e, span->end);
            bool on_end = span->end == ed_vi_line_end(e, span->end) && !ed_vi_is_empty_line(e, span->end);
            if (on_end && (!e->vi.operator|| n)) span->end = ed_vi_before(e, span->end);
        }
        return said(span->end != at);
    case '%':
        span->jumps = true;
        if (given_count(e)) {
            uint64_t lines = whit_text_n_lines(ed_text(e));
            if (given_count(e) > 100 || lines == UINT64_MAX) return ED_VI_FAILED;
            span->lines = true;
            span->end = ed_vi_first(e, ed_vi_nth_line(e, (given_count(e) * lines + 99) / 100));
            return ED_VI_FOUND;
        }
        span->inclusive = true;
        return said(match_bracket(e, &span->end));
    case ';':
    case ',':
        if (!find_again(e, code == ',', &span->end, &back)) return ED_VI_FAILED;
        span->inclusive = !back;
        return ED_VI_FOUND;
    default: return ED_VI_OTHER;
    }
}

ed_vi_found ed_vi_motion(ed *e, uint32_t prefix, whit_key key, uint64_t at, struct ed_vi_span *span)
{
    struct ed_vi *vi = &e->vi;
    *span = (struct ed_vi_span){.begin = at, .end = at};
    if (key.mods == WHIT_MOD_CTRL && !prefix) {
        if (key.code == 'n' || key.code == 'j') return up_or_down(e, false, at, span);
        if (key.code == 'p') return up_or_down(e, true, at, span);
        if (key.code == 'h') return of_chars(e, 'h', at, span);
    }
    if (key.mods) return ED_VI_OTHER;
    uint32_t code = key.code;
    switch (prefix) {
    case 0: break;
    case 'f':
    case 't':
    case 'F':
    case 'T':
        vi->find = prefix;
        vi->find_char = code == WHIT_KEY_TAB ? '\t' : code;
        span->inclusive = prefix == 'f' || prefix == 't';
        return said(find_char(e, &span->end, prefix, vi->find_char, ed_vi_count(e), false));
    case '`':
    case '\'': return to_mark(e, code, prefix == '\'', span);
    case 'g': return behind_g(e, code, at, span);
    default: return ED_VI_OTHER;
    }
    switch (code) {
    case 'j':
    case 'k':
    case WHIT_KEY_UP:
    case WHIT_KEY_DOWN: return up_or_down(e, code == 'k' || code == WHIT_KEY_UP, at, span);
    case 'n':
    case 'N': {
        bool back = (code == 'N') != vi->search_back;
        span->jumps = true;
        for (uint32_t n = ed_vi_count(e); n--;)
            if (ed_vi_search(e, back, span->end, span) != ED_VI_FOUND) return ED_VI_FAILED;
        return ED_VI_FOUND;
    }
    case '*':
    case '#': span->jumps = true; return search_word(e, code == '#', false, at, span);
    default: break;
    }
    ed_vi_found found = of_chars(e, code, at, span);
    if (found == ED_VI_OTHER) found = of_words(e, code, at, span);
    if (found == ED_VI_OTHER) found = of_lines(e, code, at, span);
    return found;
}
