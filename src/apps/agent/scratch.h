/* SPDX-License-Identifier: MIT
 * A copy of the project in which commands run, kept between runs so that builds stay incremental.
 *
 * Files that .gitignore leaves out, version control's own, .env files and keys are not copied. A file is
 * copied again where the project's or the copy's has changed, told by size, times and inode; a command
 * cannot set the change time. Copies are reflinks where the file system has them. What commands left in the
 * copy is theirs: nothing of it is followed or trusted when files are put there. */
#ifndef WHIT_AGENT_SCRATCH_H
#define WHIT_AGENT_SCRATCH_H

#include "agent/changes.h"

#include <limits.h>

typedef struct whit_scratch {
    char folder[PATH_MAX];     /* contains the two below */
    char tree[PATH_MAX + 8];   /* the copy */
    char home[PATH_MAX + 8];   /* HOME and TMPDIR of commands */
    int lock, tree_fd;         /* lock for one user at a time; descriptor of the copy */
    uint32_t n_copied, n_same; /* counts of the last update */
    /* The next update removes files that are neither in the project nor ignored by .gitignore. */
    bool removes_strangers;
} whit_scratch;

/* How to wait for a copy that another process is using. */
typedef struct whit_scratch_wait {
    const volatile bool *cancel;                /* NULL: never */
    void (*note)(void *user, const char *line); /* called once when this process begins to wait; may be NULL */
    void *user;
} whit_scratch_wait;

/* Opens the copy `name` of a project, waiting while another process uses it. `cache_dir` NULL: the usual.
 * Errors: io, limit, memory, cancelled. */
whit_status whit_scratch_open(const char *project, const char *cache_dir, const char *name,
                              const whit_scratch_wait *wait, whit_scratch *scratch, whit_error *error);
/* Makes the copy as the project is, with the staged changes (may be NULL) on top. Errors: io, memory, limit. */
whit_status whit_scratch_update(whit_scratch *scratch, const char *project, const whit_changes *staged,
                                whit_error *error);
/* A pass of checks runs changes that nobody may have seen, and what they leave would be obeyed by the next pass. So the
 * home is emptied, and the copy too, unless the changes of the last pass were written; of a copy that stays the next
 * update removes strangers. `number` names the pass. Errors: io, limit. */
#define WHIT_PASS_BYTES 17
whit_status whit_scratch_begin_pass(whit_scratch *scratch, char number[WHIT_PASS_BYTES], whit_error *error);
/* Records that the changes of that pass were written; no effect if another pass has begun since. */
void whit_scratch_end_pass(const whit_scratch *scratch, const char *number);
/* Removes all that the copy and its home hold; the next update fills the copy again. */
void whit_scratch_empty(const whit_scratch *scratch);
/* Releases the lock; the copy stays. */
void whit_scratch_close(whit_scratch *scratch);

#endif
