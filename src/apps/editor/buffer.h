/* SPDX-License-Identifier: MIT
 * Holds a file that is edited: its text, its undo history, its journal (a file of edits that are not saved yet), and
 * the changes that other programs make to the file. */
#ifndef WHIT_EDITOR_BUFFER_H
#define WHIT_EDITOR_BUFFER_H

#include "editor/undo.h"
#include "editor/journal.h"

#define WHIT_BUFFER_WATCHERS 8

/* tells the content of a file's journal when the file was opened */
typedef enum whit_found {
    WHIT_FOUND_NOTHING,
    WHIT_FOUND_HISTORY, /* undo history of earlier runs, which is in use */
    WHIT_FOUND_UNSAVED, /* text that was not saved, for whit_buffer_recover or whit_buffer_forget */
    WHIT_FOUND_LOST,    /* edits of a large file that was changed since, so that they cannot be applied */
    WHIT_FOUND_BUSY,    /* another editor has the file open, so no journal is written */
    WHIT_FOUND_PARTIAL, /* a save in place was interrupted; the whole text is in the spare copy, offered as unsaved */
} whit_found;

typedef struct whit_buffer {
    char *path;  /* absolute; NULL for text without a file */
    char *name;  /* name as the user gave it */
    char *spare; /* path of the copy made before a save in place; NULL without a journal */
    whit_text *text;
    whit_undo *history;
    whit_file file;
    whit_journal journal;
    whit_found found;
    uint8_t *base;                 /* copy of the text with which the journal begins */
    struct whit_buffer *recovered; /* unsaved text of an earlier run, about which the user decides */
    uint32_t saved_state;
    uint64_t version; /* grows with every change */
    bool read_only;
    bool never_saved;  /* the text differs from the file, whatever the state says */
    bool plain;        /* undo is journalled as edits, since the journal does not reach back far enough */
    bool held;         /* whit_buffer_seal has no effect, so later edits join the same step of undo */
    bool keep_journal; /* the user does not decide about closing, so unsaved text stays for the next run */
    struct {
        whit_undo_fn *change;
        void *user;
    } watchers[WHIT_BUFFER_WATCHERS];
} whit_buffer;

/* Returns the absolute path of a name, whether there is such a file or not. The caller owns the path; NULL means that
 * memory ran out. */
char *whit_buffer_full_path(const char *path);
/* Opens a file, or an empty text for a file that does not exist yet; with path NULL the text has no file. `folder` is
 * the folder of journals (NULL: no journal is kept). The caller owns *buffer. */
whit_status whit_buffer_open(const char *path, const char *folder, whit_buffer **buffer, whit_error *error);
void whit_buffer_close(whit_buffer *buffer);
/* Returns whether the buffer has a path where no file has been written or read yet. */
bool whit_buffer_is_new(const whit_buffer *buffer);
/* Saves under another name, over a file that exists; from then on the text belongs to `path`. After a failure nothing
 * has changed. */
whit_status whit_buffer_save_as(whit_buffer *buffer, const char *path, const char *folder, whit_error *error);

/* Writes the text to another file, replacing an existing one, and changes nothing else. `folder` is the folder of
 * journals. */
whit_status whit_buffer_save_copy(whit_buffer *buffer, const char *path, const char *folder, whit_error *error);

/* Edits the text. Edit, undo, redo, save and reload are refused while `found` waits for an answer, because the journal
 * could not hold both texts. */
whit_status whit_buffer_edit(whit_buffer *buffer, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                             whit_error *error);
bool whit_buffer_undo(whit_buffer *buffer, whit_range *changed, whit_error *error);
bool whit_buffer_redo(whit_buffer *buffer, whit_range *changed, whit_error *error);
bool whit_buffer_next_branch(whit_buffer *buffer);
void whit_buffer_seal(whit_buffer *buffer);
bool whit_buffer_is_modified(const whit_buffer *buffer);
/* Registers a function that is called after every change; returns false if there are WHIT_BUFFER_WATCHERS already. */
bool whit_buffer_watch(whit_buffer *buffer, whit_undo_fn *change, void *user);

/* Returns whether another program has changed, replaced or removed the file since it was read or saved. */
bool whit_buffer_is_conflicting(const whit_buffer *buffer);
/* Saves the text. If the file is conflicting, saving is refused with WHIT_ERROR_ARGUMENT, unless `force` is set. */
whit_status whit_buffer_save(whit_buffer *buffer, bool force, whit_error *error);
/* Reads the file again; unsaved changes and the undo history are discarded. */
whit_status whit_buffer_reload(whit_buffer *buffer, whit_error *error);
/* Reads the file again, and replaces the lines that differ as one step of undo; of a large file, unsaved changes and
 * the undo history are discarded. */
whit_status whit_buffer_take(whit_buffer *buffer, whit_error *error);
/* Replaces the differing lines so that the text is that of a file with the content `data`, as one step of undo. */
whit_status whit_buffer_become(whit_buffer *buffer, const char *data, size_t n_bytes, whit_error *error);
/* Marks the text as saved, for a text without a file that need not be saved. */
void whit_buffer_mark_saved(whit_buffer *buffer);
/* Writes the journal; the caller does this when no key is waiting. */
whit_status whit_buffer_flush(whit_buffer *buffer, whit_error *error);

/* Keeps a journal for text without a file. With `offer`, a text that a killed run has left is offered like that of a
 * file. On failure there is no journal. */
whit_status whit_buffer_keep_nameless(whit_buffer *buffer, const char *folder, bool offer, whit_error *error);

/* These functions decide about the unsaved text of an earlier run: it replaces the file's text, with its undo history;
 * or it is deleted; or it stays for another time, and until then the file can only be read, and text without a file
 * gets another journal. */
void whit_buffer_recover(whit_buffer *buffer);
void whit_buffer_forget(whit_buffer *buffer);
whit_status whit_buffer_later(whit_buffer *buffer, const char *folder, whit_error *error);

#endif
