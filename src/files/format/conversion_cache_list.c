/* SPDX-License-Identifier: MIT */
#include "base/path.h"
#include "format/conversion_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns whether a file of the folder is a converted file: whit_cache_find names these HASH.ndf. Other files are not
 * listed. */
static int is_entry(const struct dirent *item)
{
    size_t n = strspn(item->d_name, "0123456789abcdef");
    return n == 40 && strcmp(item->d_name + n, ".ndf") == 0;
}

static void lock_path(const whit_cached *entry, char path[WHIT_CACHE_PATH_BYTES + 8])
{
    snprintf(path, WHIT_CACHE_PATH_BYTES + 8, "%.*s.lock", (int)(strlen(entry->path) - strlen(".ndf")), entry->path);
}

static void read_source(whit_cached *entry)
{
    char lock[WHIT_CACHE_PATH_BYTES + 8];
    lock_path(entry, lock);
    int fd = open(lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, entry->source, sizeof entry->source - 1) : 0;
    if (fd >= 0) close(fd);
    entry->source[n > 0 ? n : 0] = 0;
    if (!whit_path_is_absolute(entry->source)) entry->source[0] = 0;
}

static int by_source(const void *a, const void *b)
{
    const whit_cached *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    return order ? order : strcmp(x->path, y->path);
}

whit_status whit_cache_list(const char *cache_dir, whit_cached **entries, size_t *n_entries, whit_error *error)
{
    char folder[WHIT_CACHE_PATH_BYTES];
    struct dirent **items = NULL;
    *entries = NULL;
    *n_entries = 0;
    WHIT_TRY(whit_cache_name_folder(cache_dir, folder, error));
    int n = scandir(folder, &items, is_entry, NULL);
    if (n < 0) return errno == ENOENT ? WHIT_OK : whit_fail_errno(error, folder, "list");
    *entries = calloc((size_t)n + 1, sizeof **entries);
    for (int i = 0; i < n; i++) {
        struct stat info;
        whit_cached *entry = *entries ? &(*entries)[*n_entries] : NULL;
        if (entry &&
            snprintf(entry->path, sizeof entry->path, "%s/%s", folder, items[i]->d_name) < (int)sizeof entry->path &&
            lstat(entry->path, &info) == 0 && S_ISREG(info.st_mode)) {
            entry->size_bytes = (uint64_t)info.st_size;
            entry->modified_s = info.st_mtime;
            read_source(entry);
            ++*n_entries;
        }
        free(items[i]);
    }
    free(items);
    if (!*entries) return whit_fail_memory(error, folder, ((size_t)n + 1) * sizeof **entries);
    qsort(*entries, *n_entries, sizeof **entries, by_source);
    return WHIT_OK;
}

/* Removes a converted file and its lock file unless a process has locked it. Returns whether the converted file was
 * removed. */
static bool remove_unlocked(const char *path, const char *lock)
{
    int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    const bool is_free = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool is_removed = is_free && unlink(path) == 0;
    if (is_free && fd >= 0) unlink(lock);
    if (fd >= 0) close(fd);
    return is_removed;
}

bool whit_cache_remove(const whit_cached *entry)
{
    char lock[WHIT_CACHE_PATH_BYTES + 8];
    lock_path(entry, lock);
    return remove_unlocked(entry->path, lock);
}

uint64_t whit_cache_forget(const char *cache_dir, const char *path)
{
    whit_cache_entry entry;
    struct stat info;
    if (whit_cache_find(cache_dir, path, WHIT_CONVERT_VERSION, "", &entry, NULL) != WHIT_OK) return 0;
    const bool is_there = lstat(entry.path, &info) == 0;
    return remove_unlocked(entry.path, entry.lock) && is_there ? (uint64_t)info.st_size : 0;
}
