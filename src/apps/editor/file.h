/* SPDX-License-Identifier: MIT
 * Handles the editor's files: reads or maps them, detects changes by other programs, and saves atomically. */
#ifndef WHIT_EDITOR_FILE_H
#define WHIT_EDITOR_FILE_H

#include "editor/text.h"

#include <sys/stat.h>

/* Identifies one state of a file on disk. */
typedef struct whit_file_identity {
    uint64_t device, inode, size_bytes;
    int64_t modified_ns;
    bool exists;
} whit_file_identity;

/* A file's bytes. Small files are copied into memory, large files are mapped. If a mapped file is truncated, its lost
 * pages read as zeros, and whit_file_is_lost() returns true. */
typedef struct whit_file {
    uint8_t *data;
    uint64_t size_bytes;
    bool is_mapped;
    /* the file begins with a byte order mark, which is not part of the text and is written again on save */
    bool has_mark;
    int guard; /* slot of the SIGBUS handler for a mapped file, or -1 */
    whit_file_identity identity;
} whit_file;

#define WHIT_FILE_COPIED_BYTES (1u << 20) /* files larger than this number of bytes are mapped, if possible */

/* Opens a file. If it does not exist, it is empty and identity.exists is false. Folders and devices are refused. */
whit_status whit_file_open(const char *path, whit_file *file, whit_error *error);
void whit_file_close(whit_file *file);
/* Returns the file's bytes after its byte order mark. They stay valid until the file is closed. */
whit_span whit_file_text(const whit_file *file);
bool whit_file_is_lost(const whit_file *file);
/* Releases the memory of pages of a mapped file that were read. Fits the `drop` callback of whit_text_count(), with the
 * whit_file as its user. */
void whit_file_drop(void *file, whit_span span);

void whit_file_identify(const char *path, whit_file_identity *identity);
bool whit_file_same(const whit_file_identity *a, const whit_file_identity *b);

/* Returns the time in ns that a file gets which is changed now. */
int64_t whit_file_now_ns(void);
/* Returns whether a file was changed, replaced or removed since the time `since_ns` of whit_file_now_ns(). The times of
 * changes (ctime) are compared, which programs cannot set; a file server must have this machine's time. */
bool whit_file_changed_since(const char *path, int64_t since_ns);

#define WHIT_FILE_MARK "\xEF\xBB\xBF" /* U+FEFF, the byte order mark of UTF-8 */
bool whit_file_has_mark(const void *data, uint64_t size_bytes);

/* Writes the text to `path` atomically: to a new file that is then renamed over it, with the old file's mode, owner and
 * extended attributes. A symbolic link stays a link. If this would lose a property (hard links, another owner, a folder
 * that is not writable), the text is written in place instead, after a complete copy to `spare`, which stays there if
 * the write is interrupted. `source` (may be NULL) is the file that contains the text's original pieces: if parts of it
 * were lost, saving is refused; if it has a byte order mark, one is written. `there` is the state of the file that may
 * be replaced; in another state it is left as it is, with WHIT_ERROR_ARGUMENT. NULL means any state. Before the call
 * *identity is the file's known state, after success the saved state. If a save in place fails because the file cannot
 * grow (a full disk), the file keeps its bytes, and *identity gets its new time if it was correct before. If it fails
 * later, the file may be partly overwritten, and `spare` stays. */
whit_status whit_file_save(const char *path, const whit_text *text, const char *spare, const whit_file *source,
                           const whit_file_identity *there, whit_file_identity *identity, whit_error *error);

#endif
