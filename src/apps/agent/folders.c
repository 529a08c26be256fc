/* SPDX-License-Identifier: MIT */
#include "agent/folders.h"

#include "agent/guard.h"
#include "base/hash.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_DEEP 64 /* maximum number of nested folders that are held open during a removal */

bool whit_agent_path_is_plain(const char *path)
{
    if (!*path || !whit_path_is_relative(path)) return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size_t n = strcspn(part, "/");
        /* a diff has each file name in one line, so a name must not contain a line feed */
        if (memchr(part, '\n', n)) return false;
        if ((n == 2 && memcmp(part, "..", 2) == 0) || (n == 1 && *part == '.') || !n) return false;
    }
    return true;
}

whit_status whit_agent_make_folders(char *path, whit_error *error)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) *slash = 0;
        bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        whit_status status = failed ? whit_fail_errno(error, path, "create this folder") : WHIT_OK;
        if (slash) *slash = '/';
        if (status != WHIT_OK || !slash) return status;
    }
}

/* Where the files of an agent are kept by default: the folder `whit` in the folder of an environment variable, or in a
 * folder below the home folder. */
struct usual_place {
    const char *variable, *below;
};
static const struct usual_place state_place = {"XDG_STATE_HOME", ".local/state"},
                                cache_place = {"XDG_CACHE_HOME", ".cache"};

/* Writes the path of the folder for an agent's files. */
static whit_status name_folder(const char *given, const struct usual_place *place, char path[PATH_MAX],
                               whit_error *error)
{
    const char *variable = place->variable;
    const char *xdg = getenv(variable), *home = getenv("HOME");
    int n;
    if (given)
        n = snprintf(path, PATH_MAX, "%s", given);
    else if (xdg && whit_path_is_absolute(xdg))
        n = snprintf(path, PATH_MAX, "%s/whit", xdg);
    else if (home && whit_path_is_absolute(home))
        n = snprintf(path, PATH_MAX, "%s/%s/whit", home, place->below);
    else
        return whit_fail(error, WHIT_ERROR_IO,
                         "no folder for an agent's files: neither %s nor HOME is set; set one of them", variable);
    if (n <= 0 || n > PATH_MAX - 120)
        return whit_fail(error, WHIT_ERROR_IO,
                         "the path of the folder for an agent's files is too long: set %s to a shorter one", variable);
    return WHIT_OK;
}

/* Appends "/NAME-<hash of the project>SUFFIX" to the path of a folder. */
static void add_file(const char *project, const char *name, const char *suffix, char path[PATH_MAX])
{
    const size_t n = strlen(path);
    uint8_t digest[WHIT_HASH_BYTES];
    char hex[2 * WHIT_HASH_BYTES + 1];
    whit_hash hash;
    whit_hash_begin(&hash, "whit.agent.project");
    whit_hash_add(&hash, project, strlen(project));
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, hex);
    snprintf(path + n, PATH_MAX - n, "/%s-%.24s%s", name, hex, suffix);
}

static whit_status make_path(const char *project, const char *given, const struct usual_place *place, const char *name,
                             const char *suffix, char path[PATH_MAX], whit_error *error)
{
    WHIT_TRY(name_folder(given, place, path, error));
    WHIT_TRY(whit_agent_make_folders(path, error));
    if (given && !whit_guard_know_folder(given))
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: this program keeps its files in too many other folders", given);
    add_file(project, name, suffix, path);
    return WHIT_OK;
}

whit_status whit_agent_state_path(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], whit_error *error)
{
    return make_path(project, given, &state_place, name, suffix, path, error);
}

whit_status whit_agent_cache_path(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], whit_error *error)
{
    return make_path(project, given, &cache_place, name, suffix, path, error);
}

whit_status whit_agent_find_state(const char *project, const char *given, const char *name, const char *suffix,
                                  char path[PATH_MAX], bool *exists, whit_error *error)
{
    WHIT_TRY(name_folder(given, &state_place, path, error));
    add_file(project, name, suffix, path);
    *exists = whit_path_exists(path);
    return WHIT_OK;
}

/* Returns whether the n bytes of a part of a path are one of the names. */
static bool is_one_of(const char *part, size_t n, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == n && memcmp(part, *names, n) == 0) return true;
    return false;
}

void whit_agent_closed_folder(const char *project, char folder[PATH_MAX])
{
    static const char usr[] = "/usr/";
    static const char *const systems[] = {"bin",     "sbin",  "lib",   "lib32", "lib64", "libx32", "libexec",
                                          "include", "games", "share", "src",   "local", "man",    NULL};
    static const char *const holders[] = {"src", "share", NULL}; /* each of their folders is of one program */
    static const char *const prefixes[] = {"local", NULL};       /* folders with the same folders as /usr */
    snprintf(folder, PATH_MAX, "%s", project);
    if (strncmp(project, usr, sizeof usr - 1) != 0) return;
    char *part = folder + sizeof usr - 1;
    for (size_t n; n = strcspn(part, "/"), part[n]; part += n + 1) {
        if (!is_one_of(part, n, systems)) part[n] = 0;
        if (!part[n]) return;
        if (is_one_of(part, n, holders)) part[n + 1 + strcspn(part + n + 1, "/")] = 0;
        if (!is_one_of(part, n, prefixes)) return;
    }
}

int whit_agent_open_folder(int folder, const char *name)
{
    char own[64];
    struct stat info;
    int path = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (path < 0) return -1;
    /* this name refers to the open folder itself, even if the folder was renamed */
    snprintf(own, sizeof own, "/proc/self/fd/%d", path);
    if (fstat(path, &info) == 0 && (info.st_mode & 0700) != 0700) (void)chmod(own, (info.st_mode & 0777) | 0700);
    int fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), failure = errno;
    close(path);
    errno = failure;
    return fd;
}

/* State of a recursive removal. A folder nested too deeply to be reached through open descriptors is moved up to `top`,
 * under a random name, and removed from there. */
struct removal {
    int top;
    uint64_t random;
    uint32_t n_moved;
};

static void name_moved(const struct removal *r, uint32_t i, char name[64])
{
    snprintf(name, 64, ".whit-%016llx-%u", (unsigned long long)r->random, i);
}

static void remove_below(struct removal *r, int folder, const char *name, uint32_t deep)
{
    char moved[64];
    if (unlinkat(folder, name, 0) == 0) return;
    if (deep > FOLDERS_DEEP) {
        name_moved(r, r->n_moved, moved);
        r->n_moved += renameat(folder, name, r->top, moved) == 0;
        return;
    }
    int fd = whit_agent_open_folder(folder, name);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (!entries) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_below(r, dirfd(entries), entry->d_name, deep + 1);
    closedir(entries);
    (void)unlinkat(folder, name, AT_REMOVEDIR);
}

void whit_agent_remove_all(int folder, const char *name)
{
    struct removal r = {.top = folder};
    char moved[64];
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return;
    randombytes_buf(&r.random, sizeof r.random);
    remove_below(&r, folder, name, 0);
    for (uint32_t i = 0; i < r.n_moved; i++) { /* remove_below() may increase n_moved */
        name_moved(&r, i, moved);
        remove_below(&r, folder, moved, 0);
    }
}
