/* SPDX-License-Identifier: MIT
 * The store of pulled models: CACHE/hub/OWNER--NAME[@REVISION]/ holds a repository's files under
 * their own names, and ".pulled" says which of them are whole, with their digests. A file that is
 * still on its way ends in ".part" and is not in the record. */
#ifndef WHIT_HUB_STORE_H
#define WHIT_HUB_STORE_H

#include "hub/choose.h"
#include "format/conversion_cache.h"

typedef struct whit_hub_entry {
    whit_hub_name name; /* without a file */
    char folder[WHIT_CACHE_PATH_BYTES];
    whit_hub_listing files; /* as recorded, sorted; empty where nothing is whole yet */
    int64_t modified_s;     /* when the record was written, seconds since 1970 */
    int lock_fd;            /* -1: not held */
} whit_hub_entry;

/* Reads what there is of a repository; an empty entry where nothing is. cache_dir as in
 * whit_cache_folder. Close it in every case. */
whit_status whit_hub_entry_open(const char *cache_dir, const whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error);
void whit_hub_entry_close(whit_hub_entry *entry);
/* Makes the folder and takes its lock, for a pull or a removal; WHIT_ERROR_IO where another process
 * has it. Reads the record again. */
whit_status whit_hub_entry_lock(whit_hub_entry *entry, whit_error *error);
/* After a pull that brought nothing: removes the folder, unless something is in it. */
void whit_hub_entry_tidy(const whit_hub_entry *entry);
/* Writes entry->files as the record, atomically. */
whit_status whit_hub_entry_record(const whit_hub_entry *entry, whit_error *error);
/* The path of a repository's file with an ending ("" or ".part"). */
whit_status whit_hub_entry_path(const whit_hub_entry *entry, const char *file, const char *ending,
                                char path[WHIT_CACHE_PATH_BYTES], whit_error *error);
/* Is the file on disk with the size that was recorded? */
bool whit_hub_entry_has(const whit_hub_entry *entry, const whit_hub_file *file);

/* Every repository of the store, by name; *entries is closed and freed by whit_hub_store_free. */
whit_status whit_hub_store_list(const char *cache_dir, whit_hub_entry **entries, size_t *n_entries, whit_error *error);
void whit_hub_store_free(whit_hub_entry *entries, size_t n_entries);

/* Finds the repository that a user's words mean: its whole name, or the last part alone where only
 * one has it. WHIT_ERROR_IO where there is none or more than one. *name keeps the file asked for. */
whit_status whit_hub_store_find(const char *cache_dir, const char *text, whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error);
/* The path to open for those words: a folder, or the first part of a GGUF file. */
whit_status whit_hub_store_path(const char *cache_dir, const char *text, char path[WHIT_CACHE_PATH_BYTES],
                                whit_error *error);

/* Removes a repository, or with a file in the words that model alone, and the converted files made
 * from it. The bytes that each set free. */
typedef struct whit_hub_removed {
    uint64_t pulled_bytes, converted_bytes;
} whit_hub_removed;
whit_status whit_hub_store_remove(const char *cache_dir, const char *text, whit_hub_removed *removed,
                                  whit_error *error);

#endif
