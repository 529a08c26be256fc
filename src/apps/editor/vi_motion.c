/* SPDX-License-Identifier: MIT
 * Finds the targets of vi's motions. Positions are characters and the ends of lines; the empty line that the editor
 * shows after a last line feed does not exist for vi. */
#include "editor/state.h"
#include "editor/vi_table.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define BRACKET_BYTES 1000000u /* maximum number of bytes searched for a bracket, which bounds the delay of the key */

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
    if (byte < 0 || isspace(byte)) return 0;
    return big || ed_is_word(byte) ? 1 : 2;
}

uint64_t ed_vi_first(ed *e, uint64_t at)
{
    uint64_t begin = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    uint64_t first = ed_skip_blanks(e, begin);
    if (first < end) return first;
    return end > begin ? ed_vi_before(e, end) : begin;
}

/* Returns the offset of a column in the line that begins at `line`. Columns are counted in the whole line, not in
 * wrapped rows. */
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

/* Keys w and W: moves n words forwards. `stays` (an operator is pending): the last word does not extend beyond its
 * line. */
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

/* Keys e and E: moves to the end of the n-th word. `stays` (for cw): the end of the current word counts, too. */
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

/* Keys ge and gE: moves back to the end of the n-th previous word. */
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

/* ---- characters in a line ------------------------------------------------------------------ */

static bool has_code(ed *e, uint64_t at, uint32_t code)
{
    uint8_t wanted[4], text[4];
    size_t n = whit_utf8_encode(code, wanted);
    return whit_text_read(ed_text(e), at, text, n) == n && !memcmp(text, wanted, n);
}

/* Keys f, t, F and T: finds the n-th `code` in the line. `again` (keys ; and ,): t and T first skip the character next
 * to the cursor. */
static bool find_char(ed *e, uint64_t *to, uint32_t how, uint32_t code, uint32_t n, bool again)
{
    bool back = how == 'F' || how == 'T', before = how == 't' || how == 'T';
    uint64_t begin = ed_vi_line_begin(e, *to), end = ed_vi_line_end(e, *to), at = *to;
    if (!code || code >= WHIT_KEY_NONE) return false;
    if (again && before && n == 1) { /* without this, t would find the same character again */
        uint64_t next;
        if (back)
            next = at > begin ? ed_vi_before(e, at) : at;
        else
            next = ed_vi_behind(e, at);
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

/* Moves *line by up to n lines, up or down. Returns false if there is no line in that direction. */
static bool by_lines(ed *e, uint64_t *line, uint32_t n, bool upward)
{
    uint64_t at = ed_vi_line_begin(e, *line), from = at;
    while (n--) {
        uint64_t next;
        if (upward)
            next = at ? ed_vi_line_begin(e, at - 1) : ED_NONE;
        else
            next = ed_vi_next_line(e, at);
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
    /* count lines up to the requested one */
    while ((start = whit_text_line_start(text, number - 1)) == UINT64_MAX &&
           whit_text_count(text, 16u << 20, whit_file_drop, &buffer->file)) {
    }
    uint64_t last = ed_vi_line_begin(e, ed_vi_end(e));
    return start < last ? start : last;
}

/* Keys { and }: moves past n paragraphs, to the empty line before or after each. *at_end: the target of } is the last
 * character of the text. */
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
    if (*at_end) { /* the target is the last character of the text */
        uint64_t end = ed_vi_end(e);
        *at_end = end > at;
        at = end > at ? ed_vi_before(e, end) : at;
    }
    *to = at;
    return true;
}

/* Returns whether the offset is just after the end of a sentence: one of . ! ? and maybe closing signs. */
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
        return !ed_vi_is_empty_line(e, ed_vi_before(e, at)); /* the first of several empty lines begins a sentence */
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

bool ed_vi_search(ed *e, bool back, uint64_t at, struct ed_vi_span *span)
{
    whit_range found;
    whit_text *text = ed_text(e);
    if (!e->find.search) {
        ed_vi_fail(e, "nothing was searched for yet: / searches");
        return false;
    }
    bool ok = back ? ed_search_backward(e, text, at, &found)
                   : ed_search_forward(e, text, whit_layout_behind(ed_layout(e), at), ED_NONE, &found);
    if (!ok) {
        ok = back ? ed_search_backward(e, text, whit_text_size(text) + 1, &found)
                  : ed_search_forward(e, text, 0, ED_NONE, &found);
        if (ok) ed_say(e, back ? "continued from the end" : "continued from the beginning");
    }
    if (ok)
        span->end = found.begin;
    else
        ed_vi_fail(e, "'%s' was not found", e->find.pattern);
    return ok;
}

static bool search_times(ed *e, bool back, struct ed_vi_span *span)
{
    for (uint32_t n = ed_vi_count(e); n--;)
        if (!ed_vi_search(e, back, span->end, span)) return false;
    return true;
}

/* Keys n and N: search for the last pattern again. */
bool ed_vi_search_again(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    return search_times(e, (call.how == 'N') != e->vi.search_back, span);
}

/* Keys * and #: search for the word at the cursor or, if none is there, for the next word in the line. If no word
 * follows, they search for the whole run of non-blank characters at or after the cursor, including words that it
 * contains ("f()" if the cursor is at the last bracket). With g* and g# the word may be a part of another. */
bool ed_vi_search_word(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    char word[200], pattern[480], why[200];
    bool parts = call.how & ED_VI_G;
    uint64_t at = span->end, end = ed_vi_line_end(e, at), begin = at, to;
    while (begin < end && ed_vi_class(e, begin, false) != 1) begin = ed_vi_behind(e, begin);
    bool signs = begin >= end;
    if (signs)
        for (begin = at; begin < end && !ed_vi_class(e, begin, true);) begin = ed_vi_behind(e, begin);
    if (begin >= end) {
        ed_vi_fail(e, "there is no word at the cursor");
        return false;
    }
    uint64_t line = ed_vi_line_begin(e, at);
    while (begin > line && ed_vi_class(e, ed_vi_before(e, begin), signs) == 1) begin = ed_vi_before(e, begin);
    for (to = begin; to < end && ed_vi_class(e, to, signs) == 1;) to = ed_vi_behind(e, to);
    if (to - begin >= sizeof word) {
        ed_vi_fail(e, "the word is longer than 199 bytes, the limit");
        return false;
    }
    word[whit_text_read(ed_text(e), begin, word, (size_t)(to - begin))] = 0;
    snprintf(pattern, sizeof pattern, parts || signs ? "(*UCP)(?-i)\\Q%s\\E" : "(*UCP)(?-i)\\b\\Q%s\\E\\b", word);
    if (!ed_search_set(e, pattern, true, why, sizeof why)) {
        ed_vi_fail(e, "%s", why);
        return false;
    }
    e->vi.search_back = (call.how & 127) == '#';
    span->end = begin;
    return search_times(e, e->vi.search_back, span);
}

/* ---- moving to marks ----------------------------------------------------------------------- */

bool ed_vi_to_mark(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    const struct ed_vi *vi = &e->vi;
    const struct ed_doc *doc = e->window->doc;
    uint64_t to = ED_NONE;
    if (call.given >= 'a' && call.given <= 'z') to = doc->marks[call.given - 'a'];
    if (call.given == '\'' || call.given == '`') to = doc->mark_jump == ED_NONE ? 0 : doc->mark_jump;
    if (call.given == '.') to = doc->mark_change;
    if (call.given == '^') to = vi->last_insert;
    if (call.given == '<' && vi->last_mode) to = vi->last_begin < vi->last_end ? vi->last_begin : vi->last_end;
    if (call.given == '>' && vi->last_mode) to = vi->last_begin < vi->last_end ? vi->last_end : vi->last_begin;
    if (call.given == '[') to = doc->mark_begin;
    if (call.given == ']') to = doc->mark_end;
    if (to == ED_NONE) {
        ed_vi_fail(e, "that mark is not set");
        return false;
    }
    if (to > ed_vi_end(e)) to = ed_vi_end(e);
    span->end = call.how == '\'' ? ed_vi_first(e, to) : to;
    return true;
}

/* ---- functions of the table's rows --------------------------------------------------------- */

/* Returns the product of the counts before the operator and before the motion, or 0 if neither was typed. It may be a
 * line number, so it is not limited to ED_VI_COUNT_MAX. */
static uint64_t given_count(const ed *e)
{
    uint64_t n = e->vi.count, before = e->vi.operator_count;
    return n && before ? n * before : n + before;
}

bool ed_vi_to_left(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    (void)call;
    uint64_t begin = ed_vi_line_begin(e, span->end);
    if (span->end == begin && !e->vi.operator) return false;
    for (uint32_t n = ed_vi_count(e); n-- && span->end > begin;) span->end = ed_vi_before(e, span->end);
    return true;
}

bool ed_vi_to_right(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    (void)call;
    uint64_t begin = ed_vi_line_begin(e, span->end), end = ed_vi_line_end(e, span->end);
    uint64_t last = e->vi.operator|| end == begin ? end : ed_vi_before(e, end);
    if (span->end >= last && !e->vi.operator&& !ed_vi_is_visual(e)) return false;
    for (uint32_t n = ed_vi_count(e); n-- && span->end < last;) span->end = ed_vi_behind(e, span->end);
    return true;
}

/* Keys Space and Backspace: move by characters, also across line ends. */
bool ed_vi_by_chars(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    bool back = call.how == WHIT_KEY_BACKSPACE;
    uint64_t at = span->end, last = ed_vi_end(e);
    for (uint32_t n = ed_vi_count(e); n-- && (back ? span->end > 0 : span->end < last);) {
        span->end = back ? ed_vi_before(e, span->end) : ed_vi_behind(e, span->end);
        bool on_end = span->end == ed_vi_line_end(e, span->end) && !ed_vi_is_empty_line(e, span->end);
        if (!on_end || (e->vi.operator&& !n)) continue;
        if (back)
            span->end = ed_vi_before(e, span->end);
        else if (span->end < last)
            span->end = ed_vi_behind(e, span->end);
    }
    return span->end != at;
}

bool ed_vi_by_lines(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    int goal = ed_cursor(e)->goal >= 0 ? ed_cursor(e)->goal : ed_vi_column(e, span->end);
    if (!by_lines(e, &span->end, ed_vi_count(e), call.how == 'k')) return false;
    span->end = ed_vi_at_column(e, span->end, goal);
    return true;
}

/* Keys gj and gk: move by rows of wrapped lines. */
bool ed_vi_by_rows(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    whit_layout *layout = ed_layout(e);
    uint64_t row = whit_layout_row(layout, span->end);
    int column = whit_layout_column(layout, row, span->end);
    for (uint32_t n = ed_vi_count(e); n--;) {
        uint64_t next = call.how == 'k' ? whit_layout_previous_row(layout, row) : whit_layout_next_row(layout, row);
        if (next == UINT64_MAX || next > ed_vi_end(e)) break;
        row = next;
    }
    span->end = whit_layout_at_column(layout, row, column);
    return true;
}

bool ed_vi_by_words(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    const struct ed_vi *vi = &e->vi;
    bool big = call.how == 'W';
    if (vi->operator== 'c' && ed_vi_class(e, span->end, big)) { /* on a word, cw acts like ce, as in vi */
        span->inclusive = true;
        return word_ends_forward(e, &span->end, ed_vi_count(e), big, true);
    }
    return words_forward(e, &span->end, ed_vi_count(e), big, vi->operator!= 0) || (vi->operator&& ed_vi_end(e));
}

bool ed_vi_back_by_words(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    return words_back(e, &span->end, ed_vi_count(e), call.how == 'B');
}

bool ed_vi_to_word_end(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    return word_ends_forward(e, &span->end, ed_vi_count(e), call.how == 'E', false);
}

bool ed_vi_back_to_word_end(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    return word_ends_back(e, &span->end, ed_vi_count(e), call.how == 'E');
}

bool ed_vi_to_line_begin(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    span->end = call.how == '^' ? ed_vi_first(e, span->end) : ed_vi_line_begin(e, span->end);
    return true;
}

bool ed_vi_to_column(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    (void)call;
    span->end = ed_vi_at_column(e, ed_vi_line_begin(e, span->end), (int)ed_vi_count(e) - 1);
    return true;
}

/* Keys $ and g_: move to the end of a line, or to its last character that is not blank. */
bool ed_vi_to_line_end(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    uint32_t n = ed_vi_count(e);
    if (n > 1 && !by_lines(e, &span->end, n - 1, false)) return false;
    uint64_t line = ed_vi_line_begin(e, span->end), to = ed_vi_line_end(e, span->end);
    if (call.how == '_') {
        while (to > line && !ed_vi_class(e, ed_vi_before(e, to), true)) to = ed_vi_before(e, to);
        to = to > line ? ed_vi_before(e, to) : line;
    }
    span->end = to;
    return true;
}

/* Keys _, + and -: move to the first character of a line that is not blank. */
bool ed_vi_to_first_sign(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    uint32_t n = ed_vi_count(e) - (call.how == '_');
    if (n && !by_lines(e, &span->end, n, call.how == '-')) return false;
    span->end = ed_vi_first(e, span->end);
    return true;
}

/* Keys G and gg: move to the line whose number is the count; without a count, to the last or the first line. */
bool ed_vi_to_line(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    uint64_t n = given_count(e);
    span->end = ed_vi_first(e, n || call.how == 'g' ? ed_vi_nth_line(e, n) : ed_vi_line_begin(e, ed_vi_end(e)));
    return true;
}

/* Keys H, M and L: move to a row of the window. */
bool ed_vi_to_window_row(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    const struct ed_window *window = e->window;
    uint64_t row = window->top, next;
    int n_rows = window->n_rows > 1 ? window->n_rows - 2 : 0, wanted = (int)ed_vi_count(e) - 1, n = 0;
    for (uint64_t at = row; n < n_rows && (at = whit_layout_next_row(ed_layout(e), at)) != UINT64_MAX; n++)
        if (at > ed_vi_end(e)) break;
    if (call.how == 'M') wanted = n / 2;
    if (call.how == 'L') wanted = n - wanted;
    if (wanted > n) wanted = n;
    for (; wanted-- > 0 && (next = whit_layout_next_row(ed_layout(e), row)) != UINT64_MAX;) row = next;
    span->end = ed_vi_first(e, row);
    return true;
}

bool ed_vi_by_paragraphs(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    return paragraph(e, &span->end, ed_vi_count(e), call.how == '{', &span->inclusive);
}

bool ed_vi_by_sentences(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    uint64_t from, at = span->end;
    for (uint32_t n = ed_vi_count(e); n--;) {
        span->end = ed_vi_sentence(e, from = span->end, call.how == '(');
        if (from == span->end) return at != from;
    }
    return true;
}

/* Key %: moves to the matching bracket or, with a count, to that percentage of the text's lines. */
bool ed_vi_to_match(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    (void)call;
    uint64_t n = given_count(e), n_lines = n ? whit_text_n_lines(ed_text(e)) : 0;
    span->inclusive = !n;
    if (!n) return match_bracket(e, &span->end);
    if (n > 100 || n_lines == UINT64_MAX) return false;
    span->lines = true;
    span->end = ed_vi_first(e, ed_vi_nth_line(e, (n * n_lines + 99) / 100));
    return true;
}

bool ed_vi_to_char(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    struct ed_vi *vi = &e->vi;
    vi->find = call.how;
    vi->find_char = call.given == WHIT_KEY_TAB ? '\t' : call.given;
    return find_char(e, &span->end, call.how, vi->find_char, ed_vi_count(e), false);
}

bool ed_vi_to_char_again(ed *e, struct ed_vi_call call, struct ed_vi_span *span)
{
    bool back;
    if (!find_again(e, call.how == ',', &span->end, &back)) return false;
    span->inclusive = !back;
    return true;
}
