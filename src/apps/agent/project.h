/* SPDX-License-Identifier: MIT
 * Finds and reads the files of a project. No path leads out of it, also not through links. */
#ifndef WHIT_AGENT_PROJECT_H
#define WHIT_AGENT_PROJECT_H

#include "base/mem.h"
#include "base/status.h"

#include <limits.h>

#define WHIT_PROJECT_FILE_BYTES ((size_t)256 << 20) /* maximum size of a file that is read */

/* Returns whether a file must not be shown to a model or a command: whit_guard_is_hidden(), or a link with a secret
 * name leads to it. `path` is its path as it was given, `real` the absolute one without links; `opened` describes the
 * file if it is open; else NULL. */
struct stat;
bool whit_project_hides(const char *project, const char *path, const char *real, const struct stat *opened);

/* What is known of a file that was read. */
typedef struct whit_project_file {
    bool exists;
    bool is_hidden; /* must not be shown (whit_project_hides) */
    uint32_t mode;
    uint64_t place; /* value of whit_project_place() */
} whit_project_file;

/* Reads a whole file below the project, and says what it is. The path is resolved, then the file is opened by its real
 * path without following any link, and that path and the opened file are looked at: what another program puts in the
 * place of a folder meanwhile leads nowhere. Refuses the same as whit_project_read(). */
whit_status whit_project_read_file(const char *project, const char *path, whit_buf *content, whit_project_file *file,
                                   whit_error *error);
/* Returns the path below the project of a file that may be a link, such as AGENTS.md, even if it does not exist. For a
 * link, which usually leads to another program's file, it is the target's path, in `real`. Returns NULL if the target
 * is not a regular file in the project, or must not be shown. */
const char *whit_project_follow(const char *project, const char *name, char real[PATH_MAX]);
/* Lists a folder below the project, which is opened in the same way; "" is the project. Returns the number of names, 0
 * for a folder that must not be shown; they are sorted, and each follows a byte that is '/' for a folder, else '-'. The
 * caller frees each name and *names. */
size_t whit_project_list(const char *project, const char *path, char ***names);
/* Reads a regular file of a copy of the project, in which commands may have put links: none is followed. *exists is
 * false if there is no such file. */
whit_status whit_project_read_copied(const char *folder, const char *path, size_t limit_bytes, whit_buf *content,
                                     bool *exists, whit_error *error);
/* Reads a whole file below the project for a change: `content` gets its text; *exists and *mode are set. Refuses paths
 * as whit_project_resolve() does and, in place of the file, links, devices and folders. A file that does not exist is
 * not an error. */
whit_status whit_project_read(const char *project, const char *path, whit_buf *content, bool *exists, uint32_t *mode,
                              whit_error *error);
/* Returns a digest of the place to which a path currently leads with links followed; it differs after a folder of the
 * path was replaced by a link to another place. Returns 0 if the path is not valid in the project. */
uint64_t whit_project_place(const char *project, const char *path);
/* Writes the path of a file below the project with the links of its folders followed, so that a file has one name only.
 * Errors: argument, io. */
whit_status whit_project_name(const char *project, const char *path, char name[PATH_MAX], whit_error *error);
/* Only makes the checks of whit_project_resolve(). Errors: argument, io. */
whit_status whit_project_holds(const char *project, const char *path, whit_error *error);

/* Writes the absolute path of a file after checks: the path must be plain (whit_agent_path_is_plain), and its folder,
 * with links followed, must be below the project and not in the folder of this program's own state; the file must not
 * be one of its files (whit_guard_is_own_file). `place` (PATH_MAX bytes, may be NULL) gets the file's real path: the
 * nearest existing folder with links followed, and the rest of the path. Results are not cached, because a folder that
 * was checked may have become a link. */
whit_status whit_project_resolve(const char *project, const char *path, char full[PATH_MAX], char *place,
                                 whit_error *error);

#endif
