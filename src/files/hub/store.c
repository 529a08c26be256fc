/* SPDX-License-Identifier: MIT */
#include "hub/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#define RECORD         ".pulled"
#define LOCK           ".lock"
#define REPOSITORY_MAX 4096

/* ---- one repository ------------------------------------------------------------------------- */

whit_status whit_hub_entry_path(const whit_hub_entry *entry, const char *file, const char *ending,
                                char path[WHIT_CACHE_PATH_BYTES], whit_error *error)
{
    if (snprintf(path, WHIT_CACHE_PATH_BYTES, "%s/%s%s", entry->folder, file, ending) < WHIT_CACHE_PATH_BYTES)
        return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the path in the cache folder is longer than 4,095 bytes, the limit",
                     file);
}

bool whit_hub_entry_has(const whit_hub_entry *entry, const whit_hub_file *file)
{
    char path[WHIT_CACHE_PATH_BYTES];
    struct stat info;
    return whit_hub_entry_path(entry, file->path, "", path, NULL) == WHIT_OK && lstat(path, &info) == 0 &&
        S_ISREG(info.st_mode) && (uint64_t)info.st_size == file->size_bytes;
}

/* Reads the record. If it is missing or damaged, the entry has no files; the next pull finds the files on disk and
 * checks their digests. */
static whit_status read_record(whit_hub_entry *entry, whit_error *error)
{
    char path[WHIT_CACHE_PATH_BYTES];
    struct stat info;
    whit_buf text = {0};
    whit_hub_listing_free(&entry->files);
    WHIT_TRY(whit_hub_entry_path(entry, RECORD, "", path, error));
    if (stat(path, &info) != 0) return WHIT_OK;
    entry->modified_s = (int64_t)info.st_mtim.tv_sec;
    whit_status status = whit_read_file(path, WHIT_HUB_ANSWER_BYTES_MAX, &text, error);
    if (status == WHIT_OK)
        status = whit_hub_listing_add_tree(&entry->files, path, whit_chars(&text), text.size_bytes, error);
    if (status == WHIT_OK) status = whit_hub_listing_sort(&entry->files, path, error);
    whit_buf_free(&text);
    if (status == WHIT_OK) return WHIT_OK;
    whit_hub_listing_free(&entry->files);
    return status == WHIT_ERROR_FORMAT ? WHIT_OK : status;
}

static whit_status store_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error)
{
    WHIT_TRY(whit_cache_folder(cache_dir, folder, error));
    size_t n = strlen(folder);
    if (n + sizeof "/hub" > WHIT_CACHE_PATH_BYTES)
        return whit_fail(error, WHIT_ERROR_IO,
                         "the cache folder's path is too long, over 3,900 bytes: set XDG_CACHE_HOME to a shorter one");
    memcpy(folder + n, "/hub", sizeof "/hub");
    return WHIT_OK;
}

whit_status whit_hub_entry_open(const char *cache_dir, const whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error)
{
    char store[WHIT_CACHE_PATH_BYTES], folder[WHIT_HUB_FOLDER_BYTES];
    *entry = (whit_hub_entry){.name = *name, .lock_fd = -1};
    entry->name.file[0] = 0;
    WHIT_TRY(store_folder(cache_dir, store, error));
    whit_hub_name_folder(name, folder);
    if (snprintf(entry->folder, sizeof entry->folder, "%s/%s", store, folder) >= (int)sizeof entry->folder)
        return whit_fail(error, WHIT_ERROR_IO,
                         "the cache folder's path is too long, over 3,900 bytes: set XDG_CACHE_HOME to a shorter one");
    return read_record(entry, error);
}

void whit_hub_entry_close(whit_hub_entry *entry)
{
    whit_hub_listing_free(&entry->files);
    if (entry->lock_fd >= 0) close(entry->lock_fd);
    entry->lock_fd = -1;
}

whit_status whit_hub_entry_lock(whit_hub_entry *entry, whit_error *error)
{
    char path[WHIT_CACHE_PATH_BYTES];
    struct stat info;
    char *slash = strrchr(entry->folder, '/');
    *slash = 0; /* for a moment this is the path of the store's folder */
    bool failed = mkdir(entry->folder, 0700) != 0 && errno != EEXIST;
    *slash = '/';
    if (failed || (mkdir(entry->folder, 0700) != 0 && errno != EEXIST))
        return whit_fail_errno(error, entry->folder, "create this folder");
    WHIT_TRY(whit_hub_entry_path(entry, LOCK, "", path, error));
    entry->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (entry->lock_fd < 0) return whit_fail_errno(error, path, "create");
    /* If another process has unlinked the locked file meanwhile, the lock protects nothing. */
    if (flock(entry->lock_fd, LOCK_EX | LOCK_NB) != 0 || fstat(entry->lock_fd, &info) != 0 || info.st_nlink == 0) {
        close(entry->lock_fd);
        entry->lock_fd = -1; /* whit_hub_entry_tidy must not remove another process's lock file */
        return whit_fail(error, WHIT_ERROR_IO, "%s: another whit is pulling or removing this model; try again later",
                         entry->name.repo);
    }
    return read_record(entry, error);
}

void whit_hub_entry_tidy(const whit_hub_entry *entry)
{
    char path[WHIT_CACHE_PATH_BYTES];
    if (entry->lock_fd < 0 || entry->files.n_files) return;
    if (whit_hub_entry_path(entry, LOCK, "", path, NULL) == WHIT_OK) unlink(path);
    rmdir(entry->folder);
}

whit_status whit_hub_entry_record(const whit_hub_entry *entry, whit_error *error)
{
    char path[WHIT_CACHE_PATH_BYTES];
    whit_buf text = {0};
    WHIT_TRY(whit_hub_entry_path(entry, RECORD, "", path, error));
    whit_status status = WHIT_OK;
    if (entry->files.n_files == 0) {
        if (unlink(path) != 0 && errno != ENOENT) status = whit_fail_errno(error, path, "remove");
        return status;
    }
    if (!whit_hub_listing_write(&entry->files, &text)) status = whit_fail_memory(error, path, text.size_bytes);
    if (status == WHIT_OK) status = whit_write_file(path, text.data, text.size_bytes, error);
    whit_buf_free(&text);
    return status;
}

/* ---- all repositories ------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const whit_hub_entry *)a)->folder, ((const whit_hub_entry *)b)->folder);
}

whit_status whit_hub_store_list(const char *cache_dir, whit_hub_entry **entries, size_t *n_entries, whit_error *error)
{
    char store[WHIT_CACHE_PATH_BYTES];
    *entries = NULL;
    *n_entries = 0;
    WHIT_TRY(store_folder(cache_dir, store, error));
    DIR *folder = opendir(store);
    if (!folder) return errno == ENOENT ? WHIT_OK : whit_fail_errno(error, store, "list");
    whit_status status = WHIT_OK;
    const struct dirent *item;
    size_t n_places = 0;
    while (status == WHIT_OK && (item = readdir(folder))) {
        whit_hub_name name;
        if (!whit_hub_name_from_folder(item->d_name, &name)) continue;
        if (*n_entries == REPOSITORY_MAX) {
            status = whit_fail(error, WHIT_ERROR_LIMIT,
                               "%s: this folder has more than %d pulled models, the limit; remove some with 'whit rm'",
                               store, REPOSITORY_MAX);
            break;
        }
        if (*n_entries == n_places) {
            n_places = n_places ? 2 * n_places : 16;
            whit_hub_entry *more = realloc(*entries, n_places * sizeof *more);
            if (!more) {
                status = whit_fail_memory(error, store, n_places * sizeof *more);
                break;
            }
            *entries = more;
        }
        status = whit_hub_entry_open(cache_dir, &name, &(*entries)[(*n_entries)++], error);
    }
    closedir(folder);
    if (*n_entries) qsort(*entries, *n_entries, sizeof **entries, by_name);
    if (status == WHIT_OK) return WHIT_OK;
    whit_hub_store_free(*entries, *n_entries);
    *entries = NULL;
    *n_entries = 0;
    return status;
}

void whit_hub_store_free(whit_hub_entry *entries, size_t n_entries)
{
    for (size_t i = 0; i < n_entries; i++) whit_hub_entry_close(&entries[i]);
    free(entries);
}

/* ---- finding repositories by a user's text -------------------------------------------------- */

/* Adds the owner to a name without one, if only one repository has that name and revision. Several are an error. */
static whit_status complete(const char *cache_dir, whit_hub_name *name, whit_error *error)
{
    whit_hub_entry *entries;
    size_t n;
    WHIT_TRY(whit_hub_store_list(cache_dir, &entries, &n, error));
    const whit_hub_name *found = NULL, *second = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *slash = strrchr(entries[i].name.repo, '/'), *last = slash ? slash + 1 : entries[i].name.repo;
        if (strcmp(last, name->repo) != 0 || strcmp(entries[i].name.revision, name->revision) != 0) continue;
        if (found) second = &entries[i].name;
        if (!found) found = &entries[i].name;
    }
    whit_status status = WHIT_OK;
    if (second)
        status = whit_fail(error, WHIT_ERROR_IO, "%s: both %s and %s match; give the full name", name->repo,
                           found->repo, second->repo);
    else if (found)
        memcpy(name->repo, found->repo, sizeof name->repo);
    whit_hub_store_free(entries, n);
    return status;
}

whit_status whit_hub_store_find(const char *cache_dir, const char *text, whit_hub_name *name, whit_hub_entry *entry,
                                whit_error *error)
{
    whit_error reason;
    *entry = (whit_hub_entry){.lock_fd = -1};
    if (whit_hub_name_parse(text, name, &reason) != WHIT_OK)
        return whit_fail(error, WHIT_ERROR_IO, "%s", reason.message);
    bool is_whole = strchr(name->repo, '/') != NULL;
    if (!is_whole) WHIT_TRY(complete(cache_dir, name, error));
    WHIT_TRY(whit_hub_entry_open(cache_dir, name, entry, error));
    if (whit_path_exists(entry->folder)) return WHIT_OK;
    whit_hub_entry_close(entry);
    if (is_whole)
        return whit_fail(error, WHIT_ERROR_IO, "%.200s: is not downloaded; 'whit pull %.200s' downloads it", text,
                         text);
    return whit_fail(error, WHIT_ERROR_IO,
                     "%s: no pulled model has this name; 'whit list' shows them, 'whit pull OWNER/NAME' downloads one",
                     text);
}

bool whit_hub_lacks_file(const char *path)
{
    return !whit_path_exists(path) && (errno == ENOENT || errno == ENOTDIR);
}

whit_status whit_hub_store_path(const char *cache_dir, const char *text, char path[WHIT_CACHE_PATH_BYTES],
                                whit_error *error)
{
    whit_hub_name name;
    whit_hub_entry entry;
    whit_hub_choice choice = {0};
    WHIT_TRY(whit_hub_store_find(cache_dir, text, &name, &entry, error));
    whit_status status =
        entry.files.n_files ? whit_hub_choose(&entry.files, text, name.file, &choice, error) : WHIT_ERROR_IO;
    bool is_whole = status == WHIT_OK;
    for (size_t i = 0; is_whole && i < choice.n_files; i++)
        is_whole = whit_hub_entry_has(&entry, &entry.files.files[choice.files[i]]);
    if (!entry.files.n_files || (status == WHIT_OK && !is_whole))
        status =
            whit_fail(error, WHIT_ERROR_IO, "%s: its download is not finished; 'whit pull %s' resumes it", text, text);
    if (status == WHIT_OK)
        status = choice.kind == WHIT_HUB_FOLDER
            ? whit_hub_entry_path(&entry, "", "", path, error)
            : whit_hub_entry_path(&entry, entry.files.files[choice.files[0]].path, "", path, error);
    size_t n = status == WHIT_OK ? strlen(path) : 0;
    if (n && path[n - 1] == '/') path[n - 1] = 0; /* remove the final slash of the folder's path */
    whit_hub_choice_free(&choice);
    whit_hub_entry_close(&entry);
    return status;
}
