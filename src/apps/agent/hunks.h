/* SPDX-License-Identifier: MIT
 * Divides staged changes into hunks, which a person approves one by one. */
#ifndef WHIT_AGENT_HUNKS_H
#define WHIT_AGENT_HUNKS_H

#include "agent/changes.h"

/* One hunk of a change; the list owns its strings. */
typedef struct whit_hunk {
    const char *path;
    const char *reason; /* reason why the file always needs approval, or NULL */
    /* lines of the hunk in the diff, as whit_change_show() writes them; a file's first hunk begins with the file
     * names */
    const char *text;
    size_t n_bytes;
} whit_hunk;

/* value of taken[0] (whit_light_choose) if the person wants to edit the changes and be asked again */
#define WHIT_TAKEN_EDIT 2

/* A list of hunks; zero-initialise it for an empty list. */
typedef struct whit_hunks {
    whit_hunk *list;
    size_t n;
    /* texts: the diffs; shown: the diffs in the form for display; spans: whit_diff_hunk[]; counts: size_t[], number of
     * hunks of each change */
    whit_buf texts, shown, spans, counts;
    char (*reasons)[WHIT_REASON_BYTES]; /* storage for the changes' reasons that are no constant texts */
} whit_hunks;

/* Appends a change as a person sees it for approval: a unified diff in which no two different texts look the same
 * (whit_plain_show). Every display of a change uses this function or whit_hunks_make(). */
whit_status whit_change_show(const whit_change *change, whit_buf *out, whit_error *error);

/* Makes the hunks of changes, in their order; whit_changes_settle() must have been called. A created or deleted file is
 * one hunk. */
whit_status whit_hunks_make(whit_hunks *hunks, const char *project, const whit_changes *staged, whit_error *error);
/* Reduces `staged` to the approved hunks; taken[i] is nonzero if hunk i is approved. Drops files without an approved
 * hunk; every other file becomes its old text with the approved hunks applied. */
whit_status whit_hunks_keep(const whit_hunks *hunks, const uint8_t *taken, whit_changes *staged, whit_error *error);
void whit_hunks_free(whit_hunks *hunks);

#endif
