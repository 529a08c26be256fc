/* SPDX-License-Identifier: MIT */
#include "format/conversion_cache.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SOURCE_FILES 4096

/* ---- the cache folder ----------------------------------------------------------------------- */

static whit_status make_folders(char *path, whit_error *error)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        whit_status status = failed ? whit_fail_errno(error, path, "create this cache folder") : WHIT_OK;
        *slash = '/';
        if (failed) return status;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return whit_fail_errno(error, path, "create this cache folder");
    return WHIT_OK;
}

whit_status whit_cache_name_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (cache_dir && *cache_dir)
        n = snprintf(folder, WHIT_CACHE_PATH_BYTES, "%s", cache_dir);
    else if (xdg && whit_path_is_absolute(xdg))
        n = snprintf(folder, WHIT_CACHE_PATH_BYTES, "%s/whit", xdg);
    else if (home && whit_path_is_absolute(home))
        n = snprintf(folder, WHIT_CACHE_PATH_BYTES, "%s/.cache/whit", home);
    else
        return whit_fail(error, WHIT_ERROR_IO,
                         "no cache folder: neither XDG_CACHE_HOME nor HOME is set; set one of them");
    if (n <= 0 || n >= WHIT_CACHE_PATH_BYTES - 128)
        return whit_fail(error, WHIT_ERROR_IO,
                         "the cache folder's path is too long, over 3,900 bytes: set XDG_CACHE_HOME to a shorter one");
    return WHIT_OK;
}

whit_status whit_cache_folder(const char *cache_dir, char folder[WHIT_CACHE_PATH_BYTES], whit_error *error)
{
    WHIT_TRY(whit_cache_name_folder(cache_dir, folder, error));
    WHIT_TRY(make_folders(folder, error));
    struct stat info;
    if (lstat(folder, &info) != 0) return whit_fail_errno(error, folder, "examine this cache folder");
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077))
        return whit_fail(
            error, WHIT_ERROR_IO,
            "%s: this folder is not used as the cache, because it must be your own with mode 0700 (chmod 700)", folder);
    return WHIT_OK;
}

/* ---- naming an entry ------------------------------------------------------------------------ */

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static whit_status hash_file(whit_hash *hash, const char *path, whit_error *error)
{
    struct stat info;
    if (stat(path, &info) != 0) return whit_fail_errno(error, path, "open");
    char *real = realpath(path, NULL);
    if (!real) return whit_fail_errno(error, path, "resolve");
    whit_hash_add(hash, real, strlen(real) + 1);
    free(real);
    whit_hash_add_u64(hash, info.st_dev);
    whit_hash_add_u64(hash, info.st_ino);
    whit_hash_add_u64(hash, (uint64_t)info.st_size);
    whit_hash_add_u64(hash, (uint64_t)info.st_mtim.tv_sec);
    whit_hash_add_u64(hash, (uint64_t)info.st_mtim.tv_nsec);
    return WHIT_OK;
}

static int read_by_importer(const struct dirent *entry)
{
    static const char *const suffixes[] = {".json", ".safetensors", ".model", ".jinja", ".txt"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (has_suffix(entry->d_name, suffixes[i])) return 1;
    return 0;
}

static whit_status hash_folder(whit_hash *hash, const char *path, whit_error *error)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, read_by_importer, alphasort);
    if (n < 0) return whit_fail_errno(error, path, "list");
    whit_status status = n > MAX_SOURCE_FILES
        ? whit_fail(error, WHIT_ERROR_LIMIT, "%s: the folder has more than %d files of a model, the limit", path,
                    MAX_SOURCE_FILES)
        : WHIT_OK;
    for (int i = 0; i < n; i++) {
        char file[WHIT_CACHE_PATH_BYTES];
        if (status == WHIT_OK && snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name) < (int)sizeof file)
            status = hash_file(hash, file, error);
        free(names[i]);
    }
    free(names);
    return status;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Hashes the identities (path, size, mtime, ...) of all files that the importer may read from a model's folder
 * (model/import_hf.c). The direct subfolders count too, unless hidden: they contain further chat templates and the
 * modules of sentence-transformers. */
static whit_status hash_model_folder(whit_hash *hash, const char *path, whit_error *error)
{
    struct dirent **names = NULL;
    WHIT_TRY(hash_folder(hash, path, error));
    int n = scandir(path, &names, is_visible, alphasort);
    if (n < 0) return whit_fail_errno(error, path, "list");
    whit_status status = WHIT_OK;
    for (int i = 0; i < n; i++) {
        char folder[WHIT_CACHE_PATH_BYTES];
        struct stat info;
        if (status == WHIT_OK &&
            snprintf(folder, sizeof folder, "%s/%s", path, names[i]->d_name) < (int)sizeof folder &&
            stat(folder, &info) == 0 && S_ISDIR(info.st_mode) && access(folder, R_OK | X_OK) == 0)
            status = hash_folder(hash, folder, error);
        free(names[i]);
    }
    free(names);
    return status;
}

/* Calls hash_model_folder for the folder that contains the .safetensors file at `path`. */
static whit_status hash_beside(whit_hash *hash, const char *path, whit_error *error)
{
    char folder[WHIT_CACHE_PATH_BYTES];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return whit_fail(error, WHIT_ERROR_IO, "%s: the path is longer than %d bytes, the limit", path,
                         WHIT_CACHE_PATH_BYTES - 1);
    return hash_model_folder(hash, dirname(folder), error);
}

/* Hashes the identity of the file at `path` or, if it is named as a file of a split set, those of the whole set:
 * NAME-00001-of-00007.gguf stands for seven files. Absent files are skipped, because the name alone does not prove that
 * the file belongs to a set. If it does belong to one, the importer reports the missing files. */
static whit_status hash_split(whit_hash *hash, const char *path, whit_error *error)
{
    size_t n = strlen(path);
    unsigned i, count;
    const char *tail = n > 20 ? path + n - 20 : "";
    if (sscanf(tail, "-%5u-of-%5u.gguf", &i, &count) != 2 || count < 2 || count > MAX_SOURCE_FILES || i < 1 ||
        i > count)
        return hash_file(hash, path, error);
    for (unsigned k = 1; k <= count; k++) {
        char file[WHIT_CACHE_PATH_BYTES];
        if (snprintf(file, sizeof file, "%.*s-%05u-of-%05u.gguf", (int)(n - 20), path, k, count) >= (int)sizeof file)
            return whit_fail(error, WHIT_ERROR_IO, "%s: the path is longer than %d bytes, the limit", path,
                             WHIT_CACHE_PATH_BYTES - 1);
        if (k == i || whit_path_exists(file)) WHIT_TRY(hash_file(hash, file, error));
    }
    return WHIT_OK;
}

whit_status whit_cache_find(const char *cache_dir, const char *path, const char *version, const char *options,
                            whit_cache_entry *entry, whit_error *error)
{
    entry->lock_fd = -1;
    WHIT_TRY(whit_cache_folder(cache_dir, entry->folder, error));
    whit_hash hash;
    whit_hash_begin(&hash, "whit.cache");
    whit_hash_add(&hash, version, strlen(version) + 1);
    whit_hash_add(&hash, options, strlen(options) + 1);
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        WHIT_TRY(hash_model_folder(&hash, path, error));
    else if (has_suffix(path, ".safetensors"))
        WHIT_TRY(hash_beside(&hash, path, error));
    else
        WHIT_TRY(hash_split(&hash, path, error));
    uint8_t digest[WHIT_HASH_BYTES];
    char text[2 * WHIT_HASH_BYTES + 1];
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, text);
    text[40] = 0;
    if (snprintf(entry->path, sizeof entry->path, "%s/%s.ndf", entry->folder, text) >= (int)sizeof entry->path ||
        snprintf(entry->lock, sizeof entry->lock, "%s/%s.lock", entry->folder, text) >= (int)sizeof entry->lock)
        return whit_fail(error, WHIT_ERROR_IO,
                         "the cache folder's path is too long, over 3,900 bytes: set XDG_CACHE_HOME to a shorter one");
    return WHIT_OK;
}

/* ---- locking and removing old entries ------------------------------------------------------- */

/* Returns whether the entry's open lock file still has a name: another process may have removed it, with the entry,
 * while this process waited for the lock. */
static bool is_lock_there(const whit_cache_entry *entry)
{
    struct stat info;
    return fstat(entry->lock_fd, &info) != 0 || info.st_nlink > 0;
}

whit_status whit_cache_lock(whit_cache_entry *entry, whit_error *error)
{
    for (bool is_locked = false; !is_locked;) {
        entry->lock_fd = open(entry->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (entry->lock_fd < 0) return whit_fail_errno(error, entry->lock, "create");
        while (flock(entry->lock_fd, LOCK_EX) != 0)
            if (errno != EINTR) {
                whit_status status = whit_fail_errno(error, entry->lock, "lock");
                whit_cache_unlock(entry);
                return status;
            }
        is_locked = is_lock_there(entry);
        if (!is_locked) whit_cache_unlock(entry);
    }
    return WHIT_OK;
}

void whit_cache_note_source(const whit_cache_entry *entry, const char *path)
{
    char *real = realpath(path, NULL);
    size_t n = real ? strlen(real) : 0;
    /* The path only informs the user, so a failed write is ignored. */
    if (n && entry->lock_fd >= 0 && ftruncate(entry->lock_fd, 0) == 0) {
        ssize_t ignored = pwrite(entry->lock_fd, real, n, 0);
        (void)ignored;
    }
    free(real);
}

void whit_cache_unlock(whit_cache_entry *entry)
{
    if (entry->lock_fd < 0) return;
    close(entry->lock_fd);
    entry->lock_fd = -1;
}

static int is_converted(const struct dirent *entry)
{
    return has_suffix(entry->d_name, ".ndf");
}

struct cached_file {
    char name[64];
    uint64_t size_bytes;
    time_t used;
};

static int oldest_first(const void *a, const void *b)
{
    const struct cached_file *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Removes NAME.ndf unless a process has locked NAME.lock: that process may be about to open the file that it has just
 * converted. Returns whether the file was removed. */
static bool remove_unlocked(int folder, const char *name)
{
    char lock[64 + sizeof ".lock"];
    snprintf(lock, sizeof lock, "%.*s.lock", (int)(strlen(name) - strlen(".ndf")), name);
    int fd = openat(folder, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool removed = (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) && unlinkat(folder, name, 0) == 0;
    if (fd >= 0) close(fd);
    return removed;
}

void whit_cache_trim(const whit_cache_entry *entry, uint64_t limit_bytes)
{
    struct dirent **names = NULL;
    whit_writer_clean(entry->folder, NULL);
    int n = scandir(entry->folder, &names, is_converted, NULL);
    if (n < 0) return;
    struct cached_file *files = calloc((size_t)n + 1, sizeof *files);
    uint64_t total = 0;
    int n_files = 0;
    int folder = open(entry->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < n; i++) {
        struct stat info;
        size_t length = strlen(names[i]->d_name);
        if (files && folder >= 0 && length < sizeof files->name &&
            fstatat(folder, names[i]->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode)) {
            struct cached_file *file = &files[n_files++];
            memcpy(file->name, names[i]->d_name, length + 1);
            file->size_bytes = (uint64_t)info.st_size;
            file->used = info.st_atime > info.st_mtime ? info.st_atime : info.st_mtime;
            total += file->size_bytes;
        }
        free(names[i]);
    }
    free(names);
    if (files) qsort(files, (size_t)n_files, sizeof *files, oldest_first);
    const char *own = strrchr(entry->path, '/') + 1;
    for (int i = 0; i < n_files && total > limit_bytes; i++) {
        if (strcmp(files[i].name, own) == 0) continue;
        if (remove_unlocked(folder, files[i].name)) total -= files[i].size_bytes;
    }
    if (folder >= 0) close(folder);
    free(files);
}
