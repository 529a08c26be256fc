/* SPDX-License-Identifier: MIT
 * A journal keeps the edits since a file was saved, on disk within moments, and the undo of small files across
 * runs. There is one journal per file, in a folder of the user's.
 *
 * A journal is a base (the text that the rest applies to: its bytes, or for large files the identity of
 * the file) and a record per change, each followed by a checksum. Reading stops at the first incomplete
 * record; the records before it are valid. docs/use/editor.md has the layout. */
#ifndef WHIT_EDITOR_JOURNAL_H
#define WHIT_EDITOR_JOURNAL_H

#include "editor/file.h"

#define WHIT_JOURNAL_BASE_BYTES  (1u << 20) /* larger files are named, not copied */
#define WHIT_JOURNAL_LIMIT_BYTES (8u << 20) /* a save restarts a longer journal */

typedef enum whit_record_kind {
    WHIT_RECORD_BASE = 1,
    WHIT_RECORD_EDIT, /* joins the open step */
    WHIT_RECORD_STEP, /* an edit that begins a step of undo */
    WHIT_RECORD_UNDO,
    WHIT_RECORD_REDO,
    WHIT_RECORD_BRANCH, /* chose the next branch */
    WHIT_RECORD_SAVED,
} whit_record_kind;

typedef struct whit_record {
    whit_record_kind kind;
    uint64_t offset, n_removed; /* edits */
    const uint8_t *data;        /* inserted bytes; base: the text's bytes, NULL if they are not stored */
    size_t size_bytes;
    whit_file_identity identity; /* base, saved */
    bool has_mark;               /* base: the file has a byte order mark, which is not among the bytes */
} whit_record;

typedef struct whit_journal {
    int fd; /* -1: no journal */
    char *path;
    whit_buf pending;
    uint64_t size_bytes; /* on disk */
    bool has_base, failed;
} whit_journal;

/* Gives the folder of journals, $XDG_STATE_HOME/whit/edit or ~/.local/state/whit/edit, which is made if it is
 * missing. False, with a line in *error, if there is no such folder. */
bool whit_journal_folder(char *folder, size_t room_bytes, whit_error *error);

/* Opens (and makes) the journal of a file and locks it. *busy: another editor has it; then none is
 * kept. *contents is a map of what it holds, which whit_journal_unmap gives back; it is not read after
 * the journal was cut or restarted. A journal that cannot be mapped is closed, and stays as it is.
 * Zero-initialise is closed. */
whit_status whit_journal_open(const char *folder, const char *file_path, whit_journal *journal, whit_span *contents,
                              bool *busy, whit_error *error);
void whit_journal_unmap(whit_span *contents);
/* `remove` deletes the file. */
void whit_journal_close(whit_journal *journal, bool remove);

/* Reads the record at *offset and advances *offset past it; false at the end and at an incomplete record.
 * Any bytes are allowed. */
bool whit_journal_next(const uint8_t *bytes, size_t size_bytes, size_t *offset, whit_record *record);

/* Appends a record to `pending`, which whit_journal_flush writes. flush reports the first failure only. */
void whit_journal_add(whit_journal *journal, const whit_record *record);
whit_status whit_journal_flush(whit_journal *journal, whit_error *error);
/* Forgets all records; a base comes next. */
void whit_journal_restart(whit_journal *journal);
/* Truncates the journal to `size_bytes`: an incomplete record follows there. */
void whit_journal_cut(whit_journal *journal, uint64_t size_bytes);

#endif
