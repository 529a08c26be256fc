/* SPDX-License-Identifier: MIT
 * Implements the answer "e" to a question of whit agent: the user edits the changes that the model proposes. */
#include "agent/changes.h"
#include "base/file.h"
#include "base/phrase.h"
#include "base/status.h"
#include "cli/agent.h"
#include "cli/external.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)

/* Copies of the changed files for editing, in a folder that only the user can read: FOLDER/0/main.c,
 * FOLDER/1/main.h. */
struct copies {
    char folder[PATH_MAX];
    char **paths; /* path of the copy for each change; NULL: the change cannot be edited here */
    size_t n;
    bool is_made; /* the folder exists */
};

static whit_status write_copies(struct copies *copies, const whit_changes *staged, whit_error *error)
{
    copies->n = whit_changes_count(staged);
    copies->paths = calloc(copies->n + 1, sizeof *copies->paths);
    if (!copies->paths) return whit_fail_memory(error, "the copies", (copies->n + 1) * sizeof *copies->paths);
    WHIT_TRY(cli_editor_folder(copies->folder, error));
    copies->is_made = true;
    for (size_t i = 0; i < copies->n; i++) {
        const whit_change *c = whit_changes_at(staged, i);
        const char *slash = strrchr(c->path, '/');
        if (!c->is || c->open) continue; /* a deleted file has no text, and an open text can be edited in its editor */
        if (asprintf(&copies->paths[i], "%s/%zu/%s", copies->folder, i, slash ? slash + 1 : c->path) < 0) {
            copies->paths[i] = NULL;
            return whit_fail_memory(error, "a path", strlen(c->path));
        }
        char *end = strrchr(copies->paths[i], '/');
        *end = 0;
        int made = mkdir(copies->paths[i], 0700);
        *end = '/';
        if (made != 0) return whit_fail_errno(error, copies->paths[i], "create this folder");
        WHIT_TRY(whit_write_file(copies->paths[i], whit_or_empty(c->after), c->after_bytes, error));
    }
    return WHIT_OK;
}

static whit_status read_copies(const struct copies *copies, whit_changes *staged, whit_error *error)
{
    for (size_t i = 0; i < copies->n; i++) {
        whit_buf text = {0};
        if (!copies->paths[i]) continue;
        whit_status status = whit_read_file(copies->paths[i], FILE_BYTES_MAX, &text, error);
        if (status == WHIT_OK) status = whit_changes_replace(staged, i, &text, error);
        if (status != WHIT_OK) {
            whit_buf_free(&text);
            return status;
        }
    }
    return WHIT_OK;
}

/* Removes the folder including files that the editor left there: backups and swap files contain the same text. */
static void remove_copies(struct copies *copies)
{
    if (copies->is_made) cli_editor_remove(copies->folder);
    for (size_t i = 0; copies->paths && i < copies->n; i++) free(copies->paths[i]);
    free(copies->paths);
}

whit_status cli_agent_edit(struct whit_changes *staged, whit_error *error)
{
    struct copies copies = {.n = 0};
    whit_status status = write_copies(&copies, staged, error);
    if (status == WHIT_OK) {
        if (cli_editor_run(copies.paths, copies.n))
            status = read_copies(&copies, staged, error);
        else
            cli_note("the editor failed ($VISUAL and $EDITOR name it): the changes are as they were");
    }
    remove_copies(&copies);
    return status;
}
