/* SPDX-License-Identifier: MIT */
#include "agent/project.h"

#include "agent/folders.h"
#include "agent/guard.h"
#include "agent/links.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/path.h"
#include "base/pinned.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_BYTES ((size_t)1 << 20) /* a smaller file is read with few system calls */

/* Returns a digest, never 0, of a file's place (whit_project_resolve). */
static uint64_t hash_place(const char *real)
{
    uint8_t digest[WHIT_HASH_BYTES];
    uint64_t place;
    whit_hash hash;
    whit_hash_begin(&hash, "agent-place");
    whit_hash_add(&hash, real, strlen(real));
    whit_hash_end(&hash, digest);
    memcpy(&place, digest, sizeof place);
    return place ? place : 1;
}

whit_status whit_project_resolve(const char *project, const char *path, char full[PATH_MAX], char *place,
                                 whit_error *error)
{
    char folder[PATH_MAX], real[PATH_MAX], whole[PATH_MAX];
    size_t n = strlen(project);
    if (!*path || *path == '/' || snprintf(full, PATH_MAX, "%s/%s", project, path) >= PATH_MAX)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'%s' is not a path below the project: give one relative to its folder", path);
    if (!whit_agent_path_is_plain(path))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'%s' is not a plain path: leave out '.', '..', double and final slashes", path);
    /* If folders are to be made, the nearest existing folder is checked. */
    snprintf(folder, sizeof folder, "%s", full);
    for (char *slash; (slash = strrchr(folder, '/')) && (size_t)(slash - folder) >= n;) {
        *slash = 0;
        if (!realpath(folder, real)) {
            if (errno == ENOENT) continue;
            return whit_fail_errno(error, folder, "resolve");
        }
        size_t n_real = n > 1 ? n : 0; /* the project "/" contains every path */
        if (!whit_path_is_below(real, project))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' leads out of the project, to %s", path, real);
        struct stat info;
        if (stat(real, &info) == 0 && !S_ISDIR(info.st_mode))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' cannot be created: %s is a file, not a folder", path,
                             real + n_real + (real[n_real] != 0));
        if (whit_guard_folder_of(real) == WHIT_GUARD_STATE)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' is inside the folder of this program's own state, %s",
                             path, real);
        /* the root folder is left out, since the rest of the path begins with its slash */
        if (snprintf(whole, sizeof whole, "%s%s", real[1] ? real : "", full + strlen(folder)) >= PATH_MAX)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s': the path is longer than %d bytes, the limit", path,
                             PATH_MAX - 1);
        if (whit_guard_is_own_file(whole))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' is a file of this program's own state", path);
        if (place) memcpy(place, whole, strlen(whole) + 1);
        return WHIT_OK;
    }
    return whit_fail(error, WHIT_ERROR_IO, "%s: the project's folder does not exist any more", project);
}

uint64_t whit_project_place(const char *project, const char *path)
{
    char full[PATH_MAX], place[PATH_MAX];
    whit_error ignored;
    return whit_project_resolve(project, path, full, place, &ignored) == WHIT_OK ? hash_place(place) : 0;
}

whit_status whit_project_name(const char *project, const char *path, char name[PATH_MAX], whit_error *error)
{
    char full[PATH_MAX], place[PATH_MAX];
    const size_t n = project[1] ? strlen(project) : 0;
    WHIT_TRY(whit_project_resolve(project, path, full, place, error));
    memmove(name, place + n + 1, strlen(place + n + 1) + 1);
    return WHIT_OK;
}

/* Returns the part of a file's real path below the project; "" for the project itself. */
static const char *part_below(const char *project, const char *real)
{
    const size_t n = project[1] ? strlen(project) : 0; /* the project may be "/" */
    return real + n + (real[n] == '/');
}

bool whit_project_hides(const char *project, const char *path, const char *real, const struct stat *opened)
{
    const char *below = whit_path_is_below(real, project) ? part_below(project, real) : "";
    struct stat about;
    const struct stat *file = opened || lstat(real, &about) != 0 ? opened : &about;
    return whit_guard_is_hidden(path, below, real, opened) || whit_guard_is_repository(project, below) ||
        whit_links_secret(project, real) || (file && whit_links_secret_name(project, file));
}

const char *whit_project_follow(const char *project, const char *name, char real[PATH_MAX])
{
    char full[PATH_MAX];
    struct stat info;
    const size_t n = strlen(project);
    if (snprintf(full, sizeof full, "%s/%s", project, name) >= (int)sizeof full || lstat(full, &info) != 0) return name;
    if (!S_ISLNK(info.st_mode)) return name;
    if (!realpath(full, real) || strncmp(real, project, n) != 0 || real[n] != '/' || stat(real, &info) != 0)
        return NULL;
    return S_ISREG(info.st_mode) && !whit_project_hides(project, real + n + 1, real, NULL) ? real + n + 1 : NULL;
}

/* Reports why a file could not be opened. A file that does not exist is not an error. */
static whit_status explain_failure(const char *project, const char *path, const char *below, whit_error *error)
{
    const int failure = errno;
    if (failure == ENOENT) return WHIT_OK;
    const int link = whit_open_in(project, below, O_PATH);
    struct stat about = {0};
    const bool is_link = link >= 0 && fstat(link, &about) == 0 && S_ISLNK(about.st_mode);
    const bool is_special = link >= 0 && !is_link && (S_ISSOCK(about.st_mode) || S_ISFIFO(about.st_mode));
    if (link >= 0) close(link);
    if (is_link || is_special)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: is a %s, which an agent does not touch", path,
                         is_link ? "link" : "special file");
    if (failure == ELOOP || failure == ENOTDIR)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: a folder of its path has just been replaced: look at it again", path);
    errno = failure;
    return whit_fail_errno(error, path, "open");
}

/* Reads an open file; a smaller one with few system calls. */
static whit_status read_opened(int fd, const char *path, const struct stat *about, whit_buf *content, whit_error *error)
{
    const size_t size = (size_t)about->st_size, begin = content->size_bytes;
    if (size < SMALL_BYTES) {
        if (!whit_buf_reserve(content, size + 1)) return whit_fail_memory(error, path, size);
        /* reading one byte more than the size detects that the file has grown */
        const ssize_t got = read(fd, content->data + begin, size + 1);
        if (got == (ssize_t)size) {
            content->size_bytes += size;
            return WHIT_OK;
        }
        if (lseek(fd, 0, SEEK_SET) != 0) return whit_fail_errno(error, path, "read");
    }
    return whit_read_open_file(fd, path, WHIT_PROJECT_FILE_BYTES, content, error);
}

whit_status whit_project_read_file(const char *project, const char *path, whit_buf *content, whit_project_file *file,
                                   whit_error *error)
{
    char full[PATH_MAX], real[PATH_MAX];
    struct stat about;
    *file = (whit_project_file){.exists = false};
    WHIT_TRY(whit_project_resolve(project, path, full, real, error));
    const char *below = part_below(project, real);
    file->place = hash_place(real);
    const int fd = whit_open_in(project, below, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        const whit_status failed = explain_failure(project, path, below, error);
        file->is_hidden = whit_project_hides(project, path, real, NULL);
        return failed;
    }
    whit_status status = fstat(fd, &about) == 0 ? WHIT_OK : whit_fail_errno(error, path, "examine");
    if (status == WHIT_OK && !S_ISREG(about.st_mode))
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: is a %s, which an agent does not touch", path,
                           S_ISDIR(about.st_mode) ? "folder" : "special file");
    if (status == WHIT_OK) status = read_opened(fd, path, &about, content, error);
    if (status == WHIT_OK) {
        file->exists = true;
        file->mode = about.st_mode & 07777;
        file->is_hidden = whit_project_hides(project, path, real, &about);
    }
    close(fd);
    return status;
}

whit_status whit_project_read(const char *project, const char *path, whit_buf *content, bool *exists, uint32_t *mode,
                              whit_error *error)
{
    whit_project_file file;
    const whit_status status = whit_project_read_file(project, path, content, &file, error);
    *exists = file.exists;
    *mode = file.mode;
    return status;
}

static int open_folder(const char *project, const char *path)
{
    char full[PATH_MAX], real[PATH_MAX];
    whit_error ignored;
    if (!*path) return whit_open_in(project, "", O_RDONLY | O_DIRECTORY);
    if (whit_project_resolve(project, path, full, real, &ignored) != WHIT_OK) return -1;
    const char *below = part_below(project, real);
    return whit_project_hides(project, path, real, NULL) ? -1 : whit_open_in(project, below, O_RDONLY | O_DIRECTORY);
}

static int by_name(const void *a, const void *b)
{
    /* the first byte of an entry says whether it is a folder */
    return strcmp(*(char *const *)a + 1, *(char *const *)b + 1);
}

size_t whit_project_list(const char *project, const char *path, char ***names)
{
    const int fd = open_folder(project, path);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    size_t n = 0, capacity = 0;
    *names = NULL;
    if (!entries && fd >= 0) close(fd);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        struct stat about;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        const bool is_known = fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0;
        if (n == capacity) {
            char **grown = realloc(*names, (capacity = capacity ? 2 * capacity : 64) * sizeof *grown);
            if (!grown) break;
            *names = grown;
        }
        if (asprintf(&(*names)[n], "%c%s", is_known && S_ISDIR(about.st_mode) ? '/' : '-', entry->d_name) < 0) break;
        n++;
    }
    if (entries) closedir(entries);
    if (n) qsort(*names, n, sizeof **names, by_name);
    return n;
}

whit_status whit_project_read_copied(const char *folder, const char *path, size_t limit_bytes, whit_buf *content,
                                     bool *exists, whit_error *error)
{
    struct stat about;
    const int fd = whit_open_in(folder, path, O_RDONLY | O_NONBLOCK);
    *exists = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    const whit_status status = *exists ? whit_read_open_file(fd, path, limit_bytes, content, error) : WHIT_OK;
    if (fd >= 0) close(fd);
    return status;
}

whit_status whit_project_holds(const char *project, const char *path, whit_error *error)
{
    char full[PATH_MAX];
    return whit_project_resolve(project, path, full, NULL, error);
}
