/* SPDX-License-Identifier: MIT
 * Manages the store of pulled models. CACHE/hub/OWNER--NAME[@REVISION]/ contains a repository's files under their own
 * names, and the record ".pulled", which lists the complete files with their digests. The name of an unfinished file
 * ends in ".part"; the record does not list it. */
#ifndef WHIT_HUB_STORE_H
#define WHIT_HUB_STORE_H

#include "hub/choose.h"
#include "format/conversion_cache.h"

typedef struct whit_hub_entry {
    whit_hub_name name; /* name of the repository; its `file` is "" */
    char folder[WHIT_CACHE_PATH_BYTES];
    whit_hub_listing files; /* files of the record, sorted; empty if no file is complete */
    int64_t modified_s;     /* when the record was written, seconds since 1970 */
    int lock_fd;            /* -1: not held */
} whit_hub_entry;

/* Reads a repository's record into `entry`, which has no files if the record is absent or damaged. cache_dir as in
 * whit_cache_folder. The caller calls whit_hub_entry_close even after an error. */
whit_status whit_hub_entry_open(const char *cache_dir, const whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error);
void whit_hub_entry_close(whit_hub_entry *entry);
/* Creates the repository's folder and locks it, for a pull or a removal, then reads the record again. The error is
 * WHIT_ERROR_IO if another process holds the lock. */
whit_status whit_hub_entry_lock(whit_hub_entry *entry, whit_error *error);
/* If the lock is held and the record has no files, removes the lock file and, if it is empty then, the repository's
 * folder, as after a failed pull. */
void whit_hub_entry_tidy(const whit_hub_entry *entry);
/* Returns the total size of the files in the repository's folder, including unfinished downloads. */
uint64_t whit_hub_entry_bytes(const whit_hub_entry *entry);
/* Writes entry->files as the record, atomically; removes the record if there are no files. */
whit_status whit_hub_entry_record(const whit_hub_entry *entry, whit_error *error);
/* Writes the path of `file` in the repository's folder, followed by `ending` ("" or ".part"). */
whit_status whit_hub_entry_path(const whit_hub_entry *entry, const char *file, const char *ending,
                                char path[WHIT_CACHE_PATH_BYTES], whit_error *error);
/* Returns whether the file is on disk and has the recorded size. */
bool whit_hub_entry_has(const whit_hub_entry *entry, const whit_hub_file *file);

/* Lists every repository of the store, sorted by folder. The caller releases *entries with whit_hub_store_free. */
whit_status whit_hub_store_list(const char *cache_dir, whit_hub_entry **entries, size_t *n_entries, whit_error *error);
void whit_hub_store_free(whit_hub_entry *entries, size_t n_entries);

/* Finds the repository that `text` names: by its full name, or by NAME alone if only one repository has it. The error
 * is WHIT_ERROR_IO unless exactly one matches. *name keeps the file that `text` requests. */
whit_status whit_hub_store_find(const char *cache_dir, const char *text, whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error);
/* Returns whether no file or folder exists at `path`; then `path` may be the name of a model in the store. */
bool whit_hub_lacks_file(const char *path);
/* Writes the path that opens the model named `text`: a folder, the first part of a GGUF file, or another file that
 * `text` requests. A download that is not complete is an error (WHIT_ERROR_IO). */
whit_status whit_hub_store_path(const char *cache_dir, const char *text, char path[WHIT_CACHE_PATH_BYTES],
                                whit_error *error);

/* Adds a pulled model under a second name: NAME or OWNER/NAME. Its files are hard links. The error is
 * WHIT_ERROR_ARGUMENT if a model of that name exists. */
whit_status whit_hub_store_copy(const char *cache_dir, const char *from_text, const char *to_text, whit_error *error);

/* Returns whether whit_hub_store_remove(`text`) would delete the file or folder at `path`. */
bool whit_hub_store_would_remove(const char *cache_dir, const char *text, const char *path);
/* Sizes of the files that a removal has deleted: pulled files, and files converted from them. A file with another hard
 * link (whit_hub_store_copy) frees no disk space. whit_hub_store_remove removes a repository, or only one model of it
 * if `text` requests a file. */
typedef struct whit_hub_removed {
    uint64_t pulled_bytes, converted_bytes;
} whit_hub_removed;
whit_status whit_hub_store_remove(const char *cache_dir, const char *text, whit_hub_removed *removed,
                                  whit_error *error);

#endif
