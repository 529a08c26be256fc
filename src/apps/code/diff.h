/* SPDX-License-Identifier: MIT
 * Computes the exact difference of two texts, which is shown to users for their approval. */
#ifndef WHIT_CODE_DIFF_H
#define WHIT_CODE_DIFF_H

#include "base/mem.h"

/* Describes a hunk: bytes [old_begin, old_end) of the old text become [new_begin, new_end) of the new one. The hunk's
 * lines, together with their context, are [text_begin, text_end) of the diff. */
typedef struct whit_diff_hunk {
    size_t old_begin, old_end, new_begin, new_end, text_begin, text_end;
} whit_diff_hunk;

/* Appends a unified diff to `out` (nothing if the texts are equal), and a whit_diff_hunk for each hunk to `hunks`, so
 * that a user can approve the hunks one by one. Changes separated by at least three unchanged lines become separate
 * hunks, so the context lines of two hunks may overlap. hunks NULL: only the diff is made, and hunks are separated by
 * at least seven unchanged lines. */
whit_status whit_diff_hunks(const char *old_name, const char *old_text, size_t old_bytes, const char *new_name,
                            const char *new_text, size_t new_bytes, whit_buf *out, whit_buf *hunks, whit_error *error);
/* Appends the old text with the hunks applied for which `taken` is not 0; returns false if memory runs out. */
bool whit_diff_take(const char *old_text, size_t old_bytes, const char *new_text, const whit_diff_hunk *hunks, size_t n,
                    const uint8_t *taken, whit_buf *out);

/* Describes a run of lines that differ: the n_old lines from old_line on became the n_new lines from new_line on. Lines
 * are counted from 0. */
typedef struct whit_diff_run {
    size_t old_line, n_old, new_line, n_new;
} whit_diff_run;

/* Appends a whit_diff_run for each run of lines that differ, in order. In texts with very many changes everything
 * between the common beginning and the common end is one run. Returns false if memory runs out. */
bool whit_diff_lines(const char *old_text, size_t old_bytes, const char *new_text, size_t new_bytes, whit_buf *runs);

#endif
