/* SPDX-License-Identifier: MIT
 * Finds the changes that a task made in its copy of a project, by comparing hashes of the files before the task with
 * the files of the copy and of the project. */
#ifndef WHIT_AGENT_SNAPSHOT_H
#define WHIT_AGENT_SNAPSHOT_H

#include "agent/changes.h"
#include "base/hash.h"

#include <limits.h>

/* Path and content hash of a file. */
typedef struct whit_file_hash {
    char *path;
    uint8_t hash[WHIT_HASH_BYTES];
} whit_file_hash;

/* Files of a folder, sorted by path. */
typedef struct whit_snapshot {
    const char *folder;
    whit_file_hash *files;
    size_t n, capacity;
    bool failed;
    whit_error error;
} whit_snapshot;

/* Hashes the regular files of a folder. It leaves out files that cannot be read or have more than 64 MiB. `folder` must
 * stay valid as long as the snapshot; free the snapshot in every case. Errors: memory, limit (files that cannot be
 * reached). */
whit_status whit_snapshot_take(whit_snapshot *s, const char *folder, whit_error *error);
void whit_snapshot_free(whit_snapshot *s);

/* Stages all files that changed in the folder since `before` was taken, as changes of the project, except files that
 * the project already has in this state. `conflict` gets the path of the first of them whose content in the project is
 * neither the old nor the new one, or ""; it is staged, too. Errors: memory, io, limit, argument (a path that
 * whit_project_resolve refuses). */
whit_status whit_snapshot_stage(const whit_snapshot *before, const char *project, whit_changes *set,
                                char conflict[PATH_MAX], whit_error *error);

#endif
