/* SPDX-License-Identifier: MIT
 * The files of a project, by a walk through its folders that respects .gitignore. */
#ifndef WHIT_CODE_WALK_H
#define WHIT_CODE_WALK_H

#include "base/status.h"

/* Called with a path relative to the folder; false ends the walk. */
typedef bool whit_walk_fn(void *user, const char *path);
/* In the order of names. .git is left out, links to folders are not followed; at most 200,000 files,
 * 32 folders deep. */
void whit_walk_files(const char *folder, whit_walk_fn *each, void *user);

/* Zero-initialised is whit_walk_files. */
typedef struct whit_walk_how {
    whit_walk_fn *skip;  /* true leaves a folder out, whose path ends with '/'; NULL: all are entered */
    const char *rules;   /* the folder whose .gitignore files count; NULL: the folder of the walk */
    bool all;            /* links of every kind, special files and .git, too */
    const char *changed; /* path of a .gitignore whose content is replaced by `text`; NULL: none */
    const char *text;
    size_t n_text;
} whit_walk_how;
/* False where something was passed over: a limit, a folder that cannot be read, or `each` ended it. */
bool whit_walk(const char *folder, const whit_walk_how *how, whit_walk_fn *each, void *user);

#endif
