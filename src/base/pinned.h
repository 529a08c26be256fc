/* SPDX-License-Identifier: MIT
 * Opens the folder of a file that is about to be written, so that the file is written in this folder even if a folder
 * of its path is replaced by a link meanwhile. */
#ifndef WHIT_BASE_PINNED_H
#define WHIT_BASE_PINNED_H

#include "base/mem.h"
#include "base/status.h"

#include <limits.h>
#include <stdbool.h>

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
