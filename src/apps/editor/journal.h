/* SPDX-License-Identifier: MIT
 * Keeps journals. A journal keeps the edits since a file was saved, on disk within moments, and the undo history of
 * small files from run to run. There is one journal per file, in a folder of the user.
 *
 * A journal is a base, which is the text to which the changes apply (its bytes, or for large files the identity of the
 * file), and a record per change, each followed by a checksum. Reading stops at the first incomplete record; the
 * records before it are valid. docs/use/editor.md has the layout. */
#ifndef WHIT_EDITOR_JOURNAL_H
#define WHIT_EDITOR_JOURNAL_H

#include "editor/file.h"

/* maximum size in bytes of a text that the base record contains; of a larger text it has only the file's identity */
#define WHIT_JOURNAL_BASE_BYTES (1u << 20)
/* size in bytes of the journal above which a save restarts it */
#define WHIT_JOURNAL_LIMIT_BYTES (8u << 20)

typedef enum whit_record_kind {
    WHIT_RECORD_BASE = 1,
    WHIT_RECORD_EDIT, /* an edit that belongs to the current step of undo */
    WHIT_RECORD_STEP, /* an edit that begins a step of undo */
    WHIT_RECORD_UNDO,
    WHIT_RECORD_REDO,
    WHIT_RECORD_BRANCH, /* selection of another branch for the next redo */
    WHIT_RECORD_SAVED,
} whit_record_kind;

typedef struct whit_record {
    whit_record_kind kind;
    uint64_t offset, n_removed; /* edit: offset of the change, and number of bytes removed there */
    /* edit: the inserted bytes; base: the text's bytes, NULL if the record does not contain them */
    const uint8_t *data;
    size_t size_bytes;
    whit_file_identity identity; /* base or saved record: the file */
    bool has_mark;               /* base: the file has a byte order mark, which `data` does not include */
} whit_record;

typedef struct whit_journal {
    int fd; /* -1: no journal */
    char *path;
    whit_buf pending;
    uint64_t size_bytes; /* size of the journal's file in bytes */
    bool has_base, failed;
} whit_journal;

/* Writes the path of the folder of journals, $XDG_STATE_HOME/whit/edit or ~/.local/state/whit/edit, and creates the
 * folder. Returns false and sets *error on failure. */
bool whit_journal_folder(char *folder, size_t room_bytes, whit_error *error);

/* Opens and locks the journal of a file; creates it if it does not exist. *busy becomes true if another editor has
 * locked it; `journal` is then closed. *contents is a map of the journal's bytes, which the caller releases by
 * whit_journal_unmap(); it must not be read after the journal was cut or restarted. If mapping fails, the journal is
 * closed and its file stays unchanged. A zero-initialised journal counts as closed. */
whit_status whit_journal_open(const char *folder, const char *file_path, whit_journal *journal, whit_span *contents,
                              bool *busy, whit_error *error);
void whit_journal_unmap(whit_span *contents);
/* Closes the journal. With `remove` its file is deleted. */
void whit_journal_close(whit_journal *journal, bool remove);

/* Parses the record at *offset and advances *offset past it. Returns false at the end and at an incomplete or damaged
 * record. `bytes` may be any bytes. */
bool whit_journal_next(const uint8_t *bytes, size_t size_bytes, size_t *offset, whit_record *record);

/* whit_journal_add appends a record to `pending`; whit_journal_flush writes the pending records to the file. Only the
 * first write error is reported. */
void whit_journal_add(whit_journal *journal, const whit_record *record);
whit_status whit_journal_flush(whit_journal *journal, whit_error *error);
/* Removes all records. The next record must be a base. */
void whit_journal_restart(whit_journal *journal);
/* Truncates the journal to size_bytes, which removes the records after that, such as an incomplete one. */
void whit_journal_cut(whit_journal *journal, uint64_t size_bytes);

#endif
