/* SPDX-License-Identifier: MIT
 * The journal of an agent's turns: what every file was before and is after, so that any turn can be
 * taken back, also after a kill in the middle of one.
 *
 * A chain of .ndf frames (type JOURNAL), hash-chained, each with its commit, kept in the user's state
 * folder, not in the project. A turn is written as a frame with both contents of every file before
 * the first file is touched, and ended by another frame. A turn without its end is undone at the next
 * opening. Files that changed since are never overwritten: taking back then says which and stops. */
#ifndef WHIT_AGENT_TURNS_H
#define WHIT_AGENT_TURNS_H

#include "base/mem.h"

/* One file of a turn; the caller owns the texts. */
typedef struct whit_change {
    const char *path; /* below the project, with '/' between */
    bool was, is;     /* whether it exists before, after */
    bool open;        /* a text that is open in an editor and not saved; never set in a turn of the journal */
    uint32_t mode;    /* permission bits before (0: not set), kept after */
    const char *before, *after;
    size_t before_bytes, after_bytes;
    const char *reason; /* why a person must be asked, a constant; whit_light_mark sets it. NULL: no reason */
} whit_change;

typedef enum whit_turn_kind { WHIT_TURN_WRITE = 1, WHIT_TURN_UNDO = 2, WHIT_TURN_REDO = 3 } whit_turn_kind;

typedef struct whit_turn {
    uint32_t number; /* from 1 */
    whit_turn_kind kind;
    uint32_t of; /* the turn that this one undoes or redoes */
    bool undone; /* undone by a later turn */
    int64_t time_s;
    char note[120]; /* beginning of the task, for the list */
    uint32_t n_changes;
    size_t n_bytes; /* written */
} whit_turn;

typedef struct whit_turns whit_turns;

/* Opens the journal of a project folder and takes its lock; makes it if it does not exist. Undoes a turn that was cut
 * off; *recovered then has its number, else 0. `state_dir` NULL: $XDG_STATE_HOME/whit, or $HOME/.local/state/whit.
 * Errors: io, format (a damaged journal), limit (locked by another agent). */
whit_status whit_turns_open(const char *project, const char *state_dir, whit_turns **journal, uint32_t *recovered,
                            whit_error *error);
void whit_turns_close(whit_turns *journal);

uint32_t whit_turns_count(const whit_turns *journal);
const whit_turn *whit_turns_at(const whit_turns *journal, uint32_t i); /* i < n_turns, oldest first */

/* Writes a turn: the frame, then the files, then the end. Refuses (WHIT_ERROR_ARGUMENT) where a file
 * is not any more what `before` says; nothing is written then. On failure the tree is as before. */
whit_status whit_turns_write(whit_turns *journal, const whit_change *changes, size_t n, const char *note,
                             whit_error *error);
/* Returns why the last turn was not committed under refs/whit; NULL if it was, or if there is no repository. */
const whit_error *whit_turns_commit_error(const whit_turns *journal);
/* Undoes a turn, or redoes an undone one, as a new turn. `number` 0: the latest turn that can be undone, or the turn
 * that was undone last; *number becomes its number. With `preview` nothing is written. on_change is called for every
 * file. */
typedef void whit_change_fn(void *user, const whit_change *change);
whit_status whit_turns_undo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error);
whit_status whit_turns_redo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error);

/* Reads a whole file below the project as a change's `before`: content into `content`, *exists, *mode. Links out of the
 * project, devices and folders are refused. */
whit_status whit_project_read(const char *project, const char *path, whit_buf *content, bool *exists, uint32_t *mode,
                              whit_error *error);
/* Checks that the path is plain and that its folder, with links followed, is in the project. */
whit_status whit_project_holds(const char *project, const char *path, whit_error *error);

#endif
