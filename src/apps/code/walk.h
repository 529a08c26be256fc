/* SPDX-License-Identifier: MIT
 * The files of a project, by a walk through its folders that respects .gitignore. */
#ifndef WHIT_CODE_WALK_H
#define WHIT_CODE_WALK_H

#include "base/status.h"

/* A path relative to the folder; false ends the walk. */
typedef bool whit_walk_fn(void *user, const char *path);
/* In the order of names. .git is left out, links to folders are not followed; at most 200,000 files,
 * 32 folders deep. */
void whit_walk_files(const char *folder, whit_walk_fn *each, void *user);

#endif
