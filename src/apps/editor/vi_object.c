/* SPDX-License-Identifier: MIT
 * Finds vi's text objects: words, sentences, paragraphs, and the texts that quotes, brackets and tags enclose. */
#include "editor/state.h"
#include "editor/vi_table.h"

#include <ctype.h>

#define TAG_BYTES     (256u << 10) /* maximum number of bytes searched for a tag in each direction */
#define BRACKET_BYTES 1000000u
#define OBJECTS_MAX   10000u /* counts of text objects are limited to this value */

static int byte_at(ed *e, uint64_t at)
{
    return whit_layout_byte(ed_layout(e), at);
}

/* ---- words --------------------------------------------------------------------------------- */

/* Returns the end (exclusive) of the run of characters of the same class that contains an offset; a run does not extend
 * beyond its line. */
static uint64_t run_end(ed *e, uint64_t at, bool big)
{
    int class = ed_vi_class(e, at, big);
    uint64_t end = ed_vi_line_end(e, at);
    while (at < end && ed_vi_class(e, at, big) == class) at = ed_vi_behind(e, at);
    return at;
}

static uint64_t run_begin(ed *e, uint64_t at, bool big)
{
    int class = ed_vi_class(e, at, big);
    uint64_t begin = ed_vi_line_begin(e, at);
    for (uint64_t before; at > begin && ed_vi_class(e, before = ed_vi_before(e, at), big) == class;) at = before;
    return at;
}

/* At the end of a line, moves to the next line, where the next run begins. Returns false at the end of the text. */
static bool next_run(ed *e, uint64_t *at)
{
    if (*at < ed_vi_line_end(e, *at)) return true;
    if (*at >= ed_vi_end(e)) return false;
    *at = ed_vi_behind(e, *at);
    return true;
}

bool ed_vi_words(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span)
{
    bool big = how == 'W';
    uint32_t n = ed_vi_count(e);
    uint64_t at = span->end, begin;
    bool blanks_first = false;
    if (n > OBJECTS_MAX) n = OBJECTS_MAX;
    if (visual) { /* extend the selection at its end */
        begin = span->begin;
        if (at >= ed_vi_end(e)) return false;
        at = ed_vi_behind(e, at);
        if (!next_run(e, &at)) return false;
    } else {
        begin = at = run_begin(e, at, big);
        if (at == ed_vi_line_end(e, at) && !ed_vi_is_empty_line(e, at))
            begin = at = run_begin(e, ed_vi_before(e, at), big);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i && !next_run(e, &at)) return false;
        bool blank = !ed_vi_class(e, at, big);
        at = run_end(e, at, big);
        if (inner) continue;
        if (blank) { /* an object that begins with blanks consists of these blanks and the word after them */
            if (!i) blanks_first = true;
            if (at == ed_vi_line_end(e, at)) {
                if (!next_run(e, &at)) return false;
                at = ed_skip_blanks(e, at);
            }
            at = run_end(e, at, big);
        } else if (at < ed_vi_line_end(e, at) && !ed_vi_class(e, at, big)) {
            if (!blanks_first) at = run_end(e, at, big);
        } else if (i + 1 == n && !visual && !blanks_first) {
            /* no blanks follow the word: include the blanks before it, unless they are indentation */
            uint64_t line = ed_vi_line_begin(e, begin), before = begin;
            while (before > line && !ed_vi_class(e, ed_vi_before(e, before), big)) before = ed_vi_before(e, before);
            if (before > line) begin = before;
        }
    }
    *span = (struct ed_vi_span){.begin = begin, .end = at, .is_fixed = true};
    return true;
}

/* ---- sentences and paragraphs -------------------------------------------------------------- */

bool ed_vi_sentences(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span)
{
    (void)how;
    uint32_t n = ed_vi_count(e);
    uint64_t end = ed_vi_end(e), at = span->end, begin = at;
    if (n > OBJECTS_MAX) n = OBJECTS_MAX;
    if (visual) {
        begin = span->begin;
        at = ed_vi_behind(e, at);
        if (at >= end) return false;
    } else { /* on blanks between two sentences, the blanks are an object */
        uint64_t next = ed_vi_behind(e, at);
        begin = next < end ? ed_vi_sentence(e, next, true) : ed_vi_sentence(e, end, true);
        if (begin > at) begin = ed_vi_sentence(e, at, true);
        uint64_t behind = ed_vi_sentence(e, begin, false), last = behind;
        while (last > begin && !ed_vi_class(e, ed_vi_before(e, last), true)) last = ed_vi_before(e, last);
        if (at >= last && at < behind) begin = last;
        at = begin;
    }
    bool blank_first = !ed_vi_class(e, at, true);
    for (uint32_t i = 0; i < n && at < end; i++) {
        bool blank = !ed_vi_class(e, at, true);
        uint64_t behind = ed_vi_sentence(e, at, false), last = behind;
        if (blank) {
            at = behind;
            if (inner) continue;
            behind = last = ed_vi_sentence(e, at, false);
        }
        while (last > at && !ed_vi_class(e, ed_vi_before(e, last), true)) last = ed_vi_before(e, last);
        at = inner || blank_first ? last : behind;
        bool none = last == behind || last == ed_vi_line_end(e, last);
        if (!inner && !blank_first && none && i + 1 == n && !visual) {
            /* no blanks follow the sentence: include the blanks before it */
            at = last;
            uint64_t line = ed_vi_line_begin(e, begin);
            while (begin > line && !ed_vi_class(e, ed_vi_before(e, begin), true)) begin = ed_vi_before(e, begin);
        }
    }
    *span = (struct ed_vi_span){.begin = begin, .end = at};
    return at > begin;
}

static bool is_blank_line(ed *e, uint64_t line)
{
    return ed_skip_blanks(e, line) >= ed_vi_line_end(e, line);
}

/* Returns the last line of the run of blank lines, or of lines that are not blank, that contains `line`. */
static uint64_t last_line(ed *e, uint64_t line)
{
    bool blank = is_blank_line(e, line);
    for (uint64_t next; (next = ed_vi_next_line(e, line)) != ED_NONE && is_blank_line(e, next) == blank;) line = next;
    return line;
}

bool ed_vi_paragraphs(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span)
{
    (void)how;
    uint32_t n = ed_vi_count(e);
    uint64_t line = ed_vi_line_begin(e, span->end), begin = line, next;
    if (n > OBJECTS_MAX) n = OBJECTS_MAX;
    if (visual) {
        begin = ed_vi_line_begin(e, span->begin);
        if ((line = ed_vi_next_line(e, line)) == ED_NONE) return false;
    } else {
        bool blank = is_blank_line(e, begin);
        for (uint64_t before; begin && is_blank_line(e, before = ed_vi_line_begin(e, begin - 1)) == blank;)
            begin = before;
    }
    bool blank_first = is_blank_line(e, line);
    for (uint32_t i = 0; i < n; i++) {
        if (i) {
            if ((next = ed_vi_next_line(e, line)) == ED_NONE) return false;
            line = next;
        }
        line = last_line(e, line);
        if (inner) continue;
        if ((next = ed_vi_next_line(e, line)) != ED_NONE) {
            line = last_line(e, next);
        } else if (blank_first) {
            return false;
        } else if (i + 1 == n && !visual) {
            /* no blank lines follow the paragraph: include those before it */
            for (uint64_t before; begin && is_blank_line(e, before = ed_vi_line_begin(e, begin - 1));) begin = before;
        }
    }
    *span = (struct ed_vi_span){.begin = begin, .end = line, .lines = true};
    return true;
}

/* ---- quotes -------------------------------------------------------------------------------- */

bool ed_vi_quotes(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span)
{
    (void)visual;
    int quote = (int)how;
    uint64_t at = span->end, line = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at), begin = ED_NONE, close;
    /* Quotes are paired from the beginning of the line. The object is the first pair that ends at or after the
     * cursor. */
    for (uint64_t i = line; i < end; i++) {
        int byte = byte_at(e, i);
        if (byte == '\\' && begin != ED_NONE) {
            i++;
        } else if (byte == quote) {
            if (begin == ED_NONE) {
                begin = i;
                continue;
            }
            close = i;
            if (close >= at) {
                if (inner) {
                    *span = (struct ed_vi_span){.begin = begin + 1, .end = close, .is_fixed = true};
                    if (ed_vi_count(e) > 1)
                        *span = (struct ed_vi_span){.begin = begin, .end = close + 1, .is_fixed = true};
                    return true;
                }
                uint64_t behind = ed_skip_blanks(e, close + 1);
                if (behind > end) behind = end;
                if (behind == close + 1)
                    while (begin > line && isblank(byte_at(e, begin - 1))) begin--;
                *span = (struct ed_vi_span){.begin = begin, .end = behind, .is_fixed = true};
                return true;
            }
            begin = ED_NONE;
        }
    }
    return false;
}

/* ---- brackets ------------------------------------------------------------------------------ */

/* Returns the opening bracket around an offset, or ED_NONE. With `here` an opening bracket at the offset itself
 * counts. */
static uint64_t opening(ed *e, uint64_t at, int open, int close, bool here)
{
    long depth = 1;
    if (here && byte_at(e, at) == open) return at;
    for (uint64_t n = 0; at && n < BRACKET_BYTES; n++) {
        whit_span before = whit_text_before(ed_text(e), at);
        for (uint64_t i = before.size_bytes; i-- > 0 && n < BRACKET_BYTES; n++) {
            at--;
            if (before.data[i] == close) depth++;
            if (before.data[i] == open && !--depth) return at;
        }
    }
    return ED_NONE;
}

static uint64_t closing(ed *e, uint64_t at, int open, int close)
{
    long depth = 0;
    for (uint64_t n = 0; n < BRACKET_BYTES; n++, at++) {
        int byte = byte_at(e, at);
        if (byte < 0) return ED_NONE;
        if (byte == open) depth++;
        if (byte == close && !--depth) return at;
    }
    return ED_NONE;
}

/* Returns the next opening bracket after an offset, for use if no bracket encloses the offset. */
static uint64_t next_opening(ed *e, uint64_t at, int open)
{
    for (uint64_t n = 0; n < BRACKET_BYTES; n++, at++) {
        int byte = byte_at(e, at);
        if (byte == open || byte < 0) return byte < 0 ? ED_NONE : at;
    }
    return ED_NONE;
}

/* Finds the object i( a( and the like: the text in brackets, with or without them. `how` is the opening bracket. */
bool ed_vi_brackets(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span)
{
    static const char pairs[] = "(){}[]<>";
    int open = (int)how, close = strchr(pairs, open)[1];
    uint64_t begin = span->begin, from = ED_NONE, to = ED_NONE, at = visual ? begin : span->end;
    bool here = !visual;
    uint32_t n = ed_vi_count(e);
    if (n > OBJECTS_MAX) n = OBJECTS_MAX;
    if (visual && byte_at(e, at) == open && span->end > begin) here = false;
    if (!visual && byte_at(e, at) == close) here = false;
    for (uint32_t i = 0; i < n; i++, here = false) {
        from = opening(e, at, open, close, here);
        if (from == ED_NONE && !i && !visual) from = next_opening(e, at, open);
        if (from == ED_NONE) return false;
        at = from;
    }
    to = closing(e, from, open, close);
    if (to == ED_NONE) return false;
    if (!inner) {
        *span = (struct ed_vi_span){.begin = from, .end = to + 1, .is_fixed = true};
        return true;
    }
    /* if the opening bracket ends a line and the closing one begins a line, the inner object is the lines between
     * them */
    uint64_t first = from + 1, line = ed_vi_line_begin(e, to), last = to;
    if (first == ed_vi_line_end(e, first) && first < to) first = ed_vi_behind(e, first);
    if (line > from && ed_skip_blanks(e, line) >= to) last = line;
    if (last < first) last = first;
    bool same = visual && first == span->begin && last && ed_vi_before(e, last) == span->end;
    *span = (struct ed_vi_span){.begin = first, .end = last};
    if (!same) return true;
    at = from; /* this object is selected already, so select the next outer one */
    if ((from = opening(e, at, open, close, false)) == ED_NONE || (to = closing(e, from, open, close)) == ED_NONE)
        return false;
    *span = (struct ed_vi_span){.begin = from + 1, .end = to};
    return true;
}

/* ---- tags ---------------------------------------------------------------------------------- */

static bool is_name(int byte)
{
    return byte > 32 && !strchr("<>/=\"'", byte);
}

/* Returns the length of the name in "<name" or "</name" at an offset, or 0. Sets *name to its offset and *closes for
 * "</". */
static uint64_t tag_name(ed *e, uint64_t at, bool *closes, uint64_t *name)
{
    if (byte_at(e, at) != '<') return 0;
    *closes = byte_at(e, at + 1) == '/';
    *name = at + 1 + *closes;
    uint64_t n = 0;
    while (n < 100 && is_name(byte_at(e, *name + n))) n++;
    return n;
}

/* Returns the offset after the '>' that ends the tag at `at`, or ED_NONE. *alone becomes true for a tag that closes
 * itself ("<br/>"). */
static uint64_t tag_end(ed *e, uint64_t at, uint64_t limit, bool *alone)
{
    int quote = 0, before = 0;
    for (; at < limit; at++) {
        int byte = byte_at(e, at);
        if (byte < 0) break;
        if (quote) {
            if (byte == quote) quote = 0;
        } else if (byte == '"' || byte == '\'') {
            quote = byte;
        } else if (byte == '>') {
            *alone = before == '/';
            return at + 1;
        }
        before = byte;
    }
    return ED_NONE;
}

static bool same_name(ed *e, uint64_t a, uint64_t b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (tolower(byte_at(e, a + i)) != tolower(byte_at(e, b + i))) return false;
    return true;
}

/* Finds, from `at` on, the closing tag of the element with the n bytes at `name` as its name. Returns the tag's
 * beginning, or ED_NONE; the last argument gets its end. */
static uint64_t closing_tag(ed *e, uint64_t name, uint64_t n, uint64_t at, uint64_t *behind)
{
    uint64_t limit = at + TAG_BYTES, other, n_other;
    long depth = 1;
    bool closes, alone = false;
    for (; at < limit; at++) {
        int byte = byte_at(e, at);
        if (byte < 0) break;
        if (byte != '<' || !(n_other = tag_name(e, at, &closes, &other))) continue;
        if (n_other != n || !same_name(e, name, other, n)) continue;
        uint64_t end = tag_end(e, at, limit, &alone);
        if (end == ED_NONE) return ED_NONE;
        if (closes ? !--depth : false) {
            *behind = end;
            return at;
        }
        if (!closes && !alone) depth++;
        at = end - 1;
    }
    return ED_NONE;
}

bool ed_vi_tags(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span)
{
    (void)how;
    uint64_t at = visual ? span->begin : span->end;
    uint64_t stop = at > TAG_BYTES ? at - TAG_BYTES : 0, cursor = span->end;
    uint32_t n = ed_vi_count(e), n_tried = 0;
    if (!visual) /* on the indentation before a tag, start at the tag */
        if (ed_skip_blanks(e, ed_vi_line_begin(e, at)) > at) at = cursor = ed_skip_blanks(e, at);
    for (uint64_t from = at + 1; from-- > stop && n_tried < 2000;) {
        bool closes, alone = false;
        uint64_t name, n_name = tag_name(e, from, &closes, &name), behind;
        if (!n_name || closes) continue;
        n_tried++;
        uint64_t end = tag_end(e, from, from + TAG_BYTES, &alone);
        if (end == ED_NONE || alone) continue;
        uint64_t close = closing_tag(e, name, n_name, end, &behind);
        if (close == ED_NONE || behind <= cursor) continue;
        struct ed_vi_span found = {.begin = inner ? end : from, .end = inner ? close : behind, .is_fixed = true};
        /* the object is within the selection, so try an outer one */
        if (visual && found.begin >= span->begin && found.end <= span->end + 1) continue;
        if (--n) continue;
        *span = found;
        return true;
    }
    return false;
}
