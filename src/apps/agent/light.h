/* SPDX-License-Identifier: MIT
 * Decides which changes an agent may make without approval, and asks on the terminal about the others. */
#ifndef WHIT_AGENT_LIGHT_H
#define WHIT_AGENT_LIGHT_H

#include "agent/hunks.h"
#include "base/typed.h"

/* Writes all reasons why a person must always be asked about a change, whatever permissions are set, to `room`, with
 * ", and " between two of them. Returns `room`, or NULL if there is no reason. The path is examined both as written and
 * with links followed. `set`: changes that are made together with this one, or NULL. */
const char *whit_light_red(const char *project, const whit_changes *set, const whit_change *change,
                           char room[WHIT_REASON_BYTES]);
/* Sets `place` of each change, and `reason` of each change that always needs approval. Returns the first such change,
 * or NULL. */
const whit_change *whit_light_mark(const char *project, const whit_changes *set);
#define WHIT_LIGHT_REASONS_BYTES 2048
/* Writes the reasons that whit_light_mark() has set, each after the name of its file, for a question; reasons that do
 * not fit are only counted. Returns whether there is any. */
bool whit_light_reasons(const whit_changes *set, char text[WHIT_LIGHT_REASONS_BYTES]);
/* Returns a change whose path now leads to another place, or that has a reason that whit_light_mark() did not set, or
 * NULL: while a person was reading, a folder may have been replaced by a link, or the file may have got another hard
 * link. If the change had a reason, its text is not examined again: the person may have left out the hunk of that
 * reason, and the rest may have another one. */
const whit_change *whit_light_find_new(const char *project, const whit_changes *set);
/* Returns whether a model must not read the path, as written or with links followed: version control's own files, keys
 * and secrets, and this program's journals, caches and scratch copies and the user's agent.json. */
bool whit_light_secret(const char *project, const char *path);
/* Returns the same for a file by its absolute path, in whatever project it lies: each folder above it may be one whose
 * .env file is a link to it. */
bool whit_light_secret_file(const char *path);
/* Resolves links in the nearest existing parent of a path, and appends the rest of the path. `real` gets the whole
 * path. Returns the part below the project, or "" if the path lies outside it or is too long. */
const char *whit_light_real(const char *project, const char *path, char real[PATH_MAX]);
/* Returns whether a change's texts must not be shown: for its file's path now, or where the file was read. */
bool whit_light_hides(const char *project, const whit_change *change);
/* Returns whether following links, including a link at the file itself, leads the path out of the project. */
bool whit_light_leaves(const char *project, const char *path);

/* Returns whether there is a terminal at which a person can be asked. */
bool whit_light_has_terminal(void);
/* Calls whit_typed_ask() on the terminal where questions are asked. Returns -1 also if there is no terminal. */
ssize_t whit_light_read_line(const char *question, size_t n_question, const char *mark, char *line, size_t room);
/* Writes a text that is safe for a terminal (whit_change_show) to the terminal where questions are asked. Returns false
 * if not all of it could be written. */
bool whit_light_tell(const char *text, size_t n);
typedef enum whit_light_answer {
    WHIT_LIGHT_NO, /* the person refuses, also with an empty line */
    WHIT_LIGHT_YES,
    WHIT_LIGHT_HUNKS, /* the person wants a question about each hunk */
    WHIT_LIGHT_EDIT,  /* the person wants to edit the proposal and be asked again */
    WHIT_LIGHT_GONE,  /* there is no answer: no terminal, the end of its input, or Ctrl-C */
} whit_light_answer;

/* Asks on the terminal whether files may be written or an action may run; without a terminal the answer is no. n_files
 * is the number of files, or 0 for an action that `reason` describes; `reason` may be NULL if n_files > 0. Words after
 * a refusal are appended to `why` (may be NULL). */
bool whit_light_agreed(const char *reason, size_t n_files, whit_buf *why);
/* Asks about all hunks at once, or about each hunk if the answer is "h": `show` then prints the hunk, and if it returns
 * false, or the person does not answer, no hunk is taken. Sets taken[i], which must be 0 before, to 1 for each hunk
 * that is agreed to; with may_edit, taken[0] may become WHIT_TAKEN_EDIT. Words after a refusal are appended to `why`
 * (may be NULL). */
void whit_light_choose(const whit_hunks *hunks, bool (*show)(void *user, const whit_hunk *hunk), void *user,
                       bool may_edit, uint8_t *taken, whit_buf *why);

#endif
