/* SPDX-License-Identifier: MIT
 * Keeps staged changes: results of patches and whole files that are not written yet. */
#ifndef WHIT_AGENT_CHANGES_H
#define WHIT_AGENT_CHANGES_H

#include "agent/patch.h"
#include "agent/texts.h"

/* A set of staged changes; zero-initialise it for an empty set. */
typedef struct whit_changes {
    const whit_open_texts *open; /* texts open in an editor, which are used instead of the files; may be NULL */
    whit_buf changes;            /* whit_change[]; if a path has several changes, the last is valid */
    whit_buf contents;           /* whit_buf[]: storage of the changes' texts */
    whit_buf paths;              /* char *[]: storage of the changes' paths */
    whit_buf results;            /* whit_patch_result[], one for each change */
} whit_changes;

size_t whit_changes_count(const whit_changes *set);
whit_change *whit_changes_at(const whit_changes *set, size_t i);
const whit_patch_result *whit_changes_result(const whit_changes *set, size_t i);
/* Returns the staged state of a path, or NULL. */
const whit_change *whit_changes_find(const whit_changes *set, const char *path);

/* Stages all files of a patch on top of the staged changes; on an error no file is staged. `path` is the file of hunks
 * that name no file; with NULL such hunks are an error. */
whit_status whit_changes_patch(whit_changes *set, const char *project, const whit_patch *patch, const char *path,
                               whit_error *error);
/* Stages a new content (copied) for a whole file. */
whit_status whit_changes_put(whit_changes *set, const char *project, const char *path, const char *text, size_t n_bytes,
                             whit_error *error);
/* Keeps only the last change of each path, and drops changes that leave the file as it is. */
void whit_changes_settle(whit_changes *set);
/* Replaces the new content of change i. Takes ownership of `content`, also on failure, when it frees it. */
whit_status whit_changes_replace(whit_changes *set, size_t i, whit_buf *content, whit_error *error);
/* Adds a copy of a change; returns false if memory runs out. */
bool whit_changes_copy(whit_changes *set, const whit_change *change);
/* Returns whether the file contained a key before the change. A model may patch such a file, but must not read it, not
 * even after its patch: a patch could remove the first line of a private key, and the rest would not be recognised as a
 * key. */
bool whit_change_had_key(const whit_change *change);
/* Reverses a change: swaps the states (existence and text) before and after it. Clears its place and reason. */
void whit_change_turn_round(whit_change *change);
/* Removes the changes whose path is empty. */
void whit_changes_drop(whit_changes *set);
void whit_changes_free(whit_changes *set);

#endif
