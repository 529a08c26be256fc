/* SPDX-License-Identifier: MIT */
#include "agent/texts.h"

#include "base/status.h"

#include <string.h>

whit_status whit_texts_name(const whit_open_texts *texts, const char *project, const char *path, char name[PATH_MAX],
                            whit_error *error)
{
    whit_buf ignored = {0};
    bool is_open = false;
    WHIT_TRY(whit_project_name(project, path, name, error));
    const whit_status status =
        texts && strcmp(name, path) != 0 ? texts->read(texts->user, path, &ignored, &is_open, error) : WHIT_OK;
    whit_buf_free(&ignored);
    if (status == WHIT_OK && is_open) memcpy(name, path, strlen(path) + 1);
    return status;
}

whit_status whit_texts_read(const whit_open_texts *texts, const char *project, const char *path, whit_buf *content,
                            whit_project_file *file, bool *is_open, whit_error *error)
{
    *is_open = false;
    /* Reading the file first applies the project's rules to an open text, too: a path outside the project, or a link
     * out of it, is refused. */
    WHIT_TRY(whit_project_read_file(project, path, content, file, error));
    if (!texts) return WHIT_OK;
    whit_buf own = {0};
    whit_status status = texts->read(texts->user, path, &own, is_open, error);
    if (status == WHIT_OK && *is_open) {
        whit_buf_free(content);
        *content = own;
        file->exists = true;
        return WHIT_OK;
    }
    whit_buf_free(&own);
    return status;
}
