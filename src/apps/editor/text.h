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

/* describes the offsets where bytes start and end; the byte at `end` is not part of the range */
typedef struct whit_range {
    uint64_t begin, end;
} whit_range;

typedef struct whit_text whit_text;
typedef struct whit_snapshot {
    struct whit_text_node *root;
    uint64_t size_bytes;
} whit_snapshot;

/* Opens an empty text; the caller owns *text and closes it by whit_text_close. */
whit_status whit_text_open(whit_text **text, whit_error *error);
void whit_text_close(whit_text *text);

/* Puts bytes in by reference; the caller must keep them as long as the text is open. Their lines are counted later, see
 * whit_text_count. This is for the first content of a file. */
whit_status whit_text_adopt(whit_text *text, const uint8_t *data, uint64_t size_bytes, whit_error *error);

/* Replaces [offset, offset + n_remove) by a copy of the bytes. On failure the text is unchanged. *kept (may be NULL)
 * is the address of the copy, valid as long as the text. */
whit_status whit_text_replace(whit_text *text, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                              const uint8_t **kept, whit_error *error);
/* Does the same with pieces that the text (or the caller of whit_text_adopt) keeps. If memory runs out, the text is
 * unchanged. */
whit_status whit_text_splice(whit_text *text, uint64_t offset, uint64_t n_remove, const whit_span *spans,
                             size_t n_spans, whit_error *error);

uint64_t whit_text_size(const whit_text *text);
/* Returns the contiguous bytes from `offset` on; empty at the end of the text. */
whit_span whit_text_at(const whit_text *text, uint64_t offset);
/* Returns the contiguous bytes that end at `offset`; empty at the beginning of the text. */
whit_span whit_text_before(const whit_text *text, uint64_t offset);
/* Copies the part of [offset, offset + n) that is in the text; returns its size. */
size_t whit_text_read(const whit_text *text, uint64_t offset, void *data, size_t n);
/* Returns the byte at `offset`; -1 at the end of the text. */
int whit_text_byte(const whit_text *text, uint64_t offset);

/* Counts lines that are not counted yet, from the beginning, for about budget_bytes; returns false once all are
 * counted. A large file is painted first and counted in slices. `drop` (may be NULL) is called with the bytes that were
 * read, so that mapped pages need not stay in memory. */
bool whit_text_count(whit_text *text, uint64_t budget_bytes, void (*drop)(void *user, whit_span span), void *user);
bool whit_text_is_counted(const whit_text *text);
/* These functions return the number of line feeds before `offset`, and in all of the text; UINT64_MAX if they are not
 * counted yet. */
uint64_t whit_text_line_at(const whit_text *text, uint64_t offset);
uint64_t whit_text_n_lines(const whit_text *text);
/* Returns the offset where line `line` (from 0) begins; the size of the text for lines after the last, UINT64_MAX if
 * that is not counted yet. */
uint64_t whit_text_line_start(const whit_text *text, uint64_t line);
/* These functions return the beginning of the line that contains `offset`, and its end: its line feed or the end of the
 * text. */
uint64_t whit_text_line_begin(const whit_text *text, uint64_t offset);
uint64_t whit_text_line_end(const whit_text *text, uint64_t offset);

/* Takes a reference to the current tree. */
whit_snapshot whit_text_snapshot(const whit_text *text);
void whit_snapshot_release(whit_text *text, whit_snapshot *snapshot);
whit_span whit_snapshot_at(const whit_snapshot *snapshot, uint64_t offset);
/* Restores the text of a snapshot, which the caller still owns. */
void whit_text_restore(whit_text *text, const whit_snapshot *snapshot);

#endif
