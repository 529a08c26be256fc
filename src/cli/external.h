/* SPDX-License-Identifier: MIT
 * Runs the person's own editor on copies of texts. */
#ifndef WHIT_CLI_EXTERNAL_H
#define WHIT_CLI_EXTERNAL_H

#include "base/mem.h"

#include <limits.h>

/* Makes a folder for copies that only the person can read, in $TMPDIR or /tmp. */
whit_status cli_editor_folder(char folder[PATH_MAX], whit_error *error);
/* Removes the folder together with the editor's other files: backups and swap files contain the same text. */
void cli_editor_remove(const char *folder);
/* Runs $VISUAL, $EDITOR or whit's own editor at the person's terminal, on the paths (n_paths) that are not NULL.
 * Returns whether it exited successfully. */
bool cli_editor_run(char *const *paths, size_t n_paths);
/* Lets the person edit a text, in a copy called `name`. *is_done is false if the editor did not end well. */
whit_status cli_editor_text(const char *name, whit_buf *text, bool *is_done, whit_error *error);

#endif
