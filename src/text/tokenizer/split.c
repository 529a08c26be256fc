/* SPDX-License-Identifier: MIT */
#include "tokenizer/split.h"

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

#define MAX_TEXT_BYTES (1u << 30)
/* Limit of how much pre-tokenizers enlarge a text: byte symbols double it, U+2581 triples spaces. */
#define MAX_GROWTH 8u

/* A part of a piece: a match of the splitting rule, or the text between two matches. */
typedef struct range {
    uint32_t start, end;
    bool match;
} range;

void whit_splitter_init(whit_splitter *splitter, const whit_allocator *allocator)
{
    *splitter = (whit_splitter){.allocator = allocator};
    for (int i = 0; i < 2; i++) {
        splitter->texts[i].allocator = splitter->pieces[i].allocator = allocator;
    }
    splitter->ranges.allocator = allocator;
}

void whit_splitter_free(whit_splitter *splitter)
{
    for (int i = 0; i < 2; i++) {
        whit_buf_free(&splitter->texts[i]);
        whit_buf_free(&splitter->pieces[i]);
    }
    whit_buf_free(&splitter->ranges);
}

whit_status whit_splitter_begin(whit_splitter *splitter, const uint8_t *text, size_t n_bytes, bool at_start,
                                whit_error *error)
{
    if (n_bytes >= MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the text is larger than 1 GiB, the limit: split it");
    splitter->text = text;
    splitter->n_bytes = n_bytes;
    size_t limit_bytes = n_bytes * MAX_GROWTH + 65536;
    if (limit_bytes > MAX_TEXT_BYTES) limit_bytes = MAX_TEXT_BYTES;
    for (int i = 0; i < 2; i++) {
        splitter->texts[i].limit_bytes = limit_bytes;
        splitter->texts[i].failed = splitter->pieces[i].failed = false;
    }
    splitter->ranges.failed = false;
    splitter->at_start = at_start;
    whit_buf *pieces = &splitter->pieces[splitter->pieces_in_use];
    whit_piece all = {0, (uint32_t)n_bytes};
    pieces->size_bytes = 0;
    if (n_bytes && !whit_buf_append(pieces, &all, sizeof all))
        return whit_fail_memory(error, "the pieces of a text", sizeof all);
    return WHIT_OK;
}

/* ---- rules: divide one piece into ranges --------------------------------------------------- */

static void add_range(whit_buf *ranges, size_t start, size_t end, bool match)
{
    range one = {(uint32_t)start, (uint32_t)end, match};
    whit_buf_append(ranges, &one, sizeof one);
}

static bool is_digit(uint32_t code)
{
    return whit_is_number(code);
}

static bool is_punctuation(uint32_t code)
{
    if (code < 0x80)
        return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
            (code >= '{' && code <= '~');
    return whit_is_punctuation_unicode8(code);
}

/* Divides a piece into ranges: each character of the class is a match. */
static void find_characters(whit_buf *ranges, const uint8_t *text, whit_piece piece, bool (*is_match)(uint32_t code))
{
    size_t last = piece.start;
    for (size_t i = piece.start, length; i < piece.end; i += length) {
        if (!is_match(whit_utf8_decode(text + i, piece.end - i, &length))) continue;
        if (last < i) add_range(ranges, last, i, false);
        add_range(ranges, i, i + length, true);
        last = i + length;
    }
    if (last < piece.end) add_range(ranges, last, piece.end, false);
}

/* Divides a piece by \w+|[^\w\s]+ : runs of word characters and runs of other visible characters are matches, the white
 * space between them is not. */
static void find_words(whit_buf *ranges, const uint8_t *text, whit_piece piece)
{
    size_t start = piece.start;
    int kind = -1; /* 0: space, 1: word, 2: other */
    for (size_t i = piece.start, length; i <= piece.end; i += length) {
        int next = -1;
        length = 1;
        if (i < piece.end) {
            uint32_t code = whit_utf8_decode(text + i, piece.end - i, &length);
            if (whit_is_word(code))
                next = 1;
            else if (whit_is_space(code))
                next = 0;
            else
                next = 2;
        }
        if (next == kind) continue;
        if (i > start) add_range(ranges, start, i, kind != 0);
        start = i;
        kind = next;
    }
}

static whit_status find_matches(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                                whit_regex **regex, whit_piece piece, whit_error *error)
{
    const uint8_t *text = splitter->text + piece.start;
    size_t n = piece.end - piece.start, last = 0;
    whit_match match = {0};
    for (bool found = true; found;) {
        WHIT_TRY(whit_step_next_match(step, pattern, regex, splitter->allocator, text, n, &match, &found, error));
        if (!found) break;
        if (last < match.start) add_range(&splitter->ranges, piece.start + last, piece.start + match.start, false);
        add_range(&splitter->ranges, piece.start + match.start, piece.start + match.end, true);
        last = match.end;
    }
    if (last < n) add_range(&splitter->ranges, piece.start + last, piece.end, false);
    return WHIT_OK;
}

/* ---- behaviours: convert ranges to pieces -------------------------------------------------- */

static void add_piece(whit_buf *pieces, size_t start, size_t end)
{
    whit_piece one = {(uint32_t)start, (uint32_t)end};
    if (start >= end) return;
    if (pieces->capacity_bytes - pieces->size_bytes < sizeof one && !whit_buf_reserve(pieces, 4096)) return;
    memcpy(pieces->data + pieces->size_bytes, &one, sizeof one);
    pieces->size_bytes += sizeof one;
}

/* Converts ranges to pieces. Each match is joined with the range before it (with_next: after it), unless that is a
 * match too. */
static void add_merged(whit_buf *pieces, const range *ranges, size_t n, bool with_next)
{
    size_t first = pieces->size_bytes / sizeof(whit_piece);
    bool previous = false;
    for (size_t k = 0; k < n && !pieces->failed; k++) {
        const range *one = &ranges[with_next ? n - 1 - k : k];
        size_t n_pieces = pieces->size_bytes / sizeof(whit_piece);
        if (one->match && !previous && n_pieces > first) {
            whit_piece *last = WHIT_ITEMS(whit_piece, pieces) + (n_pieces - 1);
            if (with_next)
                last->start = one->start;
            else
                last->end = one->end;
        } else {
            add_piece(pieces, one->start, one->end);
        }
        previous = one->match;
    }
    if (!with_next || pieces->failed || pieces->size_bytes == 0) return;
    whit_piece *all = WHIT_ITEMS(whit_piece, pieces);
    for (size_t low = first, high = pieces->size_bytes / sizeof *all; low + 1 < high; low++) {
        whit_piece swap = all[low];
        all[low] = all[--high];
        all[high] = swap;
    }
}

static void add_contiguous(whit_buf *pieces, const range *ranges, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && ranges[end].match == ranges[i].match) end++;
        add_piece(pieces, ranges[i].start, ranges[end - 1].end);
        i = end;
    }
}

static void add_pieces(whit_buf *pieces, const range *ranges, size_t n, uint32_t behaviour)
{
    switch (behaviour) {
    case WHIT_SPLIT_MERGED_WITH_PREVIOUS: add_merged(pieces, ranges, n, false); return;
    case WHIT_SPLIT_MERGED_WITH_NEXT: add_merged(pieces, ranges, n, true); return;
    case WHIT_SPLIT_CONTIGUOUS: add_contiguous(pieces, ranges, n); return;
    default: break;
    }
    for (size_t i = 0; i < n; i++)
        if (behaviour != WHIT_SPLIT_REMOVED || !ranges[i].match) add_piece(pieces, ranges[i].start, ranges[i].end);
}

/* ---- steps that do not change the text ----------------------------------------------------- */

static whit_status find_ranges(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                               whit_regex **regex, whit_piece piece, whit_error *error)
{
    whit_buf *ranges = &splitter->ranges;
    ranges->size_bytes = 0;
    switch (step->kind) {
    case WHIT_STEP_DIGITS: find_characters(ranges, splitter->text, piece, is_digit); break;
    case WHIT_STEP_PUNCTUATION: find_characters(ranges, splitter->text, piece, is_punctuation); break;
    case WHIT_STEP_WHITESPACE: find_words(ranges, splitter->text, piece); break;
    case WHIT_STEP_WHITESPACE_SPLIT: find_characters(ranges, splitter->text, piece, whit_is_space); break;
    default: WHIT_TRY(find_matches(splitter, step, pattern, regex, piece, error)); break;
    }
    if (ranges->failed) return whit_fail_memory(error, "the pieces of a text", ranges->size_bytes);
    return WHIT_OK;
}

static uint32_t behaviour_of(const whit_tokenizer_step *step)
{
    switch (step->kind) {
    case WHIT_STEP_DIGITS: return step->a ? WHIT_SPLIT_ISOLATED : WHIT_SPLIT_CONTIGUOUS;
    case WHIT_STEP_WHITESPACE:
    case WHIT_STEP_WHITESPACE_SPLIT:
    case WHIT_STEP_CHAR_SPLIT: return WHIT_SPLIT_REMOVED;
    default: return step->a;
    }
}

static whit_status cut_pieces(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                              whit_regex **regex, whit_error *error)
{
    size_t n;
    const whit_piece *pieces = whit_splitter_pieces(splitter, &n);
    whit_buf *out = &splitter->pieces[!splitter->pieces_in_use];
    uint32_t behaviour = behaviour_of(step);
    /* The rule of Whitespace matches words; everything else is removed. */
    bool invert = step->flags & WHIT_STEP_FLAG_INVERT || step->kind == WHIT_STEP_WHITESPACE;
    out->size_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        WHIT_TRY(find_ranges(splitter, step, pattern, regex, pieces[i], error));
        range *ranges = WHIT_ITEMS(range, &splitter->ranges);
        size_t n_ranges = splitter->ranges.size_bytes / sizeof *ranges;
        for (size_t k = 0; k < n_ranges && invert; k++) ranges[k].match = !ranges[k].match;
        add_pieces(out, ranges, n_ranges, behaviour);
    }
    if (out->failed) return whit_fail_memory(error, "the pieces of a text", out->size_bytes);
    splitter->pieces_in_use = !splitter->pieces_in_use;
    return WHIT_OK;
}

/* Divides the pieces by a pattern with a scan function. It matches at every position, so its matches are the new
 * pieces. */
static whit_status cut_by_scan(whit_splitter *splitter, whit_scan_fn *scan, whit_error *error)
{
    size_t n;
    const whit_piece *pieces = whit_splitter_pieces(splitter, &n);
    whit_buf *out = &splitter->pieces[!splitter->pieces_in_use];
    out->size_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *text = splitter->text + pieces[i].start;
        size_t length = pieces[i].end - pieces[i].start;
        for (size_t at = 0, end; at < length; at = end) {
            end = scan(text, length, at);
            add_piece(out, pieces[i].start + at, pieces[i].start + end);
        }
    }
    if (out->failed) return whit_fail_memory(error, "the pieces of a text", out->size_bytes);
    splitter->pieces_in_use = !splitter->pieces_in_use;
    return WHIT_OK;
}

/* ---- steps that change the text ------------------------------------------------------------- */

typedef bool rewrite_fn(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                        whit_piece piece, whit_buf *out);

static whit_status rewrite(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                           rewrite_fn *one, whit_error *error)
{
    size_t n;
    const whit_piece *pieces = whit_splitter_pieces(splitter, &n);
    whit_buf *text = &splitter->texts[!splitter->text_in_use];
    whit_buf *out = &splitter->pieces[!splitter->pieces_in_use];
    text->size_bytes = out->size_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t start = text->size_bytes;
        if (!one(splitter, step, pattern, pieces[i], text)) break;
        add_piece(out, start, text->size_bytes);
    }
    if (text->failed)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "tokenizer: splitting makes the text more than 8 times as long, the limit, or memory ran out");
    if (out->failed) return whit_fail_memory(error, "the pieces of a text", out->size_bytes);
    splitter->text_in_use = !splitter->text_in_use;
    splitter->pieces_in_use = !splitter->pieces_in_use;
    splitter->text = text->data;
    splitter->n_bytes = text->size_bytes;
    return WHIT_OK;
}

static bool prefix_space(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                         whit_piece piece, whit_buf *out)
{
    (void)step;
    (void)pattern;
    if (splitter->text[piece.start] != ' ') whit_buf_append(out, " ", 1);
    return whit_buf_append(out, splitter->text + piece.start, piece.end - piece.start);
}

static bool spell_bytes(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                        whit_piece piece, whit_buf *out)
{
    (void)step;
    (void)pattern;
    size_t n = piece.end - piece.start;
    const uint8_t *text = splitter->text + piece.start;
    if (!whit_buf_reserve(out, 2 * n)) return false;
    uint8_t *to = out->data + out->size_bytes;
    for (size_t i = 0; i < n; i++) {
        uint32_t code = text[i] > ' ' && text[i] < 0x7F ? text[i] : whit_byte_symbol(text[i]);
        if (code < 0x80) {
            *to++ = (uint8_t)code;
        } else {
            *to++ = (uint8_t)(0xC0 | code >> 6);
            *to++ = (uint8_t)(0x80 | (code & 0x3F));
        }
    }
    out->size_bytes = (size_t)(to - out->data);
    return true;
}

static bool mark_spaces(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                        whit_piece piece, whit_buf *out)
{
    const uint8_t *text = splitter->text + piece.start, *end = splitter->text + piece.end;
    size_t mark = step->text_bytes;
    bool marked = *text == ' ' || ((size_t)(end - text) >= mark && memcmp(text, pattern, mark) == 0);
    bool wanted =
        step->a == WHIT_PREPEND_ALWAYS || (step->a == WHIT_PREPEND_FIRST && splitter->at_start && piece.start == 0);
    if (wanted && !marked) whit_buf_append(out, pattern, mark);
    while (text < end) {
        const uint8_t *space = memchr(text, ' ', (size_t)(end - text));
        whit_buf_append(out, text, (size_t)((space ? space : end) - text));
        if (!space) break;
        whit_buf_append(out, pattern, mark);
        text = space + 1;
    }
    return !out->failed;
}

static whit_status apply_byte_level(whit_splitter *splitter, const whit_tokenizer_step *step, whit_regex **regex,
                                    whit_error *error)
{
    static const uint8_t pattern[] = WHIT_PATTERN_GPT2;
    const whit_tokenizer_step gpt2 = {.kind = WHIT_STEP_SPLIT,
                                      .flags = WHIT_STEP_FLAG_REGEX,
                                      .text_bytes = sizeof pattern - 1,
                                      .a = WHIT_SPLIT_ISOLATED};
    if (step->flags & WHIT_STEP_FLAG_PREFIX_SPACE) WHIT_TRY(rewrite(splitter, step, NULL, prefix_space, error));
    if (step->flags & WHIT_STEP_FLAG_REGEX) WHIT_TRY(whit_splitter_apply(splitter, &gpt2, pattern, regex, error));
    return rewrite(splitter, step, NULL, spell_bytes, error);
}

static whit_status apply_metaspace(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                                   whit_error *error)
{
    const whit_tokenizer_step at_marks = {
        .kind = WHIT_STEP_SPLIT, .text_bytes = step->text_bytes, .a = WHIT_SPLIT_MERGED_WITH_NEXT};
    whit_regex *none = NULL;
    if (step->text_bytes == 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "tokenizer: the pre-tokenizer Metaspace has no replacement: the data is damaged");
    WHIT_TRY(rewrite(splitter, step, pattern, mark_spaces, error));
    if (!(step->flags & WHIT_STEP_FLAG_SPLIT)) return WHIT_OK;
    return cut_pieces(splitter, &at_marks, pattern, &none, error);
}

/* Splits like BERT: removes white space and makes every punctuation character a piece. */
static whit_status apply_bert(whit_splitter *splitter, whit_error *error)
{
    const whit_tokenizer_step spaces = {.kind = WHIT_STEP_WHITESPACE_SPLIT};
    const whit_tokenizer_step marks = {.kind = WHIT_STEP_PUNCTUATION, .a = WHIT_SPLIT_ISOLATED};
    whit_regex *none = NULL;
    WHIT_TRY(cut_pieces(splitter, &spaces, NULL, &none, error));
    return cut_pieces(splitter, &marks, NULL, &none, error);
}

whit_status whit_splitter_apply(whit_splitter *splitter, const whit_tokenizer_step *step, const uint8_t *pattern,
                                whit_regex **regex, whit_error *error)
{
    switch (step->kind) {
    case WHIT_STEP_BYTE_LEVEL: return apply_byte_level(splitter, step, regex, error);
    case WHIT_STEP_METASPACE: return apply_metaspace(splitter, step, pattern, error);
    case WHIT_STEP_BERT: return apply_bert(splitter, error);
    case WHIT_STEP_SPLIT: {
        bool plain = step->a == WHIT_SPLIT_ISOLATED && step->flags == WHIT_STEP_FLAG_REGEX;
        whit_scan_fn *scan = plain ? whit_scan_for(pattern, step->text_bytes) : NULL;
        if (scan) return cut_by_scan(splitter, scan, error);
        break;
    }
    case WHIT_STEP_DIGITS:
    case WHIT_STEP_PUNCTUATION:
    case WHIT_STEP_WHITESPACE:
    case WHIT_STEP_WHITESPACE_SPLIT:
    case WHIT_STEP_CHAR_SPLIT: break;
    default:
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "tokenizer: pre-tokenizer %u is not known: the data is damaged, or made by a later whit",
                         step->kind);
    }
    return cut_pieces(splitter, step, pattern, regex, error);
}
