/* SPDX-License-Identifier: MIT */
#include "cli/external.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/folders.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "base/shell.h"
#include "base/status.h"

#define TEXT_BYTES_MAX ((size_t)4 << 20)

whit_status cli_editor_folder(char folder[PATH_MAX], whit_error *error)
{
    const char *place = getenv("TMPDIR");
    snprintf(folder, PATH_MAX, "%s/whit-edit-XXXXXX", place && whit_path_is_absolute(place) ? place : "/tmp");
    return mkdtemp(folder) ? WHIT_OK : whit_fail_errno(error, folder, "create this folder");
}

void cli_editor_remove(const char *folder)
{
    whit_agent_remove_all(AT_FDCWD, folder);
}

bool cli_editor_run(char *const *paths, size_t n_paths)
{
    const char *editor = getenv("VISUAL");
    if (!editor || !*editor) editor = getenv("EDITOR");
    if (editor && *editor) return whit_shell_at_terminal(editor, paths, n_paths);
    char *program = whit_shell_program(), *line = NULL;
    const bool is_made = program && asprintf(&line, "%s edit", program) >= 0;
    const bool is_done = is_made && whit_shell_at_terminal(line, paths, n_paths);
    if (is_made) free(line);
    free(program);
    return is_done;
}

whit_status cli_editor_text(const char *name, whit_buf *text, bool *is_done, whit_error *error)
{
    char folder[PATH_MAX], *path = NULL;
    *is_done = false;
    WHIT_TRY(cli_editor_folder(folder, error));
    whit_status status =
        asprintf(&path, "%s/%s", folder, name) < 0 ? whit_fail_memory(error, "a path", PATH_MAX) : WHIT_OK;
    if (status != WHIT_OK) path = NULL;
    if (status == WHIT_OK)
        status = whit_write_file(path, text->size_bytes ? whit_chars(text) : "", text->size_bytes, error);
    if (status == WHIT_OK && cli_editor_run(&path, 1)) {
        text->size_bytes = 0;
        status = whit_read_file(path, TEXT_BYTES_MAX, text, error);
        *is_done = status == WHIT_OK;
    }
    cli_editor_remove(folder);
    free(path);
    return status;
}
