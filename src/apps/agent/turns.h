/* SPDX-License-Identifier: MIT
 * Keeps the journal of an agent's turns: the content of every file before and after a turn, so that any turn can be
 * undone, also after the program was killed in the middle of one.
 *
 * The journal is a chain of .ndf frames (type JOURNAL), linked by hashes, each with its commit, in the user's state
 * folder, not in the project. A turn is written as a frame with both contents of every file before the first file is
 * touched, and ended by another frame. A turn without its end is undone when the journal is next opened. A file that
 * was changed since is never overwritten: undoing then names the file and stops. */
#ifndef WHIT_AGENT_TURNS_H
#define WHIT_AGENT_TURNS_H

#include "base/mem.h"

/* Describes one file of a turn; the caller owns the texts. */
typedef struct whit_change {
    const char *path; /* path below the project, with '/' between its parts */
    bool was, is;     /* whether the file exists before and after the turn */
    /* the change is to a text that is open in an editor and not saved; never set in a turn of the journal */
    bool open;
    uint32_t mode; /* permission bits before the turn (0: not set), which are kept after it */
    const char *before, *after;
    size_t before_bytes, after_bytes;
    /* place of the file when the change was shown (whit_project_place), set by whit_light_mark; 0: not known */
    uint64_t place;
    /* constant text of the reason why a person must be asked, set by whit_light_mark; NULL: no reason */
    const char *reason;
} whit_change;

typedef enum whit_turn_kind { WHIT_TURN_WRITE = 1, WHIT_TURN_UNDO = 2, WHIT_TURN_REDO = 3 } whit_turn_kind;

typedef struct whit_turn {
    uint32_t number; /* number of the turn, counted from 1 */
    whit_turn_kind kind;
    uint32_t of; /* the turn that this one undoes or redoes */
    bool undone; /* a later turn has undone this one */
    int64_t time_s;
    char note[120]; /* beginning of the task's text, for the list of turns */
    uint32_t n_changes;
    size_t n_bytes; /* bytes of both contents of the turn's files; for a turn of an earlier run, of its whole frame */
} whit_turn;

typedef struct whit_turns whit_turns;

/* Opens the journal of a project folder and takes its lock; makes the journal if it does not exist. Undoes a turn that
 * was cut off; *recovered then gets its number, otherwise 0. `state_dir` NULL means $XDG_STATE_HOME/whit, or
 * $HOME/.local/state/whit. Errors: io, format (a damaged journal), limit (another agent has the lock). */
whit_status whit_turns_open(const char *project, const char *state_dir, whit_turns **journal, uint32_t *recovered,
                            whit_error *error);
void whit_turns_close(whit_turns *journal);

uint32_t whit_turns_count(const whit_turns *journal);
const whit_turn *whit_turns_at(const whit_turns *journal, uint32_t i); /* i < n_turns, oldest first */

/* Writes a turn: the frame, then the files, then the end. Refuses (WHIT_ERROR_ARGUMENT) if a file does not equal
 * `before` any more; nothing is written then. On failure the files have their old contents. */
whit_status whit_turns_write(whit_turns *journal, const whit_change *changes, size_t n, const char *note,
                             whit_error *error);
/* Returns the reason why the last turn was not committed under refs/whit, or NULL if it was, or if there is no
 * repository. */
const whit_error *whit_turns_commit_error(const whit_turns *journal);
/* These functions undo a turn, or redo an undone one, as a new turn. With `*number` 0 that is the latest turn that can
 * be undone, or the turn that was undone last; *number becomes its number. With `preview` nothing is written. on_change
 * is called for every file. */
typedef void whit_change_fn(void *user, const whit_change *change);
whit_status whit_turns_undo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error);
whit_status whit_turns_redo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error);

/* Reads a whole file below the project as a change's `before`: its text into `content`, *exists and *mode. Links that
 * lead out of the project, devices and folders are refused. */
whit_status whit_project_read(const char *project, const char *path, whit_buf *content, bool *exists, uint32_t *mode,
                              whit_error *error);
/* Returns a digest of the place to which a path leads, with links as they are now: it differs after a folder of the
 * path was replaced by a link to another place. Returns 0 if the path cannot be used. */
uint64_t whit_project_place(const char *project, const char *path);
/* Checks that the path is plain and that its folder, with links followed, is in the project. */
whit_status whit_project_holds(const char *project, const char *path, whit_error *error);

#endif
