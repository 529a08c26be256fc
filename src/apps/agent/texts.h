/* SPDX-License-Identifier: MIT
 * Texts that are open in an editor and not saved: their content takes precedence over their files. */
#ifndef WHIT_AGENT_TEXTS_H
#define WHIT_AGENT_TEXTS_H

#include "agent/turns.h"

typedef struct whit_open_texts {
    /* Appends the text of a path below the project where it is open and not saved; else *is is false. */
    whit_status (*read)(void *user, const char *path, whit_buf *content, bool *is, whit_error *error);
    /* Edits open texts, all or none: each must still equal `before`, else WHIT_ERROR_ARGUMENT. They stay unsaved. */
    whit_status (*write)(void *user, const whit_change *changes, size_t n, whit_error *error);
    /* Appends the paths of all of them, each ended by a zero byte. */
    whit_status (*list)(void *user, whit_buf *paths, whit_error *error);
    void *user;
} whit_open_texts;

/* Like whit_project_read, but uses the text if it is open in `texts` (may be NULL); *is_open: whether it was. */
whit_status whit_texts_read(const whit_open_texts *texts, const char *project, const char *path, whit_buf *content,
                            bool *exists, uint32_t *mode, bool *is_open, whit_error *error);

#endif
