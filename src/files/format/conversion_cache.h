/* SPDX-License-Identifier: MIT
 * Manages the cache of converted models: one .ndf file per source, named by a hash of everything that the conversion
 * depends on. The folder must be private to the user (mode 0700, owned by the user); otherwise it is not used. */
#ifndef WHIT_FORMAT_CONVERSION_CACHE_H
#define WHIT_FORMAT_CONVERSION_CACHE_H

#include "base/mem.h"

/* Version of the converter (model/convert.h). It is hashed into every entry's name, and must change whenever the same
 * source would be converted to another file. */
#define WHIT_CONVERT_VERSION "10"

#define WHIT_CACHE_PATH_BYTES 4096
/* Size limit of the cache: beyond it, the files that were unused longest are removed. */
#define WHIT_CACHE_LIMIT_BYTES ((uint64_t)64 << 30)

typedef struct whit_cache_entry {
    char path[WHIT_CACHE_PATH_BYTES]; /* path of the converted file, which may not exist yet */
    char lock[WHIT_CACHE_PATH_BYTES];
    char folder[WHIT_CACHE_PATH_BYTES];
    int lock_fd; /* descriptor of the locked lock file; -1: not locked */
} whit_cache_entry;

/* Finds the cache folder: `cache_dir` if not NULL or "", else whit in $XDG_CACHE_HOME if that is an absolute path, else
 * $HOME/.cache/whit. Creates the folder if it is missing. The error is WHIT_ERROR_IO, with the reason, if the folder is
 * a symbolic link, or other users can access or own it. */
whit_status whit_cache_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error);

/* Like whit_cache_folder, but only computes the folder's path, without creating or checking the folder. */
whit_status whit_cache_name_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error);

/* Creates the cache folder like whit_cache_folder and computes the paths of a source's entry. Their name is a hash over
 * `version`, `options` and the path, device, inode, size and nanosecond mtime of every file that a conversion of `path`
 * may read. */
whit_status whit_cache_find(const char *cache_dir, const char *path, const char *version, const char *options,
                            whit_cache_entry *entry, whit_error *error);
/* Waits for the entry's lock. While one process converts a source, others that need the same file wait here. */
whit_status whit_cache_lock(whit_cache_entry *entry, whit_error *error);
void whit_cache_unlock(whit_cache_entry *entry);
/* Writes the source's path into the lock file, so that whit_cache_list can report it. The caller must hold the lock. */
void whit_cache_note_source(const whit_cache_entry *entry, const char *path);
/* Removes the remains of killed conversions. Then removes converted files, those unused longest first, until the rest
 * has at most `limit_bytes`. Never removes `entry` itself or an entry that is locked. */
void whit_cache_trim(const whit_cache_entry *entry, uint64_t limit_bytes);

/* ---- the contents of the cache ---------------------------------------------------------------- */

typedef struct whit_cached {
    char path[WHIT_CACHE_PATH_BYTES];   /* the converted file */
    char source[WHIT_CACHE_PATH_BYTES]; /* absolute path of the source; "" if it was not recorded */
    uint64_t size_bytes;
    int64_t modified_s;
} whit_cached;

/* Lists every converted file of the cache, sorted by source. The caller calls free() on *entries. If the folder does
 * not exist, there are no entries, and it is not created. */
whit_status whit_cache_list(const char *cache_dir, whit_cached **entries, size_t *n_entries, whit_error *error);
/* Removes the converted file that opening the source `path` without a family program and overrides would find in the
 * cache (cache_dir as in whit_cache_folder), and its lock file. Returns its size in bytes, 0 if there was no such file,
 * or it could not be removed, or it is locked, because a process is converting the source or about to use the file. */
uint64_t whit_cache_forget(const char *cache_dir, const char *path);
/* Removes an entry and its lock file. Returns false if the entry was removed before or cannot be removed, or if it is
 * locked, because the process that holds the lock may be about to use it. */
bool whit_cache_remove(const whit_cached *entry);

#endif
