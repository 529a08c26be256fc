/* SPDX-License-Identifier: MIT
 * Compares a text with its file in the last commit, which a separate process reads by libgit2. Nothing is written to a
 * repository. */
#ifndef WHIT_CODE_GIT_H
#define WHIT_CODE_GIT_H

#include "base/mem.h"

typedef enum whit_git_kind {
    WHIT_GIT_ADDED,
    WHIT_GIT_CHANGED,
    WHIT_GIT_REMOVED, /* lines between `line` - 1 and `line` were removed; then n_lines is 0 */
} whit_git_kind;

typedef struct whit_git_change {
    uint64_t line, n_lines; /* first line and number of lines in the current text; lines are counted from 1 */
    whit_git_kind kind;
} whit_git_change;

typedef struct whit_git_file whit_git_file;

/* Begins to read a file as it is in HEAD, the last commit; `path` is absolute. Returns false, with *file NULL, if the
 * file is in no work tree, if this build has no libgit2, or if no process can be started. If libgit2 is not installed
 * on this machine, the result is true, but whit_git_is_known stays false. */
bool whit_git_ask(const char *path, whit_git_file **file);
/* Returns the descriptor to poll for reading while the content arrives; -1 once it has arrived. `file` may be NULL here
 * and in the functions below, except whit_git_changes. */
int whit_git_fd(const whit_git_file *file);
/* Reads the part of the content that has arrived, without waiting. */
void whit_git_pump(whit_git_file *file);
/* Returns whether the committed content is known. It is not known while it arrives, if the last commit does not contain
 * the file, if the file is binary or over 8 MiB, if libgit2 is not installed, or if reading failed or took too long. */
bool whit_git_is_known(const whit_git_file *file);
void whit_git_close(whit_git_file *file);
/* Compares a text with the committed content. Writes at most `max` changes, ordered by line, and returns the number of
 * all changes, which may be larger; 0 if the text is unchanged, the committed content is not known, or memory runs
 * out. */
size_t whit_git_changes(const whit_git_file *file, const void *text, size_t n_bytes, whit_git_change *changes,
                        size_t max);

#endif
