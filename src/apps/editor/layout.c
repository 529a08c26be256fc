/* SPDX-License-Identifier: MIT */
#include "editor/layout.h"

#define CONTEXT_BYTES 4096u

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

/* Returns up to WHIT_GLYPH_BYTES bytes from an offset on: in place if they are contiguous, otherwise copied into
 * `copied`. *n gets their number. */
static const uint8_t *glyph_bytes(whit_layout *layout, uint64_t offset, uint8_t copied[WHIT_GLYPH_BYTES], size_t *n)
{
    *n = WHIT_GLYPH_BYTES;
    if (whit_layout_byte(layout, offset) >= 0 &&
        layout->span_begin + layout->span.size_bytes - offset >= WHIT_GLYPH_BYTES)
        return layout->span.data + (offset - layout->span_begin);
    *n = whit_text_read(layout->text, offset, copied, WHIT_GLYPH_BYTES);
    return copied;
}

static bool is_line_end(whit_layout *layout, uint64_t offset)
{
    int byte = whit_layout_byte(layout, offset);
    return byte < 0 || byte == '\n' || (byte == '\r' && whit_layout_byte(layout, offset + 1) == '\n');
}

static void simple_glyph(whit_glyph *glyph, uint32_t code, int width)
{
    glyph->codes[0] = code;
    glyph->widths[0] = (uint8_t)width;
    glyph->n_codes = 1;
    glyph->is_foreign = false;
    glyph->n_bytes = 1;
    glyph->width = width;
}

bool whit_layout_glyph(whit_layout *layout, uint64_t offset, int column, whit_glyph *glyph)
{
    int byte = whit_layout_byte(layout, offset);
    if (is_line_end(layout, offset)) return false;
    if (byte >= 32 && byte < 127 && whit_layout_byte(layout, offset + 1) < 0x80) {
        simple_glyph(glyph, (uint32_t)byte, 1);
    } else if (byte == '\t') {
        simple_glyph(glyph, ' ', layout->tab_columns - column % layout->tab_columns);
    } else {
        uint8_t copied[WHIT_GLYPH_BYTES];
        size_t n;
        const uint8_t *bytes = glyph_bytes(layout, offset, copied, &n);
        whit_glyph_read(bytes, n, glyph);
    }
    return true;
}

uint64_t whit_layout_behind(whit_layout *layout, uint64_t offset)
{
    whit_glyph glyph;
    if (whit_layout_glyph(layout, offset, 0, &glyph)) return offset + glyph.n_bytes;
    int byte = whit_layout_byte(layout, offset);
    if (byte < 0) return offset;
    return offset + (byte == '\r' ? 2 : 1);
}

/* Returns the start of the glyph that contains the byte at `offset`. Up to CONTEXT_BYTES before it are read, since flag
 * letters pair up from the beginning of their sequence. */
static uint64_t glyph_start(whit_layout *layout, uint64_t offset)
{
    int byte = whit_layout_byte(layout, offset), before = offset ? whit_layout_byte(layout, offset - 1) : 0;
    if (byte == '\n') return before == '\r' ? offset - 1 : offset;
    if (!offset || byte < 0 || (byte < 0x80 && before < 0x80)) return offset;
    uint8_t bytes[CONTEXT_BYTES + WHIT_GLYPH_BYTES];
    uint64_t from = offset > CONTEXT_BYTES ? offset - CONTEXT_BYTES : 0;
    size_t n = whit_text_read(layout->text, from, bytes, (size_t)(offset - from) + WHIT_GLYPH_BYTES);
    return from + whit_glyph_begin(bytes, n, (size_t)(offset - from));
}

uint64_t whit_layout_before(whit_layout *layout, uint64_t offset)
{
    return offset ? glyph_start(layout, offset - 1) : 0;
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
    else if (end > offset && whit_layout_byte(layout, end - 1) == '\n') /* an empty last row has no line feed */
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

/* Returns the first glyph boundary at or after `offset`, at which a segment may begin. */
static uint64_t aligned(whit_layout *layout, uint64_t offset)
{
    uint64_t start = glyph_start(layout, offset);
    return start < offset ? whit_layout_behind(layout, start) : offset;
}

/* Walks along one row and sets *end to the offset of its end. Returns the beginning of the next row, or UINT64_MAX. */
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
    if (byte < 0) return UINT64_MAX;
    return at + (byte == '\r' ? 2 : 1);
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
        /* the end of a wrapped row belongs to the next row */
        if (at + glyph.n_bytes >= end && next == end) break;
        here += glyph.width;
        at += glyph.n_bytes;
    }
    return at;
}

bool whit_layout_fold(whit_layout *layout, whit_range range)
{
    if (layout->n_folds == WHIT_FOLDS_MAX || range.end <= range.begin) return false;
    for (size_t i = layout->n_folds; i-- > 0;) /* remove folds inside the new one */
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
