/* SPDX-License-Identifier: MIT
 * What a text has changed since the last commit of its file, which libgit2 reads in a process of its own.
 * Nothing is written to a repository here. */
#ifndef WHIT_CODE_GIT_H
#define WHIT_CODE_GIT_H

#include "base/mem.h"

typedef enum whit_git_kind {
    WHIT_GIT_ADDED,
    WHIT_GIT_CHANGED,
    WHIT_GIT_REMOVED, /* lines between `line` - 1 and `line` are gone; n_lines is 0 */
} whit_git_kind;

typedef struct whit_git_change {
    uint64_t line, n_lines; /* of the text, from 1 */
    whit_git_kind kind;
} whit_git_change;

typedef struct whit_git_file whit_git_file;

/* The file as HEAD has it; `path` is absolute. False, and *file NULL, where it is in no work tree, or in no
 * commit, or over 8 MiB, or where this whit or this machine has no libgit2. */
bool whit_git_open(const char *path, whit_git_file **file);
void whit_git_close(whit_git_file *file);
/* The changes of a text, in the order of its lines, at most `max`; returns how many there are. 0 for one
 * that is the same, and where memory is short. */
size_t whit_git_changes(const whit_git_file *file, const void *text, size_t n_bytes, whit_git_change *changes,
                        size_t max);

#endif
