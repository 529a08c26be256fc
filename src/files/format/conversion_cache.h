/* SPDX-License-Identifier: MIT
 * Manages the cache of converted sources: it has one .ndf per source, named by a hash of everything it was made from.
 * The folder must be private to the user (mode 0700, owned by the user); otherwise it is not used. */
#ifndef WHIT_FORMAT_CONVERSION_CACHE_H
#define WHIT_FORMAT_CONVERSION_CACHE_H

#include "base/mem.h"

/* The version of the converter (model/convert.h) is part of every entry's key. It changes whenever the same source
 * would be converted to another file. */
#define WHIT_CONVERT_VERSION "10"

#define WHIT_CACHE_PATH_BYTES  4096
#define WHIT_CACHE_LIMIT_BYTES ((uint64_t)64 << 30) /* when the cache is larger, the oldest files are removed first */

typedef struct whit_cache_entry {
    char path[WHIT_CACHE_PATH_BYTES]; /* where the converted file is or will be */
    char lock[WHIT_CACHE_PATH_BYTES];
    char folder[WHIT_CACHE_PATH_BYTES];
    int lock_fd; /* -1: not held */
} whit_cache_entry;

/* Finds the cache folder: `cache_dir`, else $XDG_CACHE_HOME/whit, else $HOME/.cache/whit. It is created if missing;
 * WHIT_ERROR_IO, with the reason, if it is not private. */
whit_status whit_cache_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error);

/* Finds only the folder's name; nothing is created or checked. */
whit_status whit_cache_name_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error);

/* Names the entry of a source: a hash over `version`, `options` and the path, inode, size and
 * nanosecond mtime of every file that a conversion of `path` reads. */
whit_status whit_cache_find(const char *cache_dir, const char *path, const char *version, const char *options,
                            whit_cache_entry *entry, whit_error *error);
/* Waits for the entry's lock, so that one process converts and others wait for the result. */
whit_status whit_cache_lock(whit_cache_entry *entry, whit_error *error);
void whit_cache_unlock(whit_cache_entry *entry);
/* Writes the source's path into the lock file, which must be held, so that whit_cache_list can name it. */
void whit_cache_note_source(const whit_cache_entry *entry, const char *path);
/* Removes the remains of killed conversions, and the oldest files beyond `limit_bytes`; never `entry` itself, nor an
 * entry whose lock another process holds. */
void whit_cache_trim(const whit_cache_entry *entry, uint64_t limit_bytes);

/* ---- the contents of the cache ---------------------------------------------------------------- */

typedef struct whit_cached {
    char path[WHIT_CACHE_PATH_BYTES];   /* the converted file */
    char source[WHIT_CACHE_PATH_BYTES]; /* absolute path of the source; "" if it was not recorded */
    uint64_t size_bytes;
    int64_t modified_s;
} whit_cached;

/* Lists every converted file of the folder, by source; the caller calls free() on *entries. A folder that does not
 * exist has no entries, and is not created. */
whit_status whit_cache_list(const char *cache_dir, whit_cached **entries, size_t *n_entries, whit_error *error);
/* Removes the converted file that opening the source `path` would find in the cache (cache_dir as in
 * whit_cache_folder). Returns its size in bytes, 0 if there was no such file. */
uint64_t whit_cache_forget(const char *cache_dir, const char *path);
/* Removes an entry; false if it was gone already, or a process is about to use it. */
bool whit_cache_remove(const whit_cached *entry);

#endif
