/* SPDX-License-Identifier: MIT
 * Implements base/path.h for POSIX systems. */
#include "base/path.h"

bool whit_path_is_absolute(const char *path)
{
    return path[0] == '/';
}

bool whit_path_is_relative(const char *path)
{
    return path[0] != '/';
}

void whit_path_adopt(char *path)
{
    (void)path;
}
