/* SPDX-License-Identifier: MIT
 * Handles the editor's files: reads or maps them, detects changes by other programs, and saves atomically. */
#ifndef WHIT_EDITOR_FILE_H
#define WHIT_EDITOR_FILE_H

#include "editor/text.h"

#include <sys/stat.h>

/* identifies one state of a file */
typedef struct whit_file_identity {
    uint64_t device, inode, size_bytes;
    int64_t modified_ns;
    bool exists;
} whit_file_identity;

/* Holds a file's bytes. Small files are copied; large files are mapped, and if such a file is truncated, the lost pages
 * read as zeros and whit_file_is_lost reports it. */
typedef struct whit_file {
    uint8_t *data;
    uint64_t size_bytes;
    bool is_mapped;
    bool has_mark; /* the file begins with a byte order mark, which is not part of the text; saving keeps it */
    int guard;     /* slot of the SIGBUS handler for a mapped file, or -1 */
    whit_file_identity identity;
} whit_file;

#define WHIT_FILE_COPIED_BYTES (1u << 20) /* larger files are mapped */

/* Opens a file. A file that does not exist is empty, with identity.exists false. Folders and devices are refused. */
whit_status whit_file_open(const char *path, whit_file *file, whit_error *error);
void whit_file_close(whit_file *file);
/* Returns the file's bytes after its byte order mark, owned by the file. */
whit_span whit_file_text(const whit_file *file);
bool whit_file_is_lost(const whit_file *file);
/* Releases the memory of mapped pages that were read. It is a `drop` for whit_text_count, whose user is the
 * whit_file. */
void whit_file_drop(void *file, whit_span span);

void whit_file_identify(const char *path, whit_file_identity *identity);
bool whit_file_same(const whit_file_identity *a, const whit_file_identity *b);

#define WHIT_FILE_MARK "\xEF\xBB\xBF" /* U+FEFF, the byte order mark of UTF-8 */
bool whit_file_has_mark(const void *data, uint64_t size_bytes);

/* Writes the text to `path` atomically: to a new file that is renamed over it, with the old file's mode, owner and
 * extended attributes; a symbolic link stays a link. If that would lose a property (hard links, another person as
 * owner, a folder that may not be written to), the text is written in place after a full copy to `spare`, which stays
 * there if the writing is interrupted. `source` (may be NULL) is the file that holds the text's original pieces: a file
 * that was lost is refused, and a byte order mark is written if it has one. *identity is the state of the file that is
 * known before and, after success, the state of the saved file. A save in place that fails may change the file's time
 * and leave its bytes: an *identity that was right then stays right. */
whit_status whit_file_save(const char *path, const whit_text *text, const char *spare, const whit_file *source,
                           whit_file_identity *identity, whit_error *error);

#endif
