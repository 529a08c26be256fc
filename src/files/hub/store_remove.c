/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/store.h"

/* Removes one file or folder, as nftw calls it for everything in a repository's folder. Symbolic links are removed, not
 * followed. */
static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)at;
    return type == FTW_DP || type == FTW_D ? rmdir(path) : unlink(path);
}

static uint64_t disk_bytes(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

/* Returns the total size of the files below a folder, recursively. The depth is limited by the length of a path. */
static uint64_t folder_bytes(const char *folder)
{
    char path[WHIT_CACHE_PATH_BYTES];
    struct dirent **items = NULL;
    int n = scandir(folder, &items, NULL, NULL);
    uint64_t total = 0;
    for (int i = 0; i < n; i++) {
        struct stat info;
        const char *name = items[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && lstat(path, &info) == 0)
            total += S_ISDIR(info.st_mode) ? folder_bytes(path) : disk_bytes(path);
        free(items[i]);
    }
    free(items);
    return total;
}

uint64_t whit_hub_entry_bytes(const whit_hub_entry *entry)
{
    return folder_bytes(entry->folder);
}

/* Removes the files that were converted from the models of the record; returns their total size. */
static uint64_t forget_converted(const char *cache_dir, const whit_hub_entry *entry)
{
    char path[WHIT_CACHE_PATH_BYTES];
    uint64_t total = 0;
    if (whit_hub_listing_find(&entry->files, "config.json")) total += whit_cache_forget(cache_dir, entry->folder);
    for (size_t i = 0; i < entry->files.n_files; i++) {
        size_t stem_bytes;
        unsigned part, n_parts;
        if (whit_hub_gguf_stem(entry->files.files[i].path, &stem_bytes, &part, &n_parts) && part == 1 &&
            whit_hub_entry_path(entry, entry->files.files[i].path, "", path, NULL) == WHIT_OK)
            total += whit_cache_forget(cache_dir, path);
    }
    return total;
}

static whit_status remove_all(const char *cache_dir, whit_hub_entry *entry, whit_hub_removed *removed,
                              whit_error *error)
{
    removed->converted_bytes = forget_converted(cache_dir, entry);
    removed->pulled_bytes = folder_bytes(entry->folder);
    /* The record is emptied first: after a crash the folder looks like an unfinished download, not like a complete
     * model. */
    whit_hub_listing_free(&entry->files);
    WHIT_TRY(whit_hub_entry_record(entry, error));
    if (nftw(entry->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return whit_fail_errno(error, entry->folder, "remove");
    return WHIT_OK;
}

/* Removes the chosen files and deletes them from the record; the repository's other files stay. */
static whit_status remove_chosen(const char *cache_dir, whit_hub_entry *entry, const whit_hub_choice *choice,
                                 whit_hub_removed *removed, whit_error *error)
{
    char path[WHIT_CACHE_PATH_BYTES];
    whit_hub_entry left = *entry;
    left.files = (whit_hub_listing){0};
    WHIT_TRY(whit_hub_entry_path(entry, entry->files.files[choice->files[0]].path, "", path, error));
    if (choice->kind == WHIT_HUB_GGUF) removed->converted_bytes = whit_cache_forget(cache_dir, path);
    whit_status status = WHIT_OK;
    for (size_t i = 0; i < entry->files.n_files && status == WHIT_OK; i++) {
        bool chosen = false;
        for (size_t k = 0; k < choice->n_files; k++) chosen = chosen || choice->files[k] == i;
        if (!chosen) status = whit_hub_listing_add(&left.files, &entry->files.files[i], error);
    }
    if (status == WHIT_OK) status = whit_hub_entry_record(&left, error);
    for (size_t k = 0; k < choice->n_files && status == WHIT_OK; k++) {
        status = whit_hub_entry_path(entry, entry->files.files[choice->files[k]].path, "", path, error);
        uint64_t bytes = disk_bytes(path);
        if (status == WHIT_OK && unlink(path) != 0 && errno != ENOENT) status = whit_fail_errno(error, path, "remove");
        if (status == WHIT_OK) removed->pulled_bytes += bytes;
    }
    whit_hub_listing_free(&left.files);
    return status;
}

whit_status whit_hub_store_remove(const char *cache_dir, const char *text, whit_hub_removed *removed, whit_error *error)
{
    whit_hub_name name;
    whit_hub_entry entry;
    whit_hub_choice choice = {0};
    *removed = (whit_hub_removed){0};
    WHIT_TRY(whit_hub_store_find(cache_dir, text, &name, &entry, error));
    whit_status status = whit_hub_entry_lock(&entry, error);
    if (status == WHIT_OK && !name.file[0]) status = remove_all(cache_dir, &entry, removed, error);
    if (status == WHIT_OK && name.file[0]) {
        status = whit_hub_choose(&entry.files, text, name.file, &choice, error);
        /* The last model's removal also removes the repository's folder. */
        if (status == WHIT_OK && choice.n_files == entry.files.n_files)
            status = remove_all(cache_dir, &entry, removed, error);
        else if (status == WHIT_OK)
            status = remove_chosen(cache_dir, &entry, &choice, removed, error);
    }
    whit_hub_choice_free(&choice);
    whit_hub_entry_close(&entry);
    return status;
}

/* Returns whether the chosen file `file` is at `below`, a path in the repository's folder, or inside it. `below` ""
 * means the repository's folder itself, which counts as the model unless the choice is a GGUF model. */
static bool is_part_of(const char *file, const char *below, whit_hub_kind kind)
{
    const size_t n = strlen(below);
    return n ? strncmp(file, below, n) == 0 && (file[n] == '/' || !file[n]) : kind != WHIT_HUB_GGUF;
}

bool whit_hub_store_would_remove(const char *cache_dir, const char *text, const char *path)
{
    whit_hub_name name;
    whit_hub_entry entry;
    whit_hub_choice choice = {0};
    char *folder = NULL, *kept = realpath(path, NULL);
    bool would = false;
    if (kept && whit_hub_store_find(cache_dir, text, &name, &entry, NULL) == WHIT_OK) {
        folder = realpath(entry.folder, NULL);
        const size_t n = folder ? strlen(folder) : 0;
        const bool is_below = n && strncmp(kept, folder, n) == 0 && (kept[n] == '/' || !kept[n]);
        if (is_below && !name.file[0])
            would = true;
        else if (is_below && whit_hub_choose(&entry.files, text, name.file, &choice, NULL) == WHIT_OK)
            would = choice.n_files == entry.files.n_files;
        for (size_t i = 0; is_below && !would && i < choice.n_files; i++)
            would = is_part_of(entry.files.files[choice.files[i]].path, kept + n + (kept[n] == '/'), choice.kind);
        whit_hub_choice_free(&choice);
        whit_hub_entry_close(&entry);
    }
    free(folder);
    free(kept);
    return would;
}
