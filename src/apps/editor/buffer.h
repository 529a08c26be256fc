/* SPDX-License-Identifier: MIT
 * Holds a file that is edited: its text, its undo history, its journal (a file of edits that are not saved yet), and
 * the changes that other programs make to the file. */
#ifndef WHIT_EDITOR_BUFFER_H
#define WHIT_EDITOR_BUFFER_H

#include "editor/undo.h"
#include "editor/journal.h"

#define WHIT_BUFFER_WATCHERS 8

/* State of the text that an earlier run left in a file's journal or spare file. It becomes WHIT_FOUND_NOTHING when the
 * user has decided about that text. */
typedef enum whit_found {
    WHIT_FOUND_NOTHING,
    WHIT_FOUND_HISTORY, /* undo history of earlier runs, which the buffer now uses */
    /* unsaved text; the user decides by whit_buffer_recover(), whit_buffer_forget() or whit_buffer_later() */
    WHIT_FOUND_UNSAVED,
    WHIT_FOUND_LOST, /* unsaved edits that cannot be applied, since the large file has changed */
    WHIT_FOUND_BUSY, /* the journal was not read: another editor has the file open, so no journal is written */
    /* a save in place was interrupted; the complete text is in the spare file and is offered as unsaved */
    WHIT_FOUND_PARTIAL,
} whit_found;

typedef struct whit_buffer {
    char *path;  /* absolute path, or `name` if its folder does not exist; NULL for text without a file */
    char *name;  /* name as the user gave it; of a text without a file a title such as "unnamed" */
    char *spare; /* spare file: path of the copy that is written before a save in place; NULL without a journal */
    whit_text *text;
    whit_undo *history;
    whit_file file;
    whit_journal journal;
    whit_found found;
    /* copy of the journal's base text, to which pieces of `text` refer; NULL if they refer to `file` */
    uint8_t *base;
    struct whit_buffer *recovered; /* unsaved text of an earlier run, until the user has decided about it */
    uint32_t saved_state;
    uint64_t version; /* increases with every change */
    bool read_only;
    bool never_saved; /* the text counts as modified, whatever saved_state is */
    /* undo and redo are journalled as edits: the journal lacks earlier steps, or the bytes of its base */
    bool plain;
    bool held;         /* whit_buffer_seal() has no effect, so that later edits join the same step of undo */
    bool keep_journal; /* closing without the user's decision: unsaved text stays in the journal for the next run */
    struct {
        whit_undo_fn *change;
        void *user;
    } watchers[WHIT_BUFFER_WATCHERS];
} whit_buffer;

/* Returns the absolute path of a name; the file need not exist. If its folder does not exist, either, returns a copy of
 * the name. The caller owns the path; NULL means that memory ran out or that the path is too long. */
char *whit_buffer_full_path(const char *path);
/* Opens a file. A file that does not exist yet gives an empty text; with `path` NULL the text has no file. `folder` is
 * the folder of journals (NULL: no journal is kept; nor is one of a read-only file). If only the journal cannot be
 * opened, returns WHIT_OK and sets error->status. The caller owns *buffer. */
whit_status whit_buffer_open(const char *path, const char *folder, whit_buffer **buffer, whit_error *error);
void whit_buffer_close(whit_buffer *buffer);
/* Returns whether the buffer has a path at which no file existed when it was last read, and none was saved since. */
bool whit_buffer_is_new(const whit_buffer *buffer);
/* Saves under another name; from then on the buffer belongs to `path`. `there` is the state of that file which may be
 * replaced; NULL: any state. If writing fails, the buffer keeps its path and its journal. */
whit_status whit_buffer_save_as(whit_buffer *buffer, const char *path, const char *folder,
                                const whit_file_identity *there, whit_error *error);

/* Writes the text to another file, but not to the buffer's own; the buffer keeps its path and state. `folder` is the
 * folder of journals, `there` as for whit_buffer_save_as. */
whit_status whit_buffer_save_copy(whit_buffer *buffer, const char *path, const char *folder,
                                  const whit_file_identity *there, whit_error *error);

/* Edits the text: removes n_remove bytes at `offset`, then inserts `data`. Edit, undo, redo, reload and all ways to
 * save are refused while `found` is WHIT_FOUND_UNSAVED, WHIT_FOUND_PARTIAL or WHIT_FOUND_LOST, because the journal
 * cannot hold both texts. Edit, undo and redo are refused if the buffer is read-only, too. */
whit_status whit_buffer_edit(whit_buffer *buffer, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                             whit_error *error);
bool whit_buffer_undo(whit_buffer *buffer, whit_range *changed, whit_error *error);
bool whit_buffer_redo(whit_buffer *buffer, whit_range *changed, whit_error *error);
bool whit_buffer_next_branch(whit_buffer *buffer);
void whit_buffer_seal(whit_buffer *buffer);
bool whit_buffer_is_modified(const whit_buffer *buffer);
/* Registers a function that is called after every change. Returns false if WHIT_BUFFER_WATCHERS are registered
 * already. */
bool whit_buffer_watch(whit_buffer *buffer, whit_undo_fn *change, void *user);

/* Returns whether another program has created, changed, replaced, truncated or removed the file since it was read or
 * saved. */
bool whit_buffer_is_conflicting(const whit_buffer *buffer);
/* Saves the text. If another program has changed the file, saving is refused with WHIT_ERROR_ARGUMENT, unless `force`
 * is set. */
whit_status whit_buffer_save(whit_buffer *buffer, bool force, whit_error *error);
/* Saves the text over a file in the state `there`, to whose replacement the person has agreed; NULL: any state. */
whit_status whit_buffer_replace(whit_buffer *buffer, const whit_file_identity *there, whit_error *error);
/* Reads the file again; discards unsaved changes and the undo history. */
whit_status whit_buffer_reload(whit_buffer *buffer, whit_error *error);
/* Reads the file again and replaces the lines from the first to the last difference, as one step of undo. For a mapped
 * file or a read-only buffer it discards unsaved changes and the undo history instead. */
whit_status whit_buffer_take(whit_buffer *buffer, whit_error *error);
/* Replaces the lines from the first to the last difference, as one step of undo, so that the text equals a file's
 * content `data`. */
whit_status whit_buffer_become(whit_buffer *buffer, const char *data, size_t n_bytes, whit_error *error);
/* Marks a text without a file as not needing to be saved. */
void whit_buffer_mark_saved(whit_buffer *buffer);
/* Writes pending records to the journal. The caller does this when no key is waiting. */
whit_status whit_buffer_flush(whit_buffer *buffer, whit_error *error);

/* Opens a journal for text without a file. With `offer`, a text that a killed run left is offered first, like unsaved
 * text of a file. On failure there is no journal. */
whit_status whit_buffer_keep_nameless(whit_buffer *buffer, const char *folder, bool offer, whit_error *error);

/* Decide about the unsaved text of an earlier run. recover: it becomes the buffer's text, with its undo history.
 * forget: it is deleted. later: it stays for another run; until then the file is read-only, or a text without a file
 * gets another journal. */
void whit_buffer_recover(whit_buffer *buffer);
void whit_buffer_forget(whit_buffer *buffer);
whit_status whit_buffer_later(whit_buffer *buffer, const char *folder, whit_error *error);

#endif
