/* SPDX-License-Identifier: MIT
 * Manages the store of pulled models: CACHE/hub/OWNER--NAME[@REVISION]/ holds a repository's files under their own
 * names, and the record ".pulled" lists the complete ones with their digests. An unfinished file ends in ".part" and is
 * not in the record. */
#ifndef WHIT_HUB_STORE_H
#define WHIT_HUB_STORE_H

#include "hub/choose.h"
#include "format/conversion_cache.h"

typedef struct whit_hub_entry {
    whit_hub_name name; /* without a file */
    char folder[WHIT_CACHE_PATH_BYTES];
    whit_hub_listing files; /* from the record, sorted; empty if no file is complete */
    int64_t modified_s;     /* when the record was written, seconds since 1970 */
    int lock_fd;            /* -1: not held */
} whit_hub_entry;

/* Reads a repository's record; the entry is empty if there is nothing. cache_dir as in whit_cache_folder. Close the
 * entry in every case. */
whit_status whit_hub_entry_open(const char *cache_dir, const whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error);
void whit_hub_entry_close(whit_hub_entry *entry);
/* Creates the folder and takes its lock, for a pull or a removal, then reads the record again. The error is
 * WHIT_ERROR_IO if another process holds the lock. */
whit_status whit_hub_entry_lock(whit_hub_entry *entry, whit_error *error);
/* Removes the folder after a pull without a result, if it is empty. */
void whit_hub_entry_tidy(const whit_hub_entry *entry);
/* Returns the bytes of all files in the repository's folder, those of an unfinished download, too. */
uint64_t whit_hub_entry_bytes(const whit_hub_entry *entry);
/* Writes entry->files as the record, atomically. */
whit_status whit_hub_entry_record(const whit_hub_entry *entry, whit_error *error);
/* Writes the path of a repository's file with an ending ("" or ".part"). */
whit_status whit_hub_entry_path(const whit_hub_entry *entry, const char *file, const char *ending,
                                char path[WHIT_CACHE_PATH_BYTES], whit_error *error);
/* Returns whether the file is on disk, with the recorded size. */
bool whit_hub_entry_has(const whit_hub_entry *entry, const whit_hub_file *file);

/* Lists every repository of the store, by name; whit_hub_store_free closes and frees *entries. */
whit_status whit_hub_store_list(const char *cache_dir, whit_hub_entry **entries, size_t *n_entries, whit_error *error);
void whit_hub_store_free(whit_hub_entry *entries, size_t n_entries);

/* Finds the repository named by `text`: its full name, or its last component if only one repository has it. The error
 * is WHIT_ERROR_IO unless exactly one matches. *name keeps the requested file. */
whit_status whit_hub_store_find(const char *cache_dir, const char *text, whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error);
/* Returns whether there is neither a file nor a folder of that name; a name of the store may then mean a model. */
bool whit_hub_lacks_file(const char *path);
/* Writes the path to open for `text`: a folder, or the first part of a GGUF file. */
whit_status whit_hub_store_path(const char *cache_dir, const char *text, char path[WHIT_CACHE_PATH_BYTES],
                                whit_error *error);

/* Gives a pulled model a second name: NAME or OWNER/NAME. Its files are hard links. The error is WHIT_ERROR_ARGUMENT if
 * there is a model of that name already. */
whit_status whit_hub_store_copy(const char *cache_dir, const char *from_text, const char *to_text, whit_error *error);

/* Returns whether a removal of `text`, in any spelling of the name, would delete the file or folder at `path`. */
bool whit_hub_store_would_remove(const char *cache_dir, const char *text, const char *path);
/* Counts the bytes that a removal has freed. whit_hub_store_remove removes a repository, or, if `text` names a file,
 * only that model; also the files converted from it. */
typedef struct whit_hub_removed {
    uint64_t pulled_bytes, converted_bytes;
} whit_hub_removed;
whit_status whit_hub_store_remove(const char *cache_dir, const char *text, whit_hub_removed *removed,
                                  whit_error *error);

#endif
