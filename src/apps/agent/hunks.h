/* SPDX-License-Identifier: MIT
 * Divides staged changes, which are not written yet, into hunks that a person approves one by one. */
#ifndef WHIT_AGENT_HUNKS_H
#define WHIT_AGENT_HUNKS_H

#include "agent/changes.h"

/* Describes one hunk; the list owns its texts. */
typedef struct whit_hunk {
    const char *path;
    const char *reason; /* reason why the file always needs approval, or NULL */
    /* lines of the hunk in the diff, as whit_change_show shows them; a file's first hunk begins with the names */
    const char *text;
    size_t n_bytes;
} whit_hunk;

/* value of the first byte of `taken` (whit_light_choose): the person edits the changes, and is then asked again */
#define WHIT_TAKEN_EDIT 2

/* Holds a list of hunks; zero-initialise it for an empty list. */
typedef struct whit_hunks {
    whit_hunk *list;
    size_t n;
    /* texts: the diffs; shown: the diffs as a person sees them; spans: whit_diff_hunk[]; counts: size_t[], number of
     * hunks of each change */
    whit_buf texts, shown, spans, counts;
} whit_hunks;

/* Appends a change as it is shown to a person for approval: a unified diff in which all bytes are distinguishable
 * (whit_plain_show). Every display of a change uses this function or hunks. */
whit_status whit_change_show(const whit_change *change, whit_buf *out, whit_error *error);

/* Makes the hunks of normalised changes (whit_changes_settle), in their order. A created or deleted file is one
 * hunk. */
whit_status whit_hunks_make(whit_hunks *hunks, const char *project, const whit_changes *staged, whit_error *error);
/* Reduces `staged` to the approved hunks; `taken` has one byte per hunk. Files without an approved hunk are dropped;
 * every other file becomes the old text with the approved hunks applied. */
whit_status whit_hunks_keep(const whit_hunks *hunks, const uint8_t *taken, whit_changes *staged, whit_error *error);
void whit_hunks_free(whit_hunks *hunks);

#endif
