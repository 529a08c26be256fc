/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Copies the extended attributes, including access lists. The result is false if one of them cannot be copied. */
static bool copy_attributes(int from, int to)
{
    char names[4096], value[4096];
    ssize_t n = flistxattr(from, names, sizeof names);
    if (n < 0) return errno == ENOTSUP || errno == ENOSYS;
    for (char *name = names; name < names + n; name += strlen(name) + 1) {
        ssize_t size = fgetxattr(from, name, value, sizeof value);
        if (size < 0 && errno == ENODATA) continue;
        if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0)) {
            char same[4096]; /* the new file's value: setting it may fail although the system has already given the
                              * new file the same value */
            if (size >= 0 && fgetxattr(to, name, same, sizeof same) == size && !memcmp(value, same, (size_t)size))
                continue;
            return false;
        }
    }
    return true;
}

bool whit_copy_metadata(int from, int to)
{
    struct stat about, made;
    if (fstat(from, &about) || fstat(to, &made)) return false;
    if ((made.st_uid != about.st_uid || made.st_gid != about.st_gid) && fchown(to, about.st_uid, about.st_gid))
        return false;
    /* The mode is set last: changing the owner clears some mode bits, and setting an access list changes others. */
    return copy_attributes(from, to) && fchmod(to, about.st_mode & 07777) == 0;
}
