/* SPDX-License-Identifier: MIT
 * Opens files below a folder, and the folder of a file that is about to be written, so that no folder of the path that
 * is replaced by a link meanwhile leads elsewhere. */
#ifndef WHIT_BASE_PINNED_H
#define WHIT_BASE_PINNED_H

#include "base/mem.h"
#include "base/status.h"

#include <limits.h>
#include <stdbool.h>

/* Opens a file or folder by its path below the open folder `root`, and follows no link: errno is ELOOP or ENOTDIR if a
 * part of the path is one. `path` is plain ("a/b"); "" is the folder itself. `flags` are those of open(); with O_PATH a
 * link at the end is opened itself. Returns a descriptor, or -1 with errno. */
int whit_open_below(int root, const char *path, int flags);
/* Like whit_open_below(), with the path of the folder, which may be a link. */
int whit_open_in(const char *folder, const char *path, int flags);
/* Appends a regular file of a folder to `content`, whose size may become at most limit_bytes; follows no link in
 * `path`. Returns false on failure; then *replaced (may be NULL) is whether the path has a link. */
bool whit_read_below(const char *folder, const char *path, size_t limit_bytes, whit_buf *content, bool *replaced);

typedef struct whit_pinned {
    int folder; /* -1: on this system names are used as they are */
    /* names in the open folder: of the file, and of the temporary file beside it */
    char full[PATH_MAX], beside[PATH_MAX];
} whit_pinned;

/* Opens the folder of `full`, a file's path that begins with the n_root bytes of the path of a folder. No folder below
 * that one may be a link. `beside`: name of the temporary file. With creates, missing folders are created and their
 * paths appended to `made` (char *[], may be NULL). Errors: argument (a folder of the path is gone, a link or another
 * file now), io. whit_pinned_close() must follow a success. */
whit_status whit_pinned_open(const char *full, size_t n_root, const char *beside, bool creates, whit_buf *made,
                             whit_pinned *pinned, whit_error *error);
void whit_pinned_close(whit_pinned *pinned);

#endif
