/* SPDX-License-Identifier: MIT
 * Implements the functions of base/path.h that are the same on every system. */
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool whit_path_expand(const char *typed, char *path, size_t path_bytes)
{
    const char *home = typed[0] == '~' && typed[1] == '/' ? getenv("HOME") : NULL;
    const int n = home ? snprintf(path, path_bytes, "%s%s", home, typed + 1) : snprintf(path, path_bytes, "%s", typed);
    return n >= 0 && (size_t)n < path_bytes;
}

bool whit_path_is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n && folder[n - 1] == '/') n--;
    return strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

bool whit_path_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool whit_path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool whit_path_is_linked(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && (S_ISLNK(info.st_mode) || (S_ISREG(info.st_mode) && info.st_nlink > 1));
}
