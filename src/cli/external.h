/* SPDX-License-Identifier: MIT
 * Runs the user's own editor on copies of texts. */
#ifndef WHIT_CLI_EXTERNAL_H
#define WHIT_CLI_EXTERNAL_H

#include "base/mem.h"

#include <limits.h>

/* Makes a folder for copies that only the user can read, in $TMPDIR or /tmp. */
whit_status cli_editor_folder(char folder[PATH_MAX], whit_error *error);
/* Removes the folder with all files in it: backups and swap files of the editor contain the same text. */
void cli_editor_remove(const char *folder);
/* Runs $VISUAL, $EDITOR or whit's own editor at the user's terminal, on those of the n_paths paths that are not NULL.
 * Returns whether the editor exited successfully. */
bool cli_editor_run(char *const *paths, size_t n_paths);
/* Lets the user edit a text in a temporary file called `name`, and replaces the text. *is_done: the editor exited
 * successfully and the text was read. If the editor fails, the text is unchanged. */
whit_status cli_editor_text(const char *name, whit_buf *text, bool *is_done, whit_error *error);

#endif
