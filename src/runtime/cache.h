/* SPDX-License-Identifier: MIT
 * The cache of converted sources: one .ndf per source, named by a hash of everything it was made
 * from. The folder is private to the user (0700, own), else it is not used. */
#ifndef WHIT_RUNTIME_CACHE_H
#define WHIT_RUNTIME_CACHE_H

#include "base/mem.h"

#define WHIT_CACHE_PATH_BYTES  4096
#define WHIT_CACHE_LIMIT_BYTES ((uint64_t)64 << 30) /* oldest files go first beyond it */

typedef struct whit_cache_entry {
    char path[WHIT_CACHE_PATH_BYTES]; /* where the converted file is or will be */
    char lock[WHIT_CACHE_PATH_BYTES];
    char folder[WHIT_CACHE_PATH_BYTES];
    int lock_fd; /* -1: not held */
} whit_cache_entry;

/* The folder that would be used: `cache_dir`, else $XDG_CACHE_HOME/whit, else $HOME/.cache/whit.
 * Made where it is missing; refused (WHIT_ERROR_IO, with the reason) where it is not private. */
whit_status whit_cache_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error);

/* Names the entry of a source: a hash over `version`, `options` and the path, inode, size and
 * nanosecond mtime of every file that a conversion of `path` reads. */
whit_status whit_cache_find(const char *cache_dir, const char *path, const char *version, const char *options,
                            whit_cache_entry *entry, whit_error *error);
/* Waits for the entry's lock, so that one process converts and others wait for the result. */
whit_status whit_cache_lock(whit_cache_entry *entry, whit_error *error);
void whit_cache_unlock(whit_cache_entry *entry);
/* Removes what killed conversions left, and the oldest files beyond `limit_bytes`; never the entry
 * itself, nor one whose lock another process holds. */
void whit_cache_trim(const whit_cache_entry *entry, uint64_t limit_bytes);

#endif
