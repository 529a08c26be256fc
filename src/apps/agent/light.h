/* SPDX-License-Identifier: MIT
 * Decides which changes an agent may make without a question, and asks the question about the others. */
#ifndef WHIT_AGENT_LIGHT_H
#define WHIT_AGENT_LIGHT_H

#include "agent/hunks.h"
#include "base/typed.h"

/* Returns the reason why a person must be asked about a change whatever is allowed, or NULL. Folders are examined both
 * as written and with links followed. */
const char *whit_light_red(const char *project, const whit_change *change);
/* Sets each change's place, and the reason of each that always needs approval; returns the first such change, or
 * NULL. */
const whit_change *whit_light_mark(const char *project, const whit_changes *set);
/* Returns a change that got another place or another reason since it was marked, or NULL: while a person was reading, a
 * folder may have been replaced by a link, or a file may have got another name. A reason in the text that follows
 * another one, whose hunk the person left out, does not count. */
const whit_change *whit_light_find_new(const char *project, const whit_changes *set);
/* Returns whether the path's content must be kept from a model: version control's own files, keys and secrets. */
bool whit_light_secret(const char *project, const char *path);
/* Returns whether the path leads out of the project after links are followed, including a link at the file itself. */
bool whit_light_leaves(const char *project, const char *path);

/* Returns whether there is a terminal at which a person can be asked. */
bool whit_light_has_terminal(void);
/* Calls whit_typed_ask at the terminal where questions are asked; returns -1 also if there is no terminal. */
ssize_t whit_light_read_line(const char *question, size_t n_question, const char *mark, char *line, size_t room);
/* Writes a text that is safe for a terminal (whit_change_show) to the terminal where questions are asked. Returns false
 * if a part of it could not be written. */
bool whit_light_tell(const char *text, size_t n);
typedef enum whit_light_answer {
    WHIT_LIGHT_NO, /* the person answers no, or with an empty line */
    WHIT_LIGHT_YES,
    WHIT_LIGHT_HUNKS, /* the person wants to be asked about each hunk */
    WHIT_LIGHT_EDIT,  /* the person edits the proposal and is asked again */
    WHIT_LIGHT_GONE,  /* no answer comes: there is no terminal, its input ends, or Ctrl-C is typed */
} whit_light_answer;

/* Asks on the terminal; without a terminal the answer is no. `reason` may be NULL if files are to be written; n_files
 * is 0 for another action, which `reason` describes. Words after a refusal are appended to `why` (may be NULL). */
bool whit_light_agreed(const char *reason, size_t n_files, whit_buf *why);
/* Asks about hunks: about all of them, or about each if the answer is h; `show` then prints it, and nothing is taken if
 * `show` returns false. Sets a byte of `taken` for each hunk that is agreed to; with may_edit the first may become
 * WHIT_TAKEN_EDIT. Words after a refusal are appended to `why` (may be NULL). */
void whit_light_choose(const whit_hunks *hunks, bool (*show)(void *user, const whit_hunk *hunk), void *user,
                       bool may_edit, uint8_t *taken, whit_buf *why);

#endif
