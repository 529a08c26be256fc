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

/* maximum number of bytes of a file that is copied into its journal; a larger file is only named */
#define WHIT_JOURNAL_BASE_BYTES (1u << 20)
/* size in bytes above which a save begins the journal anew */
#define WHIT_JOURNAL_LIMIT_BYTES (8u << 20)

typedef enum whit_record_kind {
    WHIT_RECORD_BASE = 1,
    WHIT_RECORD_EDIT, /* edit that joins the open step of undo */
    WHIT_RECORD_STEP, /* an edit that begins a step of undo */
    WHIT_RECORD_UNDO,
    WHIT_RECORD_REDO,
    WHIT_RECORD_BRANCH, /* choice of the next branch of undo */
    WHIT_RECORD_SAVED,
} whit_record_kind;

typedef struct whit_record {
    whit_record_kind kind;
    uint64_t offset, n_removed; /* for edits */
    /* for edits: the inserted bytes; for the base: the text's bytes, NULL if they are not stored */
    const uint8_t *data;
    size_t size_bytes;
    whit_file_identity identity; /* for base and saved */
    bool has_mark;               /* for the base: the file has a byte order mark, which is not among the bytes */
} whit_record;

typedef struct whit_journal {
    int fd; /* -1: no journal */
    char *path;
    whit_buf pending;
    uint64_t size_bytes; /* bytes on disk */
    bool has_base, failed;
} whit_journal;

/* Writes the path of the folder of journals, $XDG_STATE_HOME/whit/edit or ~/.local/state/whit/edit, and makes the
 * folder if it is missing. Returns false with *error if that fails. */
bool whit_journal_folder(char *folder, size_t room_bytes, whit_error *error);

/* Opens (and makes) the journal of a file and locks it. *busy becomes true if another editor has the journal, and then
 * no journal is kept. *contents is a map of its bytes, which the caller releases by whit_journal_unmap; it must not be
 * read after the journal was cut or restarted. A journal that cannot be mapped is closed and stays as it is. A
 * zero-initialised journal is closed. */
whit_status whit_journal_open(const char *folder, const char *file_path, whit_journal *journal, whit_span *contents,
                              bool *busy, whit_error *error);
void whit_journal_unmap(whit_span *contents);
/* Closes the journal; `remove` deletes its file. */
void whit_journal_close(whit_journal *journal, bool remove);

/* Reads the record at *offset and advances *offset past it; returns false at the end and at an incomplete record. Any
 * bytes are allowed. */
bool whit_journal_next(const uint8_t *bytes, size_t size_bytes, size_t *offset, whit_record *record);

/* The first function appends a record to `pending`, which the second writes to the file. Only the first failure of
 * writing is reported. */
void whit_journal_add(whit_journal *journal, const whit_record *record);
whit_status whit_journal_flush(whit_journal *journal, whit_error *error);
/* Removes all records; the next record must be a base. */
void whit_journal_restart(whit_journal *journal);
/* Truncates the journal to `size_bytes`; the bytes after that, such as an incomplete record, are lost. */
void whit_journal_cut(whit_journal *journal, uint64_t size_bytes);

#endif
