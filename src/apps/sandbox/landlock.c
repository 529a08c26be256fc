/* SPDX-License-Identifier: MIT
 * Applies Landlock rules by raw system calls (Documentation/userspace-api/landlock.rst of Linux), because the headers
 * of an older system may define fewer rights than its kernel supports. */
#include "sandbox/walls.h"

#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System call numbers, which are the same on every architecture. */
#define CALL_CREATE   444
#define CALL_ADD      445
#define CALL_RESTRICT 446

/* Access rights to files, by their bits. */
#define RIGHT_EXECUTE (1ULL << 0)
#define RIGHT_WRITE   (1ULL << 1)
#define RIGHT_READ    (1ULL << 2)
#define RIGHT_LIST    (1ULL << 3)
#define RIGHTS_REMOVE (3ULL << 4) /* removing folders (bit 4) and removing files (bit 5) */
#define RIGHT_FOLDER  (1ULL << 7)
#define RIGHT_FILE    (1ULL << 8)
#define RIGHT_FIFO    (1ULL << 10)
#define RIGHT_LINK    (1ULL << 12)
#define RIGHT_REFER   (1ULL << 13)
#define RIGHT_CUT     (1ULL << 14)
#define RIGHT_DEVICE  (1ULL << 15) /* ioctl on device files */

#define RIGHTS_READING (RIGHT_EXECUTE | RIGHT_READ | RIGHT_LIST)
#define RIGHTS_CHANGING                                                                                                \
    (RIGHTS_READING | RIGHT_WRITE | RIGHTS_REMOVE | RIGHT_FOLDER | RIGHT_FILE | RIGHT_FIFO | RIGHT_LINK |              \
     RIGHT_REFER | RIGHT_CUT)
#define RIGHTS_OF_FILES (RIGHT_EXECUTE | RIGHT_WRITE | RIGHT_READ | RIGHT_CUT)

struct ruleset_attr {
    uint64_t files, tcp, scopes;
};
struct beneath_attr {
    uint64_t rights;
    int32_t folder;
} __attribute__((packed));

const char *const whit_landlock_system[] = {"/usr",
                                            "/bin",
                                            "/sbin",
                                            "/lib",
                                            "/lib32",
                                            "/lib64",
                                            "/libx32",
                                            "/nix/store",
                                            "/etc/ld.so.cache",
                                            "/etc/ld.so.conf",
                                            "/etc/ld.so.conf.d",
                                            "/etc/alternatives",
                                            "/etc/localtime",
                                            "/etc/locale.alias",
                                            "/dev/zero",
                                            "/dev/urandom",
                                            "/dev/random",
                                            "/sys/devices/system/cpu",
                                            NULL};
const char *const whit_landlock_settings[] = {"/usr/etc", "/usr/var", "/usr/local/etc", "/usr/local/var", NULL};
static const char *const devices[] = {"/dev/null", "/dev/full", NULL};

uint32_t whit_landlock_abi(void)
{
    long abi = syscall(CALL_CREATE, NULL, 0, 1u);
    return abi > 0 ? (uint32_t)abi : 0;
}

static uint64_t rights_of(uint32_t abi)
{
    int n_rights = 13;
    if (abi >= 5)
        n_rights = 16;
    else if (abi >= 3)
        n_rights = 15;
    else if (abi >= 2)
        n_rights = 14;
    return (1ULL << n_rights) - 1;
}

/* Adds a rule that allows these rights below a folder or, as far as they apply to files, for a file; returns false with
 * errno on failure. flags: O_NOFOLLOW: a link gets the rule itself, which allows nothing. */
static bool allow(int ruleset, const char *path, uint64_t rights, int flags)
{
    int fd = open(path, O_PATH | O_CLOEXEC | O_DIRECTORY | flags);
    const bool is_folder = fd >= 0;
    if (!is_folder) fd = open(path, O_PATH | O_CLOEXEC | flags);
    bool ok = fd >= 0;
    if (ok) {
        struct beneath_attr rule = {is_folder ? rights : rights & RIGHTS_OF_FILES, fd};
        ok = syscall(CALL_ADD, ruleset, 1, &rule, 0u) == 0;
    }
    int failure = errno;
    if (fd >= 0) close(fd);
    errno = failure;
    return ok;
}

bool whit_landlock_allow_read(int ruleset, const char *path)
{
    return allow(ruleset, path, RIGHTS_READING, 0);
}

/* Returns whether a path of the list is below the resolved folder. */
static bool has_below(const char *const *list, const char *folder)
{
    for (; list && *list; list++)
        if (whit_path_is_below(*list, folder) && strcmp(*list, folder) != 0) return true;
    return false;
}

static bool is_listed(const char *const *list, const char *path)
{
    for (; list && *list; list++)
        if (strcmp(path, *list) == 0) return true;
    return false;
}

/* Adds rules for all entries of a resolved folder but the hidden ones and those with settings. Rules of Landlock only
 * add rights, so a folder on the way to a hidden path gets no rule, and its names cannot be listed; on the way to
 * settings they can. */
static bool allow_entries(int ruleset, const char *folder, uint64_t rights, const whit_sandbox_rules *rules)
{
    char path[PATH_MAX];
    DIR *entries = opendir(folder);
    bool ok = has_below(rules->hidden, folder) || allow(ruleset, folder, rights & RIGHT_LIST, 0);
    for (struct dirent *entry; entries && ok && (entry = readdir(entries));) {
        const bool is_dot = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        int n = snprintf(path, sizeof path, "%s/%s", folder[1] ? folder : "", entry->d_name);
        if (is_dot || n >= (int)sizeof path || is_listed(rules->hidden, path) ||
            is_listed(whit_landlock_settings, path))
            continue;
        if (has_below(rules->hidden, path) || has_below(whit_landlock_settings, path))
            ok = allow_entries(ruleset, path, rights, rules);
        else
            ok = allow(ruleset, path, rights, O_NOFOLLOW) || errno == ENOENT;
    }
    if (entries) closedir(entries);
    return ok;
}

/* Like allow(), but leaves out the hidden paths and the settings below the folder. */
static bool allow_around(int ruleset, const char *path, uint64_t rights, const whit_sandbox_rules *rules)
{
    char folder[PATH_MAX];
    if (!realpath(path, folder) || !(has_below(rules->hidden, folder) || has_below(whit_landlock_settings, folder)))
        return allow(ruleset, path, rights, 0);
    return allow_entries(ruleset, folder, rights, rules);
}

whit_status whit_landlock_make(const whit_sandbox_rules *rules, bool is_for_command, int *ruleset, whit_error *error)
{
    static const char *const none[] = {NULL};
    uint32_t abi = whit_landlock_abi();
    uint64_t known = rights_of(abi);
    struct ruleset_attr attr = {.files = known};
    *ruleset = -1;
    if (!abi)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "the kernel has no Landlock (Linux 5.13 or later has it, if it is switched on)");
    if (abi >= 4 && !rules->may_connect) attr.tcp = 3; /* bind and connect */
    if (abi >= 6 && is_for_command) attr.scopes = 3;   /* abstract sockets and signals */
    size_t attr_bytes = 8;
    if (abi >= 6)
        attr_bytes = sizeof attr;
    else if (abi >= 4)
        attr_bytes = 16;
    int fd = (int)syscall(CALL_CREATE, &attr, attr_bytes, 0u);
    if (fd < 0) return whit_fail_errno(error, "Landlock", "make a set of rules");
    whit_status status = WHIT_OK;
    for (const char *const *p = whit_landlock_system; *p; p++)
        if (!allow_around(fd, *p, RIGHTS_READING & known, rules) && errno != ENOENT && errno != ENOTDIR)
            status = whit_fail_errno(error, *p, "allow this path in the sandbox");
    for (const char *const *p = devices; *p; p++)
        (void)allow(fd, *p, RIGHT_READ | RIGHT_WRITE | (RIGHT_CUT & known), 0);
    for (const char *const *p = rules->read ? rules->read : none; *p && status == WHIT_OK; p++)
        if (!allow_around(fd, *p, RIGHTS_READING & known, rules))
            status = whit_fail_errno(error, *p, "allow this path in the sandbox");
    for (const char *const *p = rules->write ? rules->write : none; *p && status == WHIT_OK; p++)
        if (!allow(fd, *p, RIGHTS_CHANGING & known, 0))
            status = whit_fail_errno(error, *p, "allow this path in the sandbox");
    if (status != WHIT_OK)
        close(fd);
    else
        *ruleset = fd;
    return status;
}

bool whit_landlock_restrict(int ruleset)
{
    return syscall(CALL_RESTRICT, ruleset, 0u) == 0;
}
