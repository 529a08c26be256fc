/* SPDX-License-Identifier: MIT
 * Refuses to run an external editor, on systems that cannot start programs. */
#include "cli/external.h"

#include "base/status.h"

static whit_status refuse_editor(const char *name, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: the program for this system cannot run an editor", name);
}

whit_status cli_editor_folder(char folder[PATH_MAX], whit_error *error)
{
    *folder = 0;
    return refuse_editor("the proposal", error);
}

void cli_editor_remove(const char *folder)
{
    (void)folder;
}

bool cli_editor_run(char *const *paths, size_t n_paths)
{
    (void)paths, (void)n_paths;
    return false;
}

whit_status cli_editor_text(const char *name, whit_buf *text, bool *is_done, whit_error *error)
{
    (void)text;
    *is_done = false;
    return refuse_editor(name, error);
}
