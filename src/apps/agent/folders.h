/* SPDX-License-Identifier: MIT
 * Finds and creates the folders for an agent's own files: journals of its changes, lists of the commands that it
 * ran, and scratch copies of projects. Opens and removes folders that a command may have changed. */
#ifndef WHIT_AGENT_FOLDERS_H
#define WHIT_AGENT_FOLDERS_H

#include "base/status.h"

#include <limits.h>
#include <stdbool.h>

/* Writes the path NAME-<hash of the project>SUFFIX in the folder `given` or, if that is NULL, in $XDG_STATE_HOME/whit
 * or ~/.local/state/whit, and creates the folder with mode 0700. Errors: io, limit (too many different folders were
 * given). */
whit_status whit_agent_state_path(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], whit_error *error);
/* Like whit_agent_state_path(), but creates nothing. *exists: whether there is a file of this path. Errors: io. */
whit_status whit_agent_find_state(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], bool *exists, whit_error *error);
/* Like whit_agent_state_path(), with $XDG_CACHE_HOME/whit or ~/.cache/whit as the default folder. */
whit_status whit_agent_cache_path(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], whit_error *error);
/* Returns whether a path is relative and has no ".", no "..", no empty part, also after a final '/', and no line
 * feed. */
bool whit_agent_path_is_plain(const char *path);
/* Creates a folder and its missing parents, with mode 0700. */
whit_status whit_agent_make_folders(char *path, whit_error *error);
/* Opens a folder without following a symbolic link, and first restores the owner's permissions, which a command may
 * have removed. Returns -1 with errno on failure. */
int whit_agent_open_folder(int folder, const char *name);
/* Removes an entry `name` of an open folder with all its content. Links are removed, not followed. */
void whit_agent_remove_all(int folder, const char *name);

/* Writes the path of the folder that stays closed to the commands of a project: the project or, if it lies in a folder
 * of /usr, the first folder of its path that is not the system's, such as /usr/src/app for /usr/src/app/web. `project`
 * has no links. */
void whit_agent_closed_folder(const char *project, char folder[PATH_MAX]);

#endif
