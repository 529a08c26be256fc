/* SPDX-License-Identifier: MIT
 * Keeps a copy of the project in which commands run. The copy stays between runs, so that builds are incremental.
 *
 * Files that .gitignore excludes, version control's own files, .env files and keys are not copied. A file is copied
 * again if size, times or inode show that the project's file or its copy has changed; a command cannot forge the
 * change time. Copies are reflinks if the file system supports them. Files and links that commands left in the copy are
 * not trusted: a file is written only after the entry of its name was removed, and links are never followed. */
#ifndef WHIT_AGENT_SCRATCH_H
#define WHIT_AGENT_SCRATCH_H

#include "agent/changes.h"

#include <limits.h>

typedef struct whit_scratch {
    char folder[PATH_MAX];   /* folder that contains `tree` and `home` */
    char tree[PATH_MAX + 8]; /* folder with the copy of the project */
    char home[PATH_MAX + 8]; /* folder that commands get as HOME and TMPDIR */
    /* lock: descriptor of the lock file, which one process locks at a time; tree_fd: descriptor of `tree` */
    int lock, tree_fd;
    uint32_t n_copied, n_same; /* numbers of files that the last update copied, and that it found unchanged */
    bool is_part;              /* the last update did not reach all files of the project (whit_walk) */
    /* the next update removes files that are neither in the project nor ignored by .gitignore */
    bool removes_strangers;
} whit_scratch;

/* How to wait for a copy that another process is using. */
typedef struct whit_scratch_wait {
    /* ends waiting when it becomes true; NULL: waiting is never cancelled */
    const volatile bool *cancel;
    void (*note)(void *user, const char *line); /* called once when this process begins to wait; may be NULL */
    void *user;
} whit_scratch_wait;

/* Opens and locks the copy `name` of a project; waits while another process uses it. `cache_dir` NULL: the default
 * cache folder. Errors: io, limit, memory, cancelled. */
whit_status whit_scratch_open(const char *project, const char *cache_dir, const char *name,
                              const whit_scratch_wait *wait, whit_scratch *scratch, whit_error *error);
/* Copies the project's changed files into the copy, removes files that were deleted in the project, and applies the
 * staged changes (may be NULL). Leaves out files that .gitignore excludes, secrets, and files that contain keys. Files
 * that commands have created stay, unless removes_strangers is set. Errors: io, memory, limit. */
whit_status whit_scratch_update(whit_scratch *scratch, const char *project, const whit_changes *staged,
                                whit_error *error);
/* Begins a pass of checks. Checks may run changes that nobody has reviewed, and a later pass would obey the files that
 * they leave. So the home folder is emptied, and also the copy, unless the changes of the last pass were written to the
 * project. If the copy stays, the next update removes unknown files from it. `number` gets the number of the pass, as
 * hexadecimal text. Errors: io, limit. */
#define WHIT_PASS_BYTES 17
whit_status whit_scratch_begin_pass(whit_scratch *scratch, char number[WHIT_PASS_BYTES], whit_error *error);
/* Records that the changes of the pass `number` were written. Has no effect if another pass has begun since. */
void whit_scratch_end_pass(const whit_scratch *scratch, const char *number);
/* Removes all files of the copy and its home folder; the next update fills the copy again. */
void whit_scratch_empty(const whit_scratch *scratch);
/* Unlocks the copy, which stays on the disk. */
void whit_scratch_close(whit_scratch *scratch);

#endif
