/* SPDX-License-Identifier: MIT
 * Lists the files of a project by a walk through its folders that respects .gitignore. */
#ifndef WHIT_CODE_WALK_H
#define WHIT_CODE_WALK_H

#include "base/status.h"

/* Receives the path of a file, relative to the walk's folder; returning false ends the walk. */
typedef bool whit_walk_fn(void *user, const char *path);
/* Walks through the files in the order of their names. Leaves out .git and files that .gitignore excludes, does not
 * follow links to folders, lists at most 200,000 files and enters at most 32 levels of folders. A .gitignore that is a
 * link is not followed, as git demands. */
void whit_walk_files(const char *folder, whit_walk_fn *each, void *user);

/* Holds the options of a walk. Zero-initialised options give the walk of whit_walk_files. */
typedef struct whit_walk_how {
    /* called with the path of each folder, ending in '/'; returns true to leave the folder out; NULL: all folders are
     * entered */
    whit_walk_fn *skip;
    const char *rules; /* folder whose .gitignore files count; NULL: the folder of the walk */
    bool all;          /* the walk also lists links of every kind, special files and .git */
    bool is_unruled;   /* the walk also lists files that .gitignore leaves out */
    /* called with the path of each .gitignore, whether it exists or not; returns true to replace its content by *text
     * of *n_text bytes; NULL: no content is replaced */
    bool (*replace)(void *user, const char *path, const char **text, size_t *n_text);
} whit_walk_how;
/* Walks through the files with these options. Returns false if files were passed over: at a limit, in a folder that
 * cannot be read, for lack of memory, or because `each` ended the walk. */
bool whit_walk(const char *folder, const whit_walk_how *how, whit_walk_fn *each, void *user);

#endif
