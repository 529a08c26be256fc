/* SPDX-License-Identifier: MIT
 * Keeps a copy of the project in which commands run. It stays between runs, so that builds stay incremental.
 *
 * Files that .gitignore leaves out, version control's own files, .env files and keys are not copied. A file is copied
 * again if the project's file or its copy has changed, as size, times and inode show; a command cannot set the change
 * time. Copies are reflinks if the file system has them. Files and links that commands left in the copy are never
 * followed or trusted when files are put there. */
#ifndef WHIT_AGENT_SCRATCH_H
#define WHIT_AGENT_SCRATCH_H

#include "agent/changes.h"

#include <limits.h>

typedef struct whit_scratch {
    char folder[PATH_MAX];   /* folder of the two below */
    char tree[PATH_MAX + 8]; /* the copy */
    char home[PATH_MAX + 8]; /* HOME and TMPDIR of commands */
    /* lock: descriptor of the lock, which one process holds at a time; tree_fd: descriptor of the copy */
    int lock, tree_fd;
    uint32_t n_copied, n_same; /* counts of the last update */
    /* The next update removes files that are neither in the project nor ignored by .gitignore. */
    bool removes_strangers;
} whit_scratch;

/* Describes how to wait for a copy that another process is using. */
typedef struct whit_scratch_wait {
    const volatile bool *cancel;                /* ends waiting when it is set; NULL: waiting is never cancelled */
    void (*note)(void *user, const char *line); /* called once when this process begins to wait; may be NULL */
    void *user;
} whit_scratch_wait;

/* Opens the copy `name` of a project, and waits while another process uses it. With `cache_dir` NULL the copy is in the
 * usual folder. Errors: io, limit, memory, cancelled. */
whit_status whit_scratch_open(const char *project, const char *cache_dir, const char *name,
                              const whit_scratch_wait *wait, whit_scratch *scratch, whit_error *error);
/* Makes the copy equal to the project, with the staged changes (may be NULL) on top. Errors: io, memory, limit. */
whit_status whit_scratch_update(whit_scratch *scratch, const char *project, const whit_changes *staged,
                                whit_error *error);
/* Begins a pass of checks. The checks may run changes that nobody has seen, and the next pass would obey the files
 * that they leave. So the home folder is emptied, and the copy too, unless the changes of the last pass were
 * written. If the copy stays, the next update removes unknown files from it. `number` gets the number of the pass.
 * Errors: io, limit. */
#define WHIT_PASS_BYTES 17
whit_status whit_scratch_begin_pass(whit_scratch *scratch, char number[WHIT_PASS_BYTES], whit_error *error);
/* Records that the changes of that pass were written; has no effect if another pass has begun since. */
void whit_scratch_end_pass(const whit_scratch *scratch, const char *number);
/* Removes all files of the copy and its home folder; the next update fills the copy again. */
void whit_scratch_empty(const whit_scratch *scratch);
/* Releases the lock; the copy stays. */
void whit_scratch_close(whit_scratch *scratch);

#endif
