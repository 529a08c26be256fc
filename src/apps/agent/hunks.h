/* SPDX-License-Identifier: MIT
 * Staged changes as hunks that a person approves one by one. */
#ifndef WHIT_AGENT_HUNKS_H
#define WHIT_AGENT_HUNKS_H

#include "agent/changes.h"

/* One hunk; the list owns its texts. */
typedef struct whit_hunk {
    const char *path;
    const char *reason; /* reason why the file always needs approval, or NULL */
    const char
        *text; /* its lines of the diff as whit_change_show has them; the first of a file begins with the names */
    size_t n_bytes;
} whit_hunk;

#define WHIT_TAKEN_EDIT 2 /* value of the first byte of the answer: the person edits the changes, and is asked again */

/* Zero-initialise for an empty list. */
typedef struct whit_hunks {
    whit_hunk *list;
    size_t n;
    whit_buf texts, shown, spans, counts; /* diffs; the same, shown; whit_diff_hunk[]; size_t[]: hunks of each change */
} whit_hunks;

/* Appends a change as it is shown to a person for approval: a unified diff in which all bytes are distinguishable
 * (whit_plain_show). Every display of a change uses this function or hunks. */
whit_status whit_change_show(const whit_change *change, whit_buf *out, whit_error *error);

/* Makes the hunks of normalised changes (whit_changes_settle), in their order. A created or deleted file is one
 * hunk. */
whit_status whit_hunks_make(whit_hunks *hunks, const char *project, const whit_changes *staged, whit_error *error);
/* Reduces `staged` to the approved hunks (one byte per hunk): files without an approved hunk are dropped, others
 * become the old text with the approved hunks applied. */
whit_status whit_hunks_keep(const whit_hunks *hunks, const uint8_t *taken, whit_changes *staged, whit_error *error);
void whit_hunks_free(whit_hunks *hunks);

#endif
