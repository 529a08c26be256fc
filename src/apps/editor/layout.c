/* SPDX-License-Identifier: MIT */
#include "editor/layout.h"

#include "base/utf8.h"

void whit_layout_forget(whit_layout *layout)
{
    layout->span = (whit_span){0};
}

int whit_layout_byte(whit_layout *layout, uint64_t offset)
{
    if (offset - layout->span_begin >= layout->span.size_bytes) {
        layout->span = whit_text_at(layout->text, offset);
        layout->span_begin = offset;
        if (!layout->span.size_bytes) return -1;
    }
    return layout->span.data[offset - layout->span_begin];
}

static size_t read_some(whit_layout *layout, uint64_t offset, uint8_t *bytes, size_t n)
{
    size_t i = 0;
    for (int byte; i < n && (byte = whit_layout_byte(layout, offset + i)) >= 0; i++) bytes[i] = (uint8_t)byte;
    return i;
}

/* One code point; WHIT_UTF8_INVALID is one byte. */
static uint32_t code_at(whit_layout *layout, uint64_t offset, uint32_t *n_bytes)
{
    int first = whit_layout_byte(layout, offset);
    *n_bytes = 1;
    if (first < 0x80) return first < 0 ? WHIT_UTF8_INVALID : (uint32_t)first;
    uint8_t bytes[4];
    size_t n = read_some(layout, offset, bytes, 4), length;
    uint32_t code = whit_utf8_decode(bytes, n, &length);
    if (code != WHIT_UTF8_INVALID) *n_bytes = (uint32_t)length;
    return code;
}

static bool is_line_end(whit_layout *layout, uint64_t offset)
{
    int byte = whit_layout_byte(layout, offset);
    return byte < 0 || byte == '\n' || (byte == '\r' && whit_layout_byte(layout, offset + 1) == '\n');
}

bool whit_layout_glyph(whit_layout *layout, uint64_t offset, int column, whit_glyph *glyph)
{
    int byte = whit_layout_byte(layout, offset);
    if (is_line_end(layout, offset)) return false;
    *glyph = (whit_glyph){.codes = {(uint32_t)byte}, .n_codes = 1, .n_bytes = 1, .width = 1};
    if (byte >= 32 && byte < 127 && whit_layout_byte(layout, offset + 1) < 0x80) return true;
    if (byte == '\t') {
        glyph->codes[0] = ' ';
        glyph->width = layout->tab_columns - column % layout->tab_columns;
        return true;
    }
    static const char hex[] = "0123456789abcdef";
    uint32_t code = code_at(layout, offset, &glyph->n_bytes);
    int width = code == WHIT_UTF8_INVALID ? -1 : whit_char_width(code);
    if (width < 0 && code < 128) {
        *glyph = (whit_glyph){{'^', code ^ 64}, 2, true, 1, 2};
        return true;
    }
    if (code == WHIT_UTF8_INVALID) {
        *glyph = (whit_glyph){{'<', (uint32_t)hex[byte >> 4], (uint32_t)hex[byte & 15], '>'}, 4, true, 1, 4};
        return true;
    }
    glyph->codes[0] = width < 0 ? 0xFFFD : code;
    glyph->is_foreign = width < 0;
    glyph->width = width < 0 ? 1 : width;
    if (width == 0) { /* combines with nothing: shown on a circle */
        glyph->codes[0] = 0x25CC;
        glyph->codes[glyph->n_codes++] = code;
        glyph->width = 1;
    }
    for (int n = 0; n < 32; n++) { /* a text of nothing else is not one character */
        uint32_t n_bytes;
        if (whit_layout_byte(layout, offset + glyph->n_bytes) < 0x80) break;
        uint32_t next = code_at(layout, offset + glyph->n_bytes, &n_bytes);
        if (next == WHIT_UTF8_INVALID || whit_char_width(next) != 0) break;
        if (glyph->n_codes < WHIT_CELL_CODES) glyph->codes[glyph->n_codes++] = next;
        glyph->n_bytes += n_bytes;
    }
    return true;
}

uint64_t whit_layout_behind(whit_layout *layout, uint64_t offset)
{
    whit_glyph glyph;
    if (whit_layout_glyph(layout, offset, 0, &glyph)) return offset + glyph.n_bytes;
    int byte = whit_layout_byte(layout, offset);
    return byte < 0 ? offset : offset + (byte == '\r' ? 2 : 1);
}

uint64_t whit_layout_before(whit_layout *layout, uint64_t offset)
{
    if (!offset) return 0;
    /* Characters are found by reading forward from a byte that begins one for certain. */
    uint64_t from = offset - 1;
    for (int back = 0; back < 160 && from; back++, from--) {
        int byte = whit_layout_byte(layout, from), before = whit_layout_byte(layout, from - 1);
        if (byte < 0x80 && before < 0x80 && !(byte == '\n' && before == '\r')) break;
        if (before == '\n') break;
    }
    for (;;) {
        uint64_t next = whit_layout_behind(layout, from);
        if (next >= offset || next == from) return from;
        from = next;
    }
}

uint64_t whit_layout_line_begin(whit_layout *layout, uint64_t offset)
{
    uint64_t line = whit_text_line_at(layout->text, offset), begin;
    if (line != UINT64_MAX && (begin = whit_text_line_start(layout->text, line)) <= offset) return begin;
    return whit_text_line_begin(layout->text, offset);
}

uint64_t whit_layout_line_end(whit_layout *layout, uint64_t offset)
{
    uint64_t line = whit_text_line_at(layout->text, offset), end = UINT64_MAX;
    if (line != UINT64_MAX) end = whit_text_line_start(layout->text, line + 1);
    if (end == UINT64_MAX || end < offset)
        end = whit_text_line_end(layout->text, offset);
    else if (end > offset && whit_layout_byte(layout, end - 1) == '\n') /* not so in the empty last row */
        end--;
    if (end > offset && whit_layout_byte(layout, end) == '\n' && whit_layout_byte(layout, end - 1) == '\r') end--;
    return end;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const whit_range *fold_at(const whit_layout *layout, uint64_t offset)
{
    for (size_t i = 0; i < layout->n_folds; i++)
        if (offset > layout->folds[i].begin && offset <= layout->folds[i].end) return &layout->folds[i];
    return NULL;
}

/* Where a segment may begin: not inside of a character. */
static uint64_t aligned(whit_layout *layout, uint64_t offset)
{
    for (int i = 0; i < 3 && (whit_layout_byte(layout, offset) & 0xC0) == 0x80; i++) offset++;
    return offset;
}

/* Reads one row. *end is its last offset; returns the next row or UINT64_MAX. */
static uint64_t walk(whit_layout *layout, uint64_t row, uint64_t segment_end, uint64_t *end)
{
    int column = 0;
    uint64_t at = row;
    whit_glyph glyph;
    while (whit_layout_glyph(layout, at, column, &glyph)) {
        if (at >= segment_end || (layout->wrap_columns && column + glyph.width > layout->wrap_columns && at > row)) {
            *end = at;
            return at;
        }
        column += glyph.width;
        at += glyph.n_bytes;
    }
    *end = at;
    for (const whit_range *fold; (fold = fold_at(layout, at + 1)) && fold->begin >= row && fold->begin <= at;)
        at = fold->end;
    int byte = whit_layout_byte(layout, at);
    return byte < 0 ? UINT64_MAX : at + (byte == '\r' ? 2 : 1);
}

static uint64_t segment_of(whit_layout *layout, uint64_t offset, uint64_t *segment_end)
{
    uint64_t begin = whit_layout_line_begin(layout, offset), n = (offset - begin) / WHIT_SEGMENT_BYTES;
    uint64_t segment = n ? aligned(layout, begin + n * WHIT_SEGMENT_BYTES) : begin;
    if (segment > offset) segment = --n ? aligned(layout, begin + n * WHIT_SEGMENT_BYTES) : begin;
    *segment_end = aligned(layout, begin + (n + 1) * WHIT_SEGMENT_BYTES);
    return segment;
}

uint64_t whit_layout_row(whit_layout *layout, uint64_t offset)
{
    const whit_range *fold = fold_at(layout, offset);
    if (fold) offset = fold->begin;
    uint64_t segment_end, end, row = segment_of(layout, offset, &segment_end);
    for (;;) {
        uint64_t next = walk(layout, row, segment_end, &end);
        if (next == UINT64_MAX || next > offset || next <= row) return row;
        row = next;
    }
}

uint64_t whit_layout_next_row(whit_layout *layout, uint64_t row)
{
    uint64_t segment_end, end;
    segment_of(layout, row, &segment_end);
    return walk(layout, row, segment_end, &end);
}

uint64_t whit_layout_previous_row(whit_layout *layout, uint64_t row)
{
    return row ? whit_layout_row(layout, row - 1) : UINT64_MAX;
}

int whit_layout_column(whit_layout *layout, uint64_t row, uint64_t offset)
{
    int column = 0;
    whit_glyph glyph;
    for (uint64_t at = row; at < offset && whit_layout_glyph(layout, at, column, &glyph); at += glyph.n_bytes)
        column += glyph.width;
    return column;
}

uint64_t whit_layout_at_column(whit_layout *layout, uint64_t row, int column)
{
    uint64_t segment_end, end, at = row;
    segment_of(layout, row, &segment_end);
    uint64_t next = walk(layout, row, segment_end, &end);
    int here = 0;
    whit_glyph glyph;
    while (at < end && whit_layout_glyph(layout, at, here, &glyph) && here + glyph.width <= column) {
        /* The end of a wrapped row is the beginning of the next. */
        if (at + glyph.n_bytes >= end && next == end) break;
        here += glyph.width;
        at += glyph.n_bytes;
    }
    return at;
}

bool whit_layout_fold(whit_layout *layout, whit_range range)
{
    if (layout->n_folds == WHIT_FOLDS_MAX || range.end <= range.begin) return false;
    for (size_t i = layout->n_folds; i-- > 0;) /* folds inside of it are part of it */
        if (layout->folds[i].begin >= range.begin && layout->folds[i].end <= range.end)
            memmove(layout->folds + i, layout->folds + i + 1, (--layout->n_folds - i) * sizeof *layout->folds);
    size_t i = layout->n_folds++;
    for (; i > 0 && layout->folds[i - 1].begin > range.begin; i--) layout->folds[i] = layout->folds[i - 1];
    layout->folds[i] = range;
    return true;
}

bool whit_layout_unfold(whit_layout *layout, uint64_t offset)
{
    for (size_t i = 0; i < layout->n_folds; i++) {
        if (offset < layout->folds[i].begin || offset > layout->folds[i].end) continue;
        memmove(layout->folds + i, layout->folds + i + 1, (--layout->n_folds - i) * sizeof *layout->folds);
        return true;
    }
    return false;
}
