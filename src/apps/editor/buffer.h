/* SPDX-License-Identifier: MIT
 * A file being edited: its text, undo history, journal, and the changes that other programs make to the file. */
#ifndef WHIT_EDITOR_BUFFER_H
#define WHIT_EDITOR_BUFFER_H

#include "editor/undo.h"
#include "editor/journal.h"

#define WHIT_BUFFER_WATCHERS 8

/* Content of a file's journal when the file was opened. */
typedef enum whit_found {
    WHIT_FOUND_NOTHING,
    WHIT_FOUND_HISTORY, /* the undo of earlier runs; it is in use */
    WHIT_FOUND_UNSAVED, /* text that was not saved: whit_buffer_recover, or whit_buffer_forget */
    WHIT_FOUND_LOST,    /* edits of a large file that was changed since: they cannot be applied */
    WHIT_FOUND_BUSY,    /* another editor has the file open: no journal is written */
    WHIT_FOUND_PARTIAL, /* a save in place was interrupted; the whole text is in the spare copy, offered as unsaved */
} whit_found;

typedef struct whit_buffer {
    char *path;  /* absolute; NULL for text without a file */
    char *name;  /* the name as the user gave it */
    char *spare; /* path of the copy made before a save in place; NULL without a journal */
    whit_text *text;
    whit_undo *history;
    whit_file file;
    whit_journal journal;
    whit_found found;
    uint8_t *base;                 /* copy of the text with which the journal begins */
    struct whit_buffer *recovered; /* unsaved text of an earlier run; the user decides */
    uint32_t saved_state;
    uint64_t version; /* grows with every change */
    bool read_only;
    bool never_saved;  /* the text is not what is on disk, whatever the state says */
    bool plain;        /* undo is journalled as edits: the journal does not reach back far enough */
    bool held;         /* whit_buffer_seal has no effect: later edits join the same step of undo */
    bool keep_journal; /* closing is not the user's decision: unsaved text stays for the next run */
    struct {
        whit_undo_fn *change;
        void *user;
    } watchers[WHIT_BUFFER_WATCHERS];
} whit_buffer;

/* Returns the absolute path of a name, whether there is such a file or not; the caller's, NULL without memory. */
char *whit_buffer_full_path(const char *path);
/* Opens a file, or an empty text for one that does not exist yet; path NULL: without a file.
 * `folder` is the journals' (NULL: none is kept). *buffer is the caller's. */
whit_status whit_buffer_open(const char *path, const char *folder, whit_buffer **buffer, whit_error *error);
void whit_buffer_close(whit_buffer *buffer);
/* Returns whether the buffer has a path where no file has been written or read yet. */
bool whit_buffer_is_new(const whit_buffer *buffer);
/* Saves under a name, over a file that exists; from then on the text belongs to `path`. After a failure nothing has
 * changed. */
whit_status whit_buffer_save_as(whit_buffer *buffer, const char *path, const char *folder, whit_error *error);

/* Writes the text to another file, replacing an existing one, and changes nothing else. `folder` is the folder of
 * journals. */
whit_status whit_buffer_save_copy(whit_buffer *buffer, const char *path, const char *folder, whit_error *error);

/* Edits the text. Edit, undo, redo, save and reload are refused while `found` waits for an answer: the journal could
 * not hold both texts. */
whit_status whit_buffer_edit(whit_buffer *buffer, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                             whit_error *error);
bool whit_buffer_undo(whit_buffer *buffer, whit_range *changed, whit_error *error);
bool whit_buffer_redo(whit_buffer *buffer, whit_range *changed, whit_error *error);
bool whit_buffer_next_branch(whit_buffer *buffer);
void whit_buffer_seal(whit_buffer *buffer);
bool whit_buffer_is_modified(const whit_buffer *buffer);
/* Calls `change` after every change; false if there are WHIT_BUFFER_WATCHERS already. */
bool whit_buffer_watch(whit_buffer *buffer, whit_undo_fn *change, void *user);

/* Did somebody else change, replace or remove the file since it was read or saved? */
bool whit_buffer_is_conflicting(const whit_buffer *buffer);
/* Refuses with WHIT_ERROR_ARGUMENT where it is conflicting, unless `force`. */
whit_status whit_buffer_save(whit_buffer *buffer, bool force, whit_error *error);
/* Reads the file again; unsaved changes and the undo history are discarded. */
whit_status whit_buffer_reload(whit_buffer *buffer, whit_error *error);
/* Reads the file again as one step of undo, of the lines that differ; large files as above. */
whit_status whit_buffer_take(whit_buffer *buffer, whit_error *error);
/* Replaces the differing lines so that the text is that of a file with the content `data`, as one step of undo. */
whit_status whit_buffer_become(whit_buffer *buffer, const char *data, size_t n_bytes, whit_error *error);
/* Marks the text as saved, for a text without a file that need not be saved. */
void whit_buffer_mark_saved(whit_buffer *buffer);
/* Writes the journal; call it when no key is waiting. */
whit_status whit_buffer_flush(whit_buffer *buffer, whit_error *error);

/* Keeps a journal for text without a file. `offer`: a text left by a run that was killed is offered like that of a
 * file. On failure there is no journal. */
whit_status whit_buffer_keep_nameless(whit_buffer *buffer, const char *folder, bool offer, whit_error *error);

/* The unsaved text of an earlier run takes the place of the file's, with its undo; or it is deleted; or it stays for
 * another time: the file can only be read until then, and text without a file gets another journal. */
void whit_buffer_recover(whit_buffer *buffer);
void whit_buffer_forget(whit_buffer *buffer);
whit_status whit_buffer_later(whit_buffer *buffer, const char *folder, whit_error *error);

#endif
