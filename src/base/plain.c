/* SPDX-License-Identifier: MIT */
#include "base/plain.h"

#include "base/items.h"
#include "base/lookalike.h"
#include "base/utf8.h"

#include <stdio.h>

#include <utf8proc.h>

#define MARK_BYTES 16 /* size of "<U+10FFFF>" with its terminator */
/* maximum of combining characters over one character: tmux drops those beyond 21 bytes in total */
#define OVER_MAX    4
#define TAB_COLUMNS 8
#define LATIN_LAST  0x24F /* last character of Latin Extended-B */
#define COLUMNS_MIN 8     /* columns of a row at least: nobody can read a narrower terminal */
/* maximum width of a run of blanks within a line, in columns, that is shown as it is */
#define BLANKS_MAX 64

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
}

static bool is_of_category(uint32_t code, utf8proc_category_t category)
{
    return code >= 0x80 && code <= 0x10FFFF && utf8proc_category((utf8proc_int32_t)code) == category;
}

bool whit_plain_is_hidden(uint32_t code)
{
    /* Lists the hidden characters: Default_Ignorable_Code_Point of Unicode 15, line and paragraph separators, the
     * embeddings and overrides of UAX #9, annotations, format characters of music, shorthand and hieroglyphs, the empty
     * Braille cell, the null notehead, the filler of Khitan. */
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0xAD, 0xAD},       {0x34F, 0x34F},     {0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},
        {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0x2800, 0x2800},
        {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
        {0x13430, 0x1343F}, {0x16FE4, 0x16FE4}, {0x1BCA0, 0x1BCA3}, {0x1D159, 0x1D159}, {0x1D173, 0x1D17A},
        {0xE0000, 0xE0FFF},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && code >= ranges[i].first; i++)
        if (code <= ranges[i].last) return true;
    /* Terminals have no width for unassigned code points and noncharacters such as U+FFFF, and do not draw them. */
    return is_of_category(code, UTF8PROC_CATEGORY_CN);
}

/* Returns whether the character is a joiner or a variation selector, which some scripts and emoji need. */
static bool is_joiner(uint32_t code)
{
    return code == 0x200C || code == 0x200D || (code >= 0xFE00 && code <= 0xFE0F);
}

bool whit_plain_is_other_blank(uint32_t code)
{
    return is_of_category(code, UTF8PROC_CATEGORY_CO) || code == 0xA0 || code == 0x1680 ||
        (code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Returns whether the character is drawn over the one before it: a combining mark, a vowel or final consonant of
 * Hangul. */
static bool is_drawn_over(uint32_t code)
{
    return is_of_category(code, UTF8PROC_CATEGORY_MN) || is_of_category(code, UTF8PROC_CATEGORY_ME) ||
        (code >= 0x1160 && code <= 0x11FF) || (code >= 0xD7B0 && code <= 0xD7FB);
}

/* Returns whether the character is hidden, and updates *n_joiners, the number of joiners that may still follow without
 * being hidden. Two joiners may follow a visible character outside ASCII, as in an emoji with a variation selector that
 * is joined to the next emoji. A longer sequence of joiners could encode a text that readers do not see. */
static bool hides(uint32_t code, uint8_t *n_joiners)
{
    bool hidden = whit_plain_is_hidden(code);
    if (hidden && is_joiner(code) && *n_joiners) {
        --*n_joiners;
        return false;
    }
    *n_joiners = code >= 0x80 && code != WHIT_UTF8_INVALID && !hidden ? 2 : 0;
    return hidden;
}

/* Returns whether a combining mark belongs over letters of any alphabet: blocks of Unicode for diacritics, for phonetic
 * ones and for symbols. */
static bool is_common_mark(uint32_t code)
{
    return (code >= 0x300 && code <= 0x36F) || (code >= 0x1AB0 && code <= 0x1AFF) ||
        (code >= 0x1DC0 && code <= 0x1DFF) || (code >= 0x20D0 && code <= 0x20FF) || (code >= 0xFE20 && code <= 0xFE2F);
}

/* Returns whether a character that is drawn over the one before it, `base`, may leave the look of ASCII: a low line
 * under "_" is not seen, "-" with a vertical line is "+", "i" has its dot already, and marks that join letters of
 * another alphabet are not drawn over a Latin one. base: 0 at the beginning of a text. */
static bool is_disguise(uint32_t base, uint32_t code)
{
    if (!is_drawn_over(code) || is_joiner(code) || base > LATIN_LAST) return false;
    const bool is_letter = base >= 0xC0 || ((base | 0x20) >= 'a' && (base | 0x20) <= 'z');
    return !is_letter || !is_common_mark(code) || (code == 0x307 && (base == 'i' || base == 'j'));
}

bool whit_plain_has_hidden(const char *text, size_t n)
{
    uint8_t n_joiners = 0;
    uint32_t base = 0;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        if (hides(code, &n_joiners) || is_disguise(base, code)) return true;
        if (!is_drawn_over(code)) base = code;
    }
    return false;
}

/* Returns whether the n bytes, of which whit_utf8_decode accepted `length` before it failed, are an incomplete
 * character. */
static bool is_unfinished(const uint8_t *text, size_t n, size_t length)
{
    uint8_t first = text[0];
    size_t wanted = 4;
    if (first < 0xC2 || first > 0xF4)
        wanted = 1;
    else if (first < 0xE0)
        wanted = 2;
    else if (first < 0xF0)
        wanted = 3;
    return length == n && n < wanted;
}

size_t whit_plain_text(whit_plain *state, const char *text, size_t n, char *out)
{
    size_t n_out = 0, i = 0;
    while (i < n || state->n_held) {
        /* The character begins with the bytes that are held from the previous piece, if any. */
        uint8_t bytes[4];
        size_t n_held = state->n_held, n_bytes = n_held, length;
        memcpy(bytes, state->held, n_held);
        while (n_bytes < 4 && i + n_bytes - n_held < n) {
            bytes[n_bytes] = (uint8_t)text[i + n_bytes - n_held];
            n_bytes++;
        }
        uint32_t code = whit_utf8_decode(bytes, n_bytes, &length);
        if (code == WHIT_UTF8_INVALID && is_unfinished(bytes, n_bytes, length)) {
            memcpy(state->held, bytes, n_bytes);
            state->n_held = (uint8_t)n_bytes;
            return n_out;
        }
        /* length >= n_held also for invalid UTF-8, because the held bytes are a valid beginning of a character. */
        state->n_held = 0;
        i += length - n_held;
        bool hidden = hides(code, &state->n_joiners);
        if (code == WHIT_UTF8_INVALID || is_control(code) || (hidden && state->is_narrow)) {
            out[n_out++] = '?';
        } else if (hidden) {
            n_out += (size_t)snprintf(out + n_out, MARK_BYTES, "<U+%04X>", (unsigned)code);
        } else {
            memcpy(out + n_out, bytes, length);
            n_out += length;
        }
    }
    return n_out;
}

size_t whit_plain_end(whit_plain *state, char *out)
{
    bool unfinished = state->n_held > 0;
    state->n_held = 0;
    if (unfinished) out[0] = '?';
    return unfinished;
}

size_t whit_plain_line(char *line, size_t n)
{
    /* Each replacement is at most as long as the replaced bytes, so the write position never passes the read
     * position. */
    whit_plain state = {.is_narrow = true};
    char piece[WHIT_PLAIN_ROOM(64)];
    size_t n_out = 0;
    for (size_t i = 0; i < n; i += 64) {
        size_t n_piece = whit_plain_text(&state, line + i, n - i < 64 ? n - i : 64, piece);
        memcpy(line + n_out, piece, n_piece);
        n_out += n_piece;
    }
    n_out += whit_plain_end(&state, line + n_out);
    for (size_t i = 0; i < n_out; i++)
        if (line[i] == '\n' || line[i] == '\t') line[i] = '?';
    return n_out;
}

/* Returns the end of the run of blanks that begins at `begin`. Sets *is_seen to whether a reader sees how long the run
 * is: it does not end its line, and is not wider than BLANKS_MAX columns, after which a text could be out of sight. */
static size_t end_of_blanks(const char *text, size_t n, size_t begin, whit_plain_kept kept, bool *is_seen)
{
    size_t end = begin, n_columns = 0;
    for (; end < n && (text[end] == ' ' || text[end] == '\t'); end++) n_columns += text[end] == '\t' ? TAB_COLUMNS : 1;
    const bool has_cr_lf = kept == WHIT_PLAIN_ENDS && end + 1 < n && text[end] == '\r' && text[end + 1] == '\n';
    *is_seen = end < n && text[end] != '\n' && !has_cr_lf && n_columns <= BLANKS_MAX;
    return end;
}

bool whit_plain_show(const char *text, size_t n, whit_plain_kept kept, whit_buf *out)
{
    size_t shown = 0, n_over = 0; /* bytes of `text` that are already in `out`; number of consecutive characters
                                   * drawn over one before them */
    size_t blanks = 0;            /* end of the last run of blanks */
    uint32_t base = 0;            /* character over which the next one may be drawn */
    bool is_seen = true;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        bool is_end = code == '\r' && kept == WHIT_PLAIN_ENDS && i + 1 < n && text[i + 1] == '\n';
        bool is_mark =
            code == '<' && i + 2 < n && (memcmp(text + i + 1, "U+", 2) == 0 || memcmp(text + i + 1, "0x", 2) == 0);
        bool is_edge = code == ' ' && (!i || i + 1 == n);
        bool is_line = (code == '\n' || code == '\t' || is_edge) && kept == WHIT_PLAIN_NAME;
        const bool is_blank = code == ' ' || code == '\t';
        const bool is_sign = kept == WHIT_PLAIN_SIGNED && (!i || text[i - 1] == '\n');
        if (is_blank && !is_sign && i >= blanks) blanks = end_of_blanks(text, n, i, kept, &is_seen);
        n_over = is_drawn_over(code) ? n_over + 1 : 0;
        bool marked = code == WHIT_UTF8_INVALID || is_mark || is_line || (is_control(code) && !is_end) ||
            whit_plain_is_hidden(code) || whit_plain_is_other_blank(code) || n_over > OVER_MAX ||
            is_disguise(base, code) ||
            (code >= 0x80 && code != WHIT_UTF8_INVALID && whit_lookalike_at(text, n, i, code)) ||
            (is_blank && !is_sign && !is_seen);
        if (!is_drawn_over(code)) base = marked ? 0 : code;
        if (!marked) continue;
        whit_buf_append(out, text + shown, i - shown);
        for (size_t k = 0; code == WHIT_UTF8_INVALID && k < length; k++)
            whit_buf_printf(out, "<0x%02X>", (unsigned)(uint8_t)text[i + k]);
        if (code != WHIT_UTF8_INVALID) whit_buf_printf(out, "<U+%04X>", (unsigned)code);
        shown = i + length;
    }
    if (n > shown) whit_buf_append(out, text + shown, n - shown);
    return !out->failed;
}

static bool expand_tabs(const char *text, size_t n, whit_buf *out)
{
    static const char blanks[TAB_COLUMNS + 1] = "        ";
    size_t shown = 0, column = 0;
    for (size_t i = 0, length; i < n; i += length) {
        const uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        if (code == '\t') {
            const size_t n_blanks = TAB_COLUMNS - column % TAB_COLUMNS;
            whit_buf_append(out, text + shown, i - shown);
            whit_buf_append(out, blanks, n_blanks);
            shown = i + length;
            column += n_blanks;
        } else if (code == '\n') {
            column = 0;
        } else {
            const int width = code == WHIT_UTF8_INVALID ? 1 : utf8proc_charwidth((utf8proc_int32_t)code);
            column += width > 0 ? (size_t)width : 0;
        }
    }
    if (n > shown) whit_buf_append(out, text + shown, n - shown);
    return !out->failed;
}

unsigned whit_plain_columns(uint32_t code)
{
    /* Lists characters that are wide in terminals, but not in Unicode 15: numbers on black squares, which fonts of East
     * Asia draw so, and trigrams, digrams, hexagrams, tetragrams and counting rods, which are wide in Unicode 16. */
    static const struct {
        uint32_t first, last;
    } wide[] = {{0x2630, 0x2637}, {0x268A, 0x268F}, {0x3248, 0x324F}, {0x4DC0, 0x4DFF}, {0x1D300, 0x1D376}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide && code >= wide[i].first; i++)
        if (code <= wide[i].last) return 2;
    const int drawn = code == WHIT_UTF8_INVALID ? 1 : utf8proc_charwidth((utf8proc_int32_t)code);
    return drawn > 1 ? (unsigned)drawn : 1;
}

/* Breaks lines into rows. */
static bool break_rows(const char *text, size_t n, size_t n_columns, whit_buf *out)
{
    size_t shown = 0, column = 0;
    if (n_columns < COLUMNS_MIN) n_columns = COLUMNS_MIN;
    for (size_t i = 0, length; i < n; i += length) {
        const uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        const size_t width = whit_plain_columns(code);
        if (code == '\n') {
            column = 0;
            continue;
        }
        if (column + width > n_columns && !is_drawn_over(code)) {
            whit_buf_append(out, text + shown, i - shown);
            whit_buf_append_str(out, "\n" WHIT_PLAIN_ROW);
            shown = i;
            column = sizeof WHIT_PLAIN_ROW - 1;
        }
        column += width;
    }
    if (n > shown) whit_buf_append(out, text + shown, n - shown);
    return !out->failed;
}

/* Kinds of runs that UAX #9 orders from right to left, or before which it does so with the characters around them. */
enum run_kind { RUN_NONE, RUN_LETTERS, RUN_DIGITS };

/* Returns the run to which the character at the beginning of a text belongs, after one that belongs to `before`. */
static enum run_kind run_of(uint32_t code, enum run_kind before, const uint8_t *after, size_t n_after)
{
    size_t length;
    if (code == WHIT_UTF8_INVALID || code < 0x20) return RUN_NONE;
    if (code == ' ' && before == RUN_LETTERS && n_after) /* a blank between two words */
        return run_of(whit_utf8_decode(after, n_after, &length), RUN_NONE, NULL, 0) == RUN_LETTERS ? before : RUN_NONE;
    switch (utf8proc_get_property((utf8proc_int32_t)code)->bidi_class) {
    case UTF8PROC_BIDI_CLASS_R:
    case UTF8PROC_BIDI_CLASS_AL: return RUN_LETTERS;
    case UTF8PROC_BIDI_CLASS_AN: return RUN_DIGITS;
    case UTF8PROC_BIDI_CLASS_NSM: return before;
    default: return RUN_NONE;
    }
}

bool whit_plain_keep_order(const char *text, size_t n, whit_buf *out)
{
    enum run_kind run = RUN_NONE;
    size_t shown = 0;
    bool has_mark = false; /* the line has a mark already: its direction is from left to right */
    for (size_t i = 0, length; i < n; i += length) {
        const uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        const enum run_kind next = run_of(code, run, (const uint8_t *)text + i + length, n - i - length);
        if (next != run && (run || !has_mark)) {
            whit_buf_append(out, text + shown, i - shown);
            whit_buf_append_str(out, WHIT_PLAIN_ORDER);
            shown = i;
            has_mark = true;
        }
        run = next;
        if (code == '\n') has_mark = false;
    }
    if (n > shown) whit_buf_append(out, text + shown, n - shown);
    if (run) whit_buf_append_str(out, WHIT_PLAIN_ORDER);
    return !out->failed;
}

bool whit_plain_for_terminal(const char *text, size_t n, unsigned n_columns, whit_buf *out)
{
    whit_buf expanded = {0}, broken = {0};
    bool ok = expand_tabs(text, n, &expanded);
    if (ok && n_columns) ok = break_rows(whit_chars(&expanded), expanded.size_bytes, n_columns, &broken);
    const whit_buf *rows = n_columns ? &broken : &expanded;
    ok = ok && whit_plain_keep_order(whit_chars(rows), rows->size_bytes, out);
    whit_buf_free(&expanded);
    whit_buf_free(&broken);
    return ok;
}
