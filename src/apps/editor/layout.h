/* SPDX-License-Identifier: MIT
 * Lays out a text: finds the rows of a window and the columns in a row. Positions are offsets in bytes. A row is a
 * line, a part of a wrapped line, or 4 KiB of a longer line, so that no function here takes longer for a longer
 * line. */
#ifndef WHIT_EDITOR_LAYOUT_H
#define WHIT_EDITOR_LAYOUT_H

#include "editor/screen.h"
#include "editor/text.h"

#define WHIT_SEGMENT_BYTES 4096u
#define WHIT_FOLDS_MAX     64

typedef struct whit_layout {
    whit_text *text;
    int wrap_columns; /* width at which lines are wrapped; 0: no wrapping */
    int tab_columns;
    /* hidden ranges, sorted; each from the end of a line to the end of a later line */
    whit_range folds[WHIT_FOLDS_MAX];
    size_t n_folds;
    whit_span span; /* cached contiguous bytes around the last byte that was read; they begin at offset span_begin */
    uint64_t span_begin;
} whit_layout;

/* Drops the cached bytes. Must be called after every change of the text. */
void whit_layout_forget(whit_layout *layout);
int whit_layout_byte(whit_layout *layout, uint64_t offset);
/* Reads the glyph at an offset; a tab becomes blanks up to the first tab stop after `column`. Returns false at the end
 * of a line and at the end of the text. */
bool whit_layout_glyph(whit_layout *layout, uint64_t offset, int column, whit_glyph *glyph);
/* Return the start of the glyph before an offset, and the end of the glyph at an offset. A line end (LF or CR LF) is
 * one glyph. */
uint64_t whit_layout_before(whit_layout *layout, uint64_t offset);
uint64_t whit_layout_behind(whit_layout *layout, uint64_t offset);

uint64_t whit_layout_line_begin(whit_layout *layout, uint64_t offset);
/* Returns the end of the line's visible text: the offset of its LF or CR LF, or the end of the text. */
uint64_t whit_layout_line_end(whit_layout *layout, uint64_t offset);

/* Returns the beginning of the row that contains an offset. */
uint64_t whit_layout_row(whit_layout *layout, uint64_t offset);
/* Return the beginning of the row after `row` and of the row before it; UINT64_MAX if there is no such row. */
uint64_t whit_layout_next_row(whit_layout *layout, uint64_t row);
uint64_t whit_layout_previous_row(whit_layout *layout, uint64_t row);
int whit_layout_column(whit_layout *layout, uint64_t row, uint64_t offset);
/* Returns the last offset in a row whose column is at most `column`. */
uint64_t whit_layout_at_column(whit_layout *layout, uint64_t row, int column);

bool whit_layout_fold(whit_layout *layout, whit_range range);
/* Opens the fold that hides an offset or begins at it. Returns false if there is no such fold. */
bool whit_layout_unfold(whit_layout *layout, uint64_t offset);

#endif
