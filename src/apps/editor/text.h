/* SPDX-License-Identifier: MIT
 * Holds text of any size as a piece table: pieces of the original text (mapped or read) and of the text typed since, in
 * a B+ tree that is searched by bytes and by lines.
 *
 * A text and its snapshots share nodes, and a node is copied when one of them is changed, so that a snapshot is one
 * reference. Bytes are never changed in place: pieces can be kept (a step of undo keeps them) as long as the text is
 * open. A text and its snapshots belong to one thread; snapshots are released before their text is closed. Any bytes
 * are allowed; a line ends after '\n'.
 *
 * Piece tables: J Strother Moore, 1973; the tree by bytes and lines: as in ropes (Boehm, Atkinson,
 * Plass 1995). */
#ifndef WHIT_EDITOR_TEXT_H
#define WHIT_EDITOR_TEXT_H

#include "base/mem.h"

typedef struct whit_span {
    const uint8_t *data;
    uint64_t size_bytes;
} whit_span;

/* A range of byte offsets; `end` is exclusive. */
typedef struct whit_range {
    uint64_t begin, end;
} whit_range;

typedef struct whit_text whit_text;
typedef struct whit_snapshot {
    struct whit_text_node *root;
    uint64_t size_bytes;
} whit_snapshot;

/* Opens an empty text. The caller owns *text and closes it with whit_text_close(). */
whit_status whit_text_open(whit_text **text, whit_error *error);
void whit_text_close(whit_text *text);

/* Appends bytes without copying them; they must stay valid as long as the text is open. Used for the original content
 * of a file. Their lines are counted later (whit_text_count). */
whit_status whit_text_adopt(whit_text *text, const uint8_t *data, uint64_t size_bytes, whit_error *error);

/* Replaces the bytes [offset, offset + n_remove) by a copy of `data`. On failure the text is unchanged. *kept (may be
 * NULL) gets the address of the copy, which is valid as long as the text is open. */
whit_status whit_text_replace(whit_text *text, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                              const uint8_t **kept, whit_error *error);
/* Like whit_text_replace(), but inserts pieces without copying them. Their bytes must be those of this text, or bytes
 * that stay valid as whit_text_adopt() requires. */
whit_status whit_text_splice(whit_text *text, uint64_t offset, uint64_t n_remove, const whit_span *spans,
                             size_t n_spans, whit_error *error);

uint64_t whit_text_size(const whit_text *text);
/* Returns contiguous bytes that begin at `offset`; empty at the end of the text. */
whit_span whit_text_at(const whit_text *text, uint64_t offset);
/* Returns contiguous bytes that end at `offset`; empty at the beginning of the text. */
whit_span whit_text_before(const whit_text *text, uint64_t offset);
/* Copies up to n bytes from `offset` on to `data`. Returns their number, which is smaller at the end of the text. */
size_t whit_text_read(const whit_text *text, uint64_t offset, void *data, size_t n);
/* Returns the byte at `offset`, or -1 at the end of the text. */
int whit_text_byte(const whit_text *text, uint64_t offset);

/* Counts lines that are not counted yet, from the beginning, in about budget_bytes of text. Returns false once all are
 * counted. So a large file can be shown first and counted in slices. `drop` (may be NULL) is called with the bytes that
 * were read, so that mapped pages can be released. */
bool whit_text_count(whit_text *text, uint64_t budget_bytes, void (*drop)(void *user, whit_span span), void *user);
bool whit_text_is_counted(const whit_text *text);
/* Return the number of line feeds before `offset` and in the whole text; UINT64_MAX if they are not counted yet. */
uint64_t whit_text_line_at(const whit_text *text, uint64_t offset);
uint64_t whit_text_n_lines(const whit_text *text);
/* Returns the offset at which line `line` (from 0) begins; the size of the text if there is no such line; UINT64_MAX if
 * lines up to there are not counted yet. */
uint64_t whit_text_line_start(const whit_text *text, uint64_t line);
/* Return the beginning of the line that contains `offset`, and its end, which is its line feed or the end of the
 * text. */
uint64_t whit_text_line_begin(const whit_text *text, uint64_t offset);
uint64_t whit_text_line_end(const whit_text *text, uint64_t offset);

/* Returns a snapshot of the current text. It must be released before the text is closed. */
whit_snapshot whit_text_snapshot(const whit_text *text);
void whit_snapshot_release(whit_text *text, whit_snapshot *snapshot);
whit_span whit_snapshot_at(const whit_snapshot *snapshot, uint64_t offset);
/* Sets the text to a snapshot's content. The caller still owns the snapshot. */
void whit_text_restore(whit_text *text, const whit_snapshot *snapshot);

#endif
