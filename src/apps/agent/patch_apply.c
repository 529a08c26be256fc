/* SPDX-License-Identifier: MIT
 * Finds a hunk's old lines in a file, first exactly and then by ever looser comparisons, and replaces them by the
 * new lines. */
#include "agent/patch.h"

#include "base/hash.h"
#include "base/items.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>

#define NOWHERE        SIZE_MAX
#define MAX_FILE_LINES ((size_t)4 << 20)
/* maximum number of line comparisons for one patch, which bounds the running time */
#define MAX_COMPARISONS 200000000u

/* A line of the file and its line end. */
typedef struct span {
    const char *text;
    uint32_t n_bytes, n_end; /* n_end: length of the line end: 0 at the end of the file, 1 for LF, 2 for CR LF */
} span;

typedef struct job {
    const whit_patch *patch;
    const char *name;
    const char *content;
    size_t n_bytes;
    bool has_mark;  /* the file begins with a byte order mark, which is not part of `content` */
    whit_buf spans; /* span[]: lines of the text after the hunks applied so far */
    whit_buf added; /* bool[], one for each line: an earlier hunk added the line */
    uint64_t n_comparisons;
    whit_error *error;
} job;

const char *whit_patch_grade_name(whit_patch_grade grade)
{
    static const char *const names[] = {"exact", "trailing blanks", "indentation", "Unicode variants"};
    return grade < WHIT_PATCH_GRADES ? names[grade] : "?";
}

/* ---- splitting and comparing lines ---------------------------------------------------------- */

static whit_status split_lines(whit_buf *spans, const char *text, size_t n_bytes, whit_error *error)
{
    spans->size_bytes = 0;
    for (size_t at = 0; at < n_bytes;) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        size_t n = end ? (size_t)(end - text) - at : n_bytes - at;
        if (n > UINT32_MAX - 2 || spans->size_bytes / sizeof(span) >= MAX_FILE_LINES)
            return whit_fail(error, WHIT_ERROR_LIMIT,
                             "a file to be patched has more than %zu lines, or a line of 4 GiB: the limits",
                             MAX_FILE_LINES);
        span line = {text + at, (uint32_t)n, end != NULL};
        if (end && n && text[at + n - 1] == '\r') line.n_bytes--, line.n_end++;
        if (!whit_buf_append(spans, &line, sizeof line)) return whit_fail_memory(error, "the lines of a file", n_bytes);
        at += n + (end != NULL);
    }
    return WHIT_OK;
}

static const span *span_at(const job *j, size_t i)
{
    return WHIT_ITEMS(const span, &j->spans) + i;
}

static size_t n_spans(const job *j)
{
    return j->spans.size_bytes / sizeof(span);
}

static const whit_patch_line *line_at(const job *j, const whit_patch_hunk *hunk, size_t i)
{
    return WHIT_ITEMS(const whit_patch_line, &j->patch->lines) + hunk->first + i;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **text, size_t *n, bool both)
{
    while (*n && is_blank((*text)[*n - 1])) --*n;
    while (both && *n && is_blank(**text)) ++*text, --*n;
}

/* Advances past a byte order mark. Returns false if the text does not begin with one. */
static bool skip_mark(const char **text, size_t *n)
{
    static const char mark[] = WHIT_PATCH_MARK;
    if (*n < sizeof mark - 1 || memcmp(*text, mark, sizeof mark - 1) != 0) return false;
    *text += sizeof mark - 1;
    *n -= sizeof mark - 1;
    return true;
}

/* Returns the ASCII character for a typographic variant of a quote, dash or space, which models confuse with it, and
 * any other character unchanged. */
static uint32_t plain_character(uint32_t code)
{
    if (code == 0x2018 || code == 0x2019 || code == 0x201A || code == 0x2032) return '\'';
    if (code == 0x201C || code == 0x201D || code == 0x201E || code == 0x2033) return '"';
    if (code >= 0x2010 && code <= 0x2015) return '-';
    if (code == 0x2212) return '-';
    if (code == 0xA0 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x3000) return ' ';
    return code;
}

static bool same_characters(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t i = 0, k = 0, length;
    while (i < n_a && k < n_b) {
        uint32_t x = plain_character(whit_utf8_decode((const uint8_t *)a + i, n_a - i, &length));
        i += length;
        uint32_t y = plain_character(whit_utf8_decode((const uint8_t *)b + k, n_b - k, &length));
        k += length;
        /* invalid bytes never match, since all of them decode to WHIT_UTF8_INVALID */
        if (x != y || x == WHIT_UTF8_INVALID) return false;
    }
    return i == n_a && k == n_b;
}

static bool same_line(const job *j, size_t place, const whit_patch_line *in_patch, whit_patch_grade grade)
{
    const span *in_file = span_at(j, place);
    const char *a = in_file->text, *b = in_patch->text;
    size_t n_a = in_file->n_bytes, n_b = in_patch->n_bytes;
    /* diffs repeat the file's byte order mark, models omit it */
    if (place == 0 && j->has_mark) skip_mark(&b, &n_b);
    if (grade != WHIT_PATCH_EXACT) {
        trim(&a, &n_a, grade >= WHIT_PATCH_INDENTATION);
        trim(&b, &n_b, grade >= WHIT_PATCH_INDENTATION);
    }
    if (grade == WHIT_PATCH_UNICODE) return same_characters(a, n_a, b, n_b);
    return n_a == n_b && memcmp(a, b, n_a) == 0;
}

/* ---- finding the place of a hunk ------------------------------------------------------------ */

/* Returns whether a hunk's line belongs to the old text (side '-') or to the new text (side '+'). */
static bool on_side(const whit_patch_line *line, char side)
{
    return line->kind == ' ' || line->kind == side;
}

/* Returns whether a diff's hunk would remove a line that an earlier hunk added. The hunks of one diff describe one old
 * text, so such a diff is outdated. */
static bool takes_added(const job *j, const whit_patch_hunk *hunk, const whit_patch_line *line, size_t place)
{
    return line->kind == '-' && !hunk->is_block && place < j->added.size_bytes && j->added.data[place];
}

/* Counts the lines of a side that match at a place, up to the first mismatch, which *differing gets. Returns SIZE_MAX
 * if all match. */
static size_t matching(job *j, const whit_patch_hunk *hunk, char side, size_t place, whit_patch_grade grade,
                       const whit_patch_line **differing)
{
    size_t n = 0;
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const whit_patch_line *line = line_at(j, hunk, i);
        if (!on_side(line, side)) continue;
        j->n_comparisons++;
        if (place + n >= n_spans(j) || !same_line(j, place + n, line, grade) || takes_added(j, hunk, line, place + n)) {
            if (differing) *differing = line;
            return n;
        }
        n++;
    }
    return SIZE_MAX;
}

static size_t n_on_side(const job *j, const whit_patch_hunk *hunk, char side)
{
    size_t n = 0;
    for (size_t i = 0; i < hunk->n_lines; i++) n += on_side(line_at(j, hunk, i), side);
    return n;
}

/* Finds places, from line `from` on, at which all lines of a side match. Returns their number (counting ends at 3) and
 * writes the first two to places[]. */
static size_t find_places(job *j, const whit_patch_hunk *hunk, char side, size_t from, whit_patch_grade grade,
                          size_t places[2])
{
    size_t n = 0, n_side = n_on_side(j, hunk, side), n_file = n_spans(j);
    for (size_t at = from; n_side && n_side <= n_file && at <= n_file - n_side && n < 3; at++) {
        if (j->n_comparisons > MAX_COMPARISONS) break;
        if (matching(j, hunk, side, at, grade, NULL) != SIZE_MAX) continue;
        if (n < 2) places[n] = at;
        n++;
    }
    return n;
}

static void hash_text(const job *j, char text[17])
{
    uint8_t digest[WHIT_HASH_BYTES];
    char hex[2 * WHIT_HASH_BYTES + 1];
    whit_hash hash;
    whit_hash_begin(&hash, "whit.agent.file");
    if (j->has_mark) whit_hash_add(&hash, WHIT_PATCH_MARK, strlen(WHIT_PATCH_MARK));
    whit_hash_add(&hash, j->content, j->n_bytes);
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, hex);
    memcpy(text, hex, 16);
    text[16] = 0;
}

/* Returns how many bytes of a line an error message quotes: at most 80. */
static int shown_bytes(size_t n_bytes)
{
    return n_bytes < 80 ? (int)n_bytes : 80;
}

/* Fails with an error that names the place with the most matching lines in a row, and the first line that differs
 * there. */
static whit_status fail_nowhere(job *j, const whit_patch_hunk *hunk, size_t i_hunk)
{
    size_t best = 0, best_place = 0;
    const whit_patch_line *differing = NULL, *line = NULL;
    char hash[17];
    hash_text(j, hash);
    for (size_t at = 0; at < n_spans(j) && j->n_comparisons <= MAX_COMPARISONS; at++) {
        size_t n = matching(j, hunk, '-', at, WHIT_PATCH_UNICODE, &line);
        if (!differing || n > best) {
            best = n;
            best_place = at;
            differing = line;
        }
    }
    if (!differing || !best)
        return whit_fail(
            j->error, WHIT_ERROR_FORMAT,
            "%s: hunk %zu (line %u of the patch): the file does not contain its first line '%.*s' (file %s)", j->name,
            i_hunk + 1, hunk->source_line, hunk->n_lines ? shown_bytes(line_at(j, hunk, 0)->n_bytes) : 0,
            hunk->n_lines ? line_at(j, hunk, 0)->text : "", hash);
    if (best_place + best >= n_spans(j))
        return whit_fail(j->error, WHIT_ERROR_FORMAT,
                         "%s: hunk %zu (line %u of the patch) is not in the file: nearest is line %zu, where the file "
                         "ends after line %zu and the patch continues with '%.*s' (file %s)",
                         j->name, i_hunk + 1, hunk->source_line, best_place + 1, n_spans(j),
                         shown_bytes(differing->n_bytes), differing->text, hash);
    const span *there = span_at(j, best_place + best);
    return whit_fail(j->error, WHIT_ERROR_FORMAT,
                     "%s: hunk %zu (line %u of the patch) is not in the file: nearest is line %zu, where line %zu is "
                     "'%.*s', not '%.*s' (file %s)",
                     j->name, i_hunk + 1, hunk->source_line, best_place + 1, best_place + best + 1,
                     shown_bytes(there->n_bytes), there->text, shown_bytes(differing->n_bytes), differing->text, hash);
}

/* Sets *from to the line after the hunk's anchor, or to 0 if the hunk has no anchor. Errors: format (the anchor does
 * not occur exactly once). */
static whit_status find_anchor(job *j, const whit_patch_hunk *hunk, size_t i_hunk, size_t *from)
{
    *from = 0;
    if (!hunk->anchor) return WHIT_OK;
    whit_patch_line wanted = {' ', hunk->anchor, hunk->anchor_bytes};
    for (whit_patch_grade grade = 0; grade < WHIT_PATCH_GRADES; grade++) {
        size_t n = 0;
        for (size_t at = 0; at < n_spans(j); at++, j->n_comparisons++)
            if (same_line(j, at, &wanted, grade) && n++ == 0) *from = at + 1;
        if (n == 1) return WHIT_OK;
        if (n > 1)
            return whit_fail(j->error, WHIT_ERROR_FORMAT,
                             "%s: hunk %zu: its anchor '@@ %.*s' occurs %zu times: give one that occurs once", j->name,
                             i_hunk + 1, (int)(wanted.n_bytes < 80 ? wanted.n_bytes : 80), wanted.text, n);
    }
    return whit_fail(j->error, WHIT_ERROR_FORMAT,
                     "%s: hunk %zu: its anchor '@@ %.*s' is not in the file: give a line of the file", j->name,
                     i_hunk + 1, (int)(wanted.n_bytes < 80 ? wanted.n_bytes : 80), wanted.text);
}

/* Returns whether an earlier hunk of the patch has the same lines, as models sometimes repeat a hunk. */
static bool is_repeat(const job *j, const whit_patch_hunk *first, const whit_patch_hunk *hunk)
{
    for (const whit_patch_hunk *before = first; before < hunk; before++) {
        bool same = before->n_lines == hunk->n_lines;
        for (size_t i = 0; same && i < hunk->n_lines; i++) {
            const whit_patch_line *a = line_at(j, before, i), *b = line_at(j, hunk, i);
            same = a->kind == b->kind && a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
        }
        if (same) return true;
    }
    return false;
}

/* Returns whether a hunk's new text is so specific that a file which contains it must have had the hunk applied: it has
 * a context line with a letter or digit, or at least three lines, of which an added one has a letter or digit. A single
 * bracket or statement may occur anywhere. */
static bool says_enough(const job *j, const whit_patch_hunk *hunk)
{
    size_t n_kept = 0, n_added = 0, n = n_on_side(j, hunk, '+');
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const whit_patch_line *line = line_at(j, hunk, i);
        bool says = false;
        for (size_t k = 0; k < line->n_bytes && !says; k++) says = isalnum((uint8_t)line->text[k]);
        n_kept += says && line->kind == ' ';
        n_added += says && line->kind == '+';
    }
    return n_kept > 0 || n_added >= 3 || (n_added && n >= 3);
}

/* Finds the only place of the old lines; a hunk without old lines needs an anchor or an empty file. *place becomes
 * NOWHERE if the hunk seems to be applied already: its new lines occur exactly once, and it is specific (says_enough)
 * or repeats an earlier hunk. */
static whit_status find_place(job *j, const whit_patch_hunk *hunk, size_t i_hunk, size_t *place,
                              whit_patch_grade *grade)
{
    size_t places[2], from, n_old = n_on_side(j, hunk, '-');
    *grade = WHIT_PATCH_EXACT;
    WHIT_TRY(find_anchor(j, hunk, i_hunk, &from));
    if (n_old == 0) {
        if (hunk->anchor || n_spans(j) == 0) {
            *place = from;
            return WHIT_OK;
        }
        return whit_fail(j->error, WHIT_ERROR_FORMAT,
                         "%s: hunk %zu (line %u of the patch) has no context lines, so its place is not known: give "
                         "some lines of context",
                         j->name, i_hunk + 1, hunk->source_line);
    }
    for (; *grade < WHIT_PATCH_GRADES; ++*grade) {
        size_t n = find_places(j, hunk, '-', from, *grade, places);
        /* after too many comparisons the search is incomplete, so a second match may have been missed */
        if (j->n_comparisons > MAX_COMPARISONS)
            return whit_fail(j->error, WHIT_ERROR_LIMIT,
                             "%s: hunk %zu (line %u of the patch): finding its place takes too long: give fewer or "
                             "rarer lines",
                             j->name, i_hunk + 1, hunk->source_line);
        if (n == 1) {
            *place = places[0];
            return WHIT_OK;
        }
        if (n > 1)
            return whit_fail(j->error, WHIT_ERROR_FORMAT,
                             "%s: hunk %zu (line %u of the patch) fits several places, at lines %zu and %zu%s: give "
                             "more context",
                             j->name, i_hunk + 1, hunk->source_line, places[0] + 1, places[1] + 1,
                             n > 2 ? " and others" : "");
    }
    bool may_be_there = says_enough(j, hunk) || is_repeat(j, hunk - i_hunk, hunk);
    if (may_be_there && find_places(j, hunk, '+', 0, WHIT_PATCH_EXACT, places) == 1) {
        *place = NOWHERE;
        return WHIT_OK;
    }
    return fail_nowhere(j, hunk, i_hunk);
}

/* ---- writing the new text ------------------------------------------------------------------- */

static size_t indent_of(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\t')) i++;
    return i;
}

/* How the file's indentation differs from the patch's at a place. Either `more` is prepended to added lines, or n_less
 * blanks are removed from them, or n_blanks blanks of the patch become one tab, or one tab of the patch becomes n_tabs
 * blanks. */
typedef struct shift {
    const char *more;
    size_t n_more, n_less, n_blanks, n_tabs;
} shift;

/* Returns whether one side (tabs_in_file: the file) indents its old lines with tabs only, and the other with `width`
 * blanks for each of these tabs. */
static bool has_width(const job *j, const whit_patch_hunk *hunk, size_t place, size_t width, bool tabs_in_file)
{
    size_t n = 0, n_indented = 0;
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const whit_patch_line *line = line_at(j, hunk, i);
        const span *there = on_side(line, '-') ? span_at(j, place + n++) : NULL;
        size_t patch = indent_of(line->text, line->n_bytes), file = there ? indent_of(there->text, there->n_bytes) : 0;
        if (patch == line->n_bytes) continue;
        const char *in_tabs;
        if (tabs_in_file)
            in_tabs = there ? there->text : NULL;
        else
            in_tabs = line->text;
        const char *in_blanks = NULL;
        if (tabs_in_file)
            in_blanks = line->text;
        else if (there)
            in_blanks = there->text;
        size_t n_tabs = tabs_in_file ? file : patch;
        size_t n_blanks = tabs_in_file ? patch : file;
        for (size_t k = 0; in_tabs && k < n_tabs; k++)
            if (in_tabs[k] != '\t') return false;
        for (size_t k = 0; in_blanks && k < n_blanks; k++)
            if (in_blanks[k] != ' ') return false;
        if (there && n_blanks != width * n_tabs) return false;
        if (!there && tabs_in_file && n_blanks % width) return false;
        n_indented += there && n_tabs;
    }
    return n_indented > 0;
}

static bool learn_width(const job *j, const whit_patch_hunk *hunk, size_t place, shift *by)
{
    static const size_t widths[] = {4, 2, 8, 3};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        *by = (shift){0};
        if (has_width(j, hunk, place, widths[i], true)) by->n_blanks = widths[i];
        if (has_width(j, hunk, place, widths[i], false)) by->n_tabs = widths[i];
        if (by->n_blanks || by->n_tabs) return true;
    }
    return false;
}

/* Derives the shift of the indentation from the old lines that are not blank. Returns false if they do not all have the
 * same shift. */
static bool learn_shift(const job *j, const whit_patch_hunk *hunk, size_t place, shift *by)
{
    size_t n = 0;
    bool is_first = true;
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const whit_patch_line *line = line_at(j, hunk, i);
        if (!on_side(line, '-')) continue;
        const char *text = line->text;
        size_t n_bytes = line->n_bytes;
        if (place + n == 0 && j->has_mark) skip_mark(&text, &n_bytes);
        const span *there = span_at(j, place + n++);
        size_t theirs = indent_of(text, n_bytes), ours = indent_of(there->text, there->n_bytes);
        shift own = {0};
        if (theirs == n_bytes) continue;
        if (ours >= theirs && memcmp(there->text + ours - theirs, text, theirs) == 0)
            own = (shift){there->text, ours - theirs, 0};
        else if (ours < theirs && memcmp(there->text, text + theirs - ours, ours) == 0)
            own = (shift){NULL, 0, theirs - ours};
        else
            return false;
        if (is_first) *by = own;
        if (own.n_more != by->n_more || own.n_less != by->n_less ||
            (own.n_more && memcmp(own.more, by->more, own.n_more) != 0))
            return false;
        is_first = false;
    }
    return true;
}

static bool has_added(const job *j, const whit_patch_hunk *hunk)
{
    for (size_t i = 0; i < hunk->n_lines; i++) {
        const whit_patch_line *line = line_at(j, hunk, i);
        if (line->kind == '+' && indent_of(line->text, line->n_bytes) < line->n_bytes) return true;
    }
    return false;
}

static void put_added(whit_buf *out, const whit_patch_line *line, const shift *by, const char *end, size_t n_end)
{
    size_t indent = indent_of(line->text, line->n_bytes), less = by->n_less < indent ? by->n_less : indent;
    if (by->n_blanks || by->n_tabs) {
        size_t n = by->n_blanks ? indent / by->n_blanks : indent * by->n_tabs;
        for (size_t i = 0; i < n && line->n_bytes > indent; i++) whit_buf_append_str(out, by->n_blanks ? "\t" : " ");
        less = indent;
    }
    if (line->n_bytes > indent) whit_buf_append(out, by->more, by->n_more);
    whit_buf_append(out, line->text + less, line->n_bytes - less);
    whit_buf_append(out, end, n_end);
}

/* Finds the line end to use for added lines: that of the line at `place`, or that of the file's first line if the line
 * at `place` has no line end. Returns its length. */
static size_t end_of_lines(const job *j, size_t place, const char **end)
{
    size_t n = n_spans(j);
    const span *model;
    if (!n)
        model = NULL;
    else
        model = span_at(j, place < n ? place : n - 1);
    if (model && !model->n_end && n > 1) model = span_at(j, 0);
    *end = model && model->n_end == 2 ? "\r\n" : "\n";
    return strlen(*end);
}

static whit_status apply_hunk(job *j, const whit_patch_hunk *hunk, size_t i_hunk, size_t place, whit_patch_grade grade,
                              whit_buf *out)
{
    const char *end;
    size_t n_end = end_of_lines(j, place, &end), n_file = n_spans(j), at = place, n_old = n_on_side(j, hunk, '-');
    bool at_end = place + n_old == n_file;
    bool unfinished = n_file && !span_at(j, n_file - 1)->n_end; /* the last line of the file has no line end */
    /* mark_goes: the old line 1 is removed with the byte order mark; mark_comes: the new line 1 has the mark */
    bool mark_goes = false, mark_comes = false;
    shift by = {0};
    if (grade >= WHIT_PATCH_INDENTATION && !learn_shift(j, hunk, place, &by) && !learn_width(j, hunk, place, &by) &&
        has_added(j, hunk))
        return whit_fail(j->error, WHIT_ERROR_FORMAT,
                         "%s: hunk %zu (line %u of the patch): its lines differ from the file's by unequal "
                         "indentation, so the indentation of the new lines is not known: indent them as in the file",
                         j->name, i_hunk + 1, hunk->source_line);
    size_t before = place < n_file ? (size_t)(span_at(j, place)->text - j->content) : j->n_bytes;
    whit_buf_append(out, j->content, before);
    if (place == n_file && unfinished) whit_buf_append(out, end, n_end);
    for (size_t i = 0; i < hunk->n_lines; i++) {
        whit_patch_line line = *line_at(j, hunk, i);
        if (line.kind == '+') {
            if (j->has_mark && !out->size_bytes) mark_comes = skip_mark(&line.text, &line.n_bytes);
            put_added(out, &line, &by, end, n_end);
            continue;
        }
        if (line.kind == '-' && j->has_mark && at == 0) mark_goes = skip_mark(&line.text, &line.n_bytes);
        const span *there = span_at(j, at++);
        if (line.kind != ' ') continue;
        whit_buf_append(out, there->text, there->n_bytes);
        if (there->n_end)
            whit_buf_append(out, there->text + there->n_bytes, there->n_end);
        else
            whit_buf_append(out, end, n_end);
    }
    if (at_end && (hunk->no_final_newline || (unfinished && !hunk->final_newline)) && out->size_bytes >= n_end &&
        memcmp(out->data + out->size_bytes - n_end, end, n_end) == 0)
        out->size_bytes -= n_end;
    if (at < n_file) {
        size_t rest = (size_t)(span_at(j, at)->text - j->content);
        whit_buf_append(out, j->content + rest, j->n_bytes - rest);
    }
    if (mark_goes && !mark_comes) j->has_mark = false;
    return out->failed ? whit_fail_memory(j->error, "the new text", j->n_bytes) : WHIT_OK;
}

/* Updates `added` after a hunk was applied at a place: marks the hunk's added lines, drops its removed lines. */
static bool mark_added(job *j, const whit_patch_hunk *hunk, size_t place)
{
    whit_buf next = {0};
    size_t at = place;
    if (j->added.size_bytes < n_spans(j)) whit_buf_append_zeros(&j->added, n_spans(j) - j->added.size_bytes);
    whit_buf_append(&next, j->added.data, place);
    for (size_t i = 0; i < hunk->n_lines; i++) {
        char kind = line_at(j, hunk, i)->kind;
        const uint8_t is_added = kind == '+' || (at < j->added.size_bytes && j->added.data[at]);
        if (kind != '-') whit_buf_append(&next, &is_added, 1);
        at += kind != '+';
    }
    if (at < j->added.size_bytes) whit_buf_append(&next, j->added.data + at, j->added.size_bytes - at);
    bool ok = !next.failed && !j->added.failed;
    whit_buf_free(&j->added);
    j->added = next;
    return ok;
}

whit_status whit_patch_apply(const whit_patch *patch, const whit_patch_file *file, const char *name,
                             const char *content, size_t n_bytes, whit_buf *out, whit_patch_result *result,
                             whit_error *error)
{
    job j = {.patch = patch, .name = name, .content = content, .n_bytes = n_bytes, .error = error};
    whit_buf text[2] = {{0}, {0}};
    whit_status status = WHIT_OK;
    const whit_patch_hunk *first =
        file->n_hunks ? WHIT_ITEMS(const whit_patch_hunk, &patch->hunks) + file->first : NULL;
    uint32_t n_present = 0, n_repeats = 0;
    unsigned which = 0;
    size_t n_before = out->size_bytes;
    j.has_mark = skip_mark(&j.content, &j.n_bytes);
    *result = (whit_patch_result){.n_hunks = (uint32_t)file->n_hunks};
    for (size_t i = 0; status == WHIT_OK && i < file->n_hunks; i++) {
        const whit_patch_hunk *hunk = first + i;
        size_t place = 0;
        whit_patch_grade grade;
        status = split_lines(&j.spans, j.content, j.n_bytes, error);
        if (status == WHIT_OK) status = find_place(&j, hunk, i, &place, &grade);
        if (status != WHIT_OK || place == NOWHERE) {
            if (place == NOWHERE) *(is_repeat(&j, first, hunk) ? &n_repeats : &n_present) += 1;
            continue;
        }
        whit_buf *next = &text[which++ % 2]; /* the buffer that does not contain the current text */
        next->size_bytes = 0;
        status = apply_hunk(&j, hunk, i, place, grade, next);
        if (status == WHIT_OK && !whit_buf_reserve(next, 1)) status = whit_fail_memory(error, "the new text", 1);
        if (status == WHIT_OK && !mark_added(&j, hunk, place))
            status = whit_fail_memory(error, "the lines of a file", n_spans(&j));
        j.content = whit_chars(next);
        j.n_bytes = next->size_bytes;
        if (grade > result->grade) result->grade = grade;
    }
    if (status == WHIT_OK && n_present &&
        /* if only some hunks seem to be applied already, the patch is outdated */
        n_present + n_repeats != file->n_hunks)
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s: %u of %zu hunks are in the file already, the others are not: read the file again", name,
                           n_present, file->n_hunks);
    result->already_applied = status == WHIT_OK && n_present && n_present + n_repeats == file->n_hunks;
    /* a deleted file must become empty, so it loses its byte order mark */
    if (file->action == WHIT_PATCH_DELETE && !j.n_bytes) j.has_mark = false;
    if (status == WHIT_OK &&
        ((j.has_mark && !whit_buf_append(out, WHIT_PATCH_MARK, strlen(WHIT_PATCH_MARK))) ||
         !whit_buf_append(out, j.content, j.n_bytes))) {
        out->size_bytes = n_before;
        status = whit_fail_memory(error, "the new text", j.n_bytes);
    }
    whit_buf_free(&j.spans);
    whit_buf_free(&j.added);
    whit_buf_free(&text[0]);
    whit_buf_free(&text[1]);
    return status;
}
