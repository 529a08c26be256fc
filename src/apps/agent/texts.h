/* SPDX-License-Identifier: MIT
 * Reads and changes texts that are open in an editor and not saved. They are used instead of the files' contents. */
#ifndef WHIT_AGENT_TEXTS_H
#define WHIT_AGENT_TEXTS_H

#include "agent/turns.h"

typedef struct whit_open_texts {
    /* Appends the text of a path below the project if it is open and not saved; otherwise sets *is to false. */
    whit_status (*read)(void *user, const char *path, whit_buf *content, bool *is, whit_error *error);
    /* Edits open texts, all or none: if a text does not equal its `before`, the result is WHIT_ERROR_ARGUMENT. The
     * texts stay unsaved. */
    whit_status (*write)(void *user, const whit_change *changes, size_t n, whit_error *error);
    /* Appends the paths of all open texts that are not saved, each ended by a zero byte. */
    whit_status (*list)(void *user, whit_buf *paths, whit_error *error);
    void *user;
} whit_open_texts;

/* Writes the name by which changes and texts of a file are kept: that of its open text, if `path` names one, or else
 * that of whit_project_name(). */
whit_status whit_texts_name(const whit_open_texts *texts, const char *project, const char *path, char name[PATH_MAX],
                            whit_error *error);
/* Like whit_project_read_file(), but reads the text that is open in `texts` (may be NULL) instead of the file, if there
 * is one; *is_open tells which was read. */
whit_status whit_texts_read(const whit_open_texts *texts, const char *project, const char *path, whit_buf *content,
                            whit_project_file *file, bool *is_open, whit_error *error);

#endif
