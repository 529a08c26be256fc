/* SPDX-License-Identifier: MIT
 * Files of the editor: read or mapped, watched for changes by others, saved atomically. */
#ifndef WHIT_EDITOR_FILE_H
#define WHIT_EDITOR_FILE_H

#include "editor/text.h"

#include <sys/stat.h>

/* Identifies one state of a file. */
typedef struct whit_file_identity {
    uint64_t device, inode, size_bytes;
    int64_t modified_ns;
    bool exists;
} whit_file_identity;

/* A file's bytes. Small files are copied; large ones are mapped, and if such a file is truncated, the lost pages
 * read as zeros and whit_file_is_lost reports it. */
typedef struct whit_file {
    uint8_t *data;
    uint64_t size_bytes;
    bool is_mapped;
    bool has_mark; /* begins with a byte order mark, which is no part of the text; saving keeps it */
    int guard;     /* slot of the SIGBUS handler for a mapped file, or -1 */
    whit_file_identity identity;
} whit_file;

#define WHIT_FILE_COPIED_BYTES (1u << 20) /* larger files are mapped */

/* A file that does not exist is empty, with identity.exists false. Folders and devices are refused. */
whit_status whit_file_open(const char *path, whit_file *file, whit_error *error);
void whit_file_close(whit_file *file);
/* Returns the file's bytes after its byte order mark, owned by the file. */
whit_span whit_file_text(const whit_file *file);
bool whit_file_is_lost(const whit_file *file);
/* For whit_text_count: mapped pages that were read go out of memory again. user is the file. */
void whit_file_drop(void *file, whit_span span);

void whit_file_identify(const char *path, whit_file_identity *identity);
bool whit_file_same(const whit_file_identity *a, const whit_file_identity *b);

#define WHIT_FILE_MARK "\xEF\xBB\xBF" /* U+FEFF, the byte order mark of UTF-8 */
bool whit_file_has_mark(const void *data, uint64_t size_bytes);

/* Writes the text to `path` atomically: to a new file that is renamed over it, keeping mode, owner
 * and extended attributes; a symbolic link stays one. Where that would lose something (hard links, an
 * owner who is somebody else, a folder that may not be written to) it is written in place after a full
 * copy to `spare`, which stays there if the writing is interrupted. `source` (may be NULL) is what the
 * text's original pieces are in: a file that was lost is refused, and a mark is written where it has one.
 * *identity is the file's state that is known before and, after success, the saved one's. A save in place
 * that fails may touch the file's time and leave its bytes: where *identity was right, it still is. */
whit_status whit_file_save(const char *path, const whit_text *text, const char *spare, const whit_file *source,
                           whit_file_identity *identity, whit_error *error);

#endif
