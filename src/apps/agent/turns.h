/* SPDX-License-Identifier: MIT
 * The journal of an agent's turns: the content of every file before and after each turn, so that any turn can be
 * undone, also after the program was killed during one.
 *
 * The journal is a chain of .ndf frames (type JOURNAL), linked by hashes, each with its commit record, in the user's
 * state folder, not in the project. Before a turn writes its first file, a frame with both contents of every file is
 * written and flushed; another frame ends the turn. A turn without an end frame is rolled back when the journal is
 * next opened. Undo never overwrites a file that has changed since the turn: it names the file and stops. */
#ifndef WHIT_AGENT_TURNS_H
#define WHIT_AGENT_TURNS_H

#include "agent/project.h"
#include "base/mem.h"

#define WHIT_REASON_BYTES 800 /* room for the reasons why a person must be asked */

/* Change of one file in a turn; the caller owns the texts. */
typedef struct whit_change {
    const char *path; /* path relative to the project, with '/' between its parts */
    bool was, is;     /* whether the file exists before and after the turn */
    /* the file is open in an editor and not saved, and its open text is changed; never set in a turn of the journal */
    bool open;
    uint32_t mode; /* permission bits before the turn (0: not known), which the turn keeps */
    /* in a turn of the journal: how many of the path's innermost folders the turn created; undo removes them if they
     * are empty */
    uint32_t n_folders;
    /* the file has other hard links, as a person was told: their text changes, too. Without it such a file is not
     * overwritten. Set by whit_light_mark() and kept in the journal. */
    bool has_links;
    const char *before, *after;
    size_t before_bytes, after_bytes;
    bool is_hidden; /* the file was not to be shown (whit_project_hides) when it was read */
    /* place of the file when the change was shown (whit_project_place), set by whit_light_mark(); 0: not known */
    uint64_t place;
    /* reasons why a person must be asked, set by whit_light_mark(); "": no reason */
    char reason[WHIT_REASON_BYTES];
} whit_change;

typedef enum whit_turn_kind { WHIT_TURN_WRITE = 1, WHIT_TURN_UNDO = 2, WHIT_TURN_REDO = 3 } whit_turn_kind;

typedef struct whit_turn {
    uint32_t number; /* number of the turn, counted from 1 */
    whit_turn_kind kind;
    uint32_t of; /* for an undo or redo, the number of the turn that it undoes or redoes */
    bool undone; /* this turn is currently undone */
    int64_t time_s;
    char note[120]; /* beginning of the task's text, shown in the list of turns */
    uint32_t n_changes;
    /* total size of the texts before and after; for a turn read from the journal's file, the size of its frame's
     * payload, which for an undo or redo contains no texts */
    size_t n_bytes;
} whit_turn;

typedef struct whit_turns whit_turns;

/* Messages about a turn that was rolled back, and about one that will be, with its number. */
#define WHIT_TURNS_RECOVERED   "turn %u had been interrupted; its files are as they were before it"
#define WHIT_TURNS_INTERRUPTED "turn %u was interrupted; the next call that may write takes it back first"

/* Opens and locks the journal of a project; creates it if it does not exist. If the last turn was interrupted, rolls it
 * back and sets *recovered to its number, otherwise to 0. `state_dir` NULL means $XDG_STATE_HOME/whit, or
 * $HOME/.local/state/whit. Errors: io, format (a damaged journal), limit (another agent has the lock). */
whit_status whit_turns_open(const char *project, const char *state_dir, whit_turns **journal, uint32_t *recovered,
                            whit_error *error);
void whit_turns_close(whit_turns *journal);
/* Rolls an interrupted turn back, before a project is looked at, and returns its number; 0 if no turn was interrupted
 * or the journal cannot be opened. `project` has no links. */
uint32_t whit_turns_recover(const char *project, const char *state_dir);

typedef void whit_change_fn(void *user, const whit_change *change);
/* Opens the journal to read it only: nothing is created or written, and an interrupted turn stays as it is. A journal
 * that does not exist has no turns. Waits until no other agent writes. Errors: io, format, memory. */
whit_status whit_turns_look(const char *project, const char *state_dir, whit_turns **journal, whit_error *error);
/* Returns the interrupted turn of a journal that whit_turns_look() has opened; NULL: no turn was interrupted. */
const whit_turn *whit_turns_interrupted(const whit_turns *journal);
/* Calls on_change for each change by which whit_turns_open() would roll this turn back. Errors: io, format. */
whit_status whit_turns_show_interrupted(const whit_turns *journal, whit_change_fn *on_change, void *user,
                                        whit_error *error);
/* Returns the number of a project's interrupted turn and writes nothing; 0 if no turn was interrupted or the journal
 * cannot be read. */
uint32_t whit_turns_find_interrupted(const char *project, const char *state_dir);

uint32_t whit_turns_count(const whit_turns *journal);
const whit_turn *whit_turns_at(const whit_turns *journal, uint32_t i); /* i < whit_turns_count(), oldest first */

/* Writes a turn: its frame to the journal, then the files, then the end frame. Fails with WHIT_ERROR_ARGUMENT, before
 * anything is written, if a file no longer equals `before`, or if opening the journal has rolled a turn back, which the
 * caller has not seen. On any failure the files keep or get back their old contents; if restoring them fails, too
 * (WHIT_ERROR_IO), the next whit_turns_open() rolls the turn back. */
whit_status whit_turns_write(whit_turns *journal, const whit_change *changes, size_t n, const char *note,
                             whit_error *error);
/* Returns the reason why the turn that `journal` wrote last was not committed under refs/whit. NULL: it was committed,
 * no file of it could be, or there is no turn, no repository or no libgit2. */
const whit_error *whit_turns_commit_error(const whit_turns *journal);
/* Undo a turn, or redo an undone turn, as a new turn. With *number 0 the latest turn that can be undone, or the turn
 * that was undone last, is chosen; *number gets its number. With `preview` nothing is written. on_change is called for
 * each file. */
whit_status whit_turns_undo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error);
whit_status whit_turns_redo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error);

#endif
