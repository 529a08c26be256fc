/* SPDX-License-Identifier: MIT */
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>

bool whit_path_expand(const char *typed, char *path, size_t path_bytes)
{
    const char *home = typed[0] == '~' && typed[1] == '/' ? getenv("HOME") : NULL;
    const int n = home ? snprintf(path, path_bytes, "%s%s", home, typed + 1) : snprintf(path, path_bytes, "%s", typed);
    return n >= 0 && (size_t)n < path_bytes;
}
