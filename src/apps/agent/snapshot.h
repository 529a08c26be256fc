/* SPDX-License-Identifier: MIT
 * Finds the changes that a task made in its copy of a project: compares the hashes of the files before the task with
 * the files of the copy and of the project. */
#ifndef WHIT_AGENT_SNAPSHOT_H
#define WHIT_AGENT_SNAPSHOT_H

#include "agent/changes.h"
#include "base/hash.h"

#include <limits.h>

/* Holds a file's path and the hash of its content. */
typedef struct whit_file_hash {
    char *path;
    uint8_t hash[WHIT_HASH_BYTES];
} whit_file_hash;

/* Holds the files of a folder, sorted by name. */
typedef struct whit_snapshot {
    const char *folder;
    whit_file_hash *files;
    size_t n, capacity;
    bool failed;
    whit_error error;
} whit_snapshot;

/* Hashes the regular files of a folder, whose name must outlive the snapshot; free it in every case. Errors: memory. */
whit_status whit_snapshot_take(whit_snapshot *s, const char *folder, whit_error *error);
void whit_snapshot_free(whit_snapshot *s);

/* Stages all files of the folder that changed since `before` was taken, as changes of the project. *conflict becomes
 * the first of these files whose content in the project is neither the old nor the new one, or "" if there is no such
 * file. Errors: memory, io. */
whit_status whit_snapshot_stage(const whit_snapshot *before, const char *project, whit_changes *set,
                                char conflict[PATH_MAX], whit_error *error);

#endif
