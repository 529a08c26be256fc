/* SPDX-License-Identifier: MIT
 * Finds and makes the folders in which an agent keeps its own files: journals of its changes, lists of the commands
 * that it ran, and scratch copies of projects. */
#ifndef WHIT_AGENT_FOLDERS_H
#define WHIT_AGENT_FOLDERS_H

#include "base/status.h"

#include <limits.h>
#include <stdbool.h>

/* Writes the path NAME-<project's hash>SUFFIX in the folder `given` or, if that is NULL, in $XDG_STATE_HOME/whit or
 * ~/.local/state/whit; the folder is made with mode 0700. Errors: io. */
whit_status whit_agent_state_path(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], whit_error *error);
/* Writes the same path in `given` or, if that is NULL, in $XDG_CACHE_HOME/whit or ~/.cache/whit. */
whit_status whit_agent_cache_path(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], whit_error *error);
/* Returns whether a path in the project is relative, without "." and "..", empty parts and line feeds; a '/' may end
 * it. */
bool whit_agent_path_is_plain(const char *path);
/* Creates a folder and its missing parents, with mode 0700. */
whit_status whit_agent_make_folders(char *path, whit_error *error);
/* Opens a folder, not through a symbolic link, and restores its owner's permissions, which a command may have removed.
 * Returns -1 with errno on failure. */
int whit_agent_open_folder(int folder, const char *name);
/* Removes the entry of this name in an open folder, with all its content. Links are removed, not followed. */
void whit_agent_remove_all(int folder, const char *name);

#endif
