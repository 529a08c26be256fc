/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/store.h"

/* Creates the missing parent folders of the file at `path`, which is in the entry's folder. */
static whit_status make_above(const whit_hub_entry *entry, char *path, whit_error *error)
{
    for (char *slash = path + strlen(entry->folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        whit_status status = failed ? whit_fail_errno(error, path, "create this folder") : WHIT_OK;
        *slash = '/';
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

/* Creates hard links to the chosen files in the folder of `to`, and adds the files to its record. */
static whit_status link_files(const whit_hub_entry *from, const whit_hub_choice *choice, whit_hub_entry *to,
                              whit_error *error)
{
    char old_path[WHIT_CACHE_PATH_BYTES], new_path[WHIT_CACHE_PATH_BYTES];
    for (size_t i = 0; i < choice->n_files; i++) {
        const whit_hub_file *file = &from->files.files[choice->files[i]];
        WHIT_TRY(whit_hub_entry_path(from, file->path, "", old_path, error));
        WHIT_TRY(whit_hub_entry_path(to, file->path, "", new_path, error));
        WHIT_TRY(make_above(to, new_path, error));
        if (link(old_path, new_path) != 0 && errno != EEXIST)
            return whit_fail_errno(error, new_path, "create this link");
        WHIT_TRY(whit_hub_listing_add(&to->files, file, error));
    }
    WHIT_TRY(whit_hub_listing_sort(&to->files, to->folder, error));
    return whit_hub_entry_record(to, error);
}

whit_status whit_hub_store_copy(const char *cache_dir, const char *from_text, const char *to_text, whit_error *error)
{
    whit_hub_name from_name, to_name;
    whit_hub_entry from, to = {.lock_fd = -1};
    whit_hub_choice choice = {0};
    WHIT_TRY(whit_hub_name_parse(to_text, &to_name, error));
    if (to_name.file[0])
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: a copy's name is NAME or OWNER/NAME, without a tag",
                         to_text);
    WHIT_TRY(whit_hub_store_find(cache_dir, from_text, &from_name, &from, error));
    whit_status status = whit_hub_entry_lock(&from, error);
    if (status == WHIT_OK) status = whit_hub_choose(&from.files, from_text, from_name.file, &choice, error);
    if (status == WHIT_OK && choice.kind == WHIT_HUB_FOLDER) {
        /* A folder's model has all files of the record: its shards, which are not chosen here, are in the record
         * too. */
        size_t *all = realloc(choice.files, from.files.n_files * sizeof *all);
        if (!all) status = whit_fail_memory(error, from_text, from.files.n_files * sizeof *all);
        if (all) choice.files = all;
        for (size_t i = 0; all && i < from.files.n_files; i++) all[i] = i;
        if (all) choice.n_files = from.files.n_files;
    }
    if (status == WHIT_OK) status = whit_hub_entry_open(cache_dir, &to_name, &to, error);
    if (status == WHIT_OK) status = whit_hub_entry_lock(&to, error);
    if (status == WHIT_OK && to.files.n_files)
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: exists already", to_text);
    if (status == WHIT_OK) status = link_files(&from, &choice, &to, error);
    if (to.lock_fd >= 0) whit_hub_entry_tidy(&to);
    whit_hub_choice_free(&choice);
    whit_hub_entry_close(&from);
    whit_hub_entry_close(&to);
    return status;
}
