/* SPDX-License-Identifier: MIT */
#include "agent/project.h"

#include "agent/folders.h"
#include "agent/guard.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/path.h"

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

/* Reads a regular file of moderate size with few system calls. Returns false if it is not such a file, or if it changes
 * meanwhile. */
static bool read_small(const char *full, whit_buf *content, uint32_t *mode)
{
    struct stat info;
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return false;
    bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size < SMALL_BYTES;
    size_t size = ok ? (size_t)info.st_size : 0;
    ok = ok && whit_buf_reserve(content, size + 1);
    /* reading one byte more than the size detects that the file has grown */
    ok = ok && read(fd, content->data + content->size_bytes, size + 1) == (ssize_t)size;
    close(fd);
    if (!ok) return false;
    content->size_bytes += size;
    *mode = info.st_mode & 07777;
    return true;
}

whit_status whit_project_read_at(const char *project, const char *path, whit_buf *content, bool *exists, uint32_t *mode,
                                 uint64_t *place, whit_error *error)
{
    char full[PATH_MAX], real[PATH_MAX];
    struct stat info;
    *exists = false;
    *mode = 0;
    WHIT_TRY(whit_project_resolve(project, path, full, real, error));
    if (place) *place = hash_place(real);
    if (read_small(full, content, mode)) {
        *exists = true;
        return WHIT_OK;
    }
    if (lstat(full, &info) != 0)
        return errno == ENOENT || errno == ENOTDIR ? WHIT_OK : whit_fail_errno(error, full, "examine");
    if (!S_ISREG(info.st_mode)) {
        const char *kind = "special file";
        if (S_ISDIR(info.st_mode))
            kind = "folder";
        else if (S_ISLNK(info.st_mode))
            kind = "link";
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: is a %s, which an agent does not touch", path, kind);
    }
    WHIT_TRY(whit_read_file(full, WHIT_PROJECT_FILE_BYTES, content, error));
    *exists = true;
    *mode = info.st_mode & 07777;
    return WHIT_OK;
}

whit_status whit_project_read(const char *project, const char *path, whit_buf *content, bool *exists, uint32_t *mode,
                              whit_error *error)
{
    return whit_project_read_at(project, path, content, exists, mode, NULL, error);
}

whit_status whit_project_holds(const char *project, const char *path, whit_error *error)
{
    char full[PATH_MAX];
    return whit_project_resolve(project, path, full, NULL, error);
}
