/* SPDX-License-Identifier: MIT
 * Windows has no sandbox: the caller opens its files itself. */
#include "base/opener.h"

whit_status whit_opener_start(const char *const *paths, size_t n, int *fd, whit_error *error)
{
    (void)paths;
    (void)n;
    (void)error;
    *fd = -1;
    return WHIT_OK;
}

whit_status whit_opener_open(int fd, size_t i, const char *path, FILE **file, whit_error *error)
{
    (void)fd;
    (void)i;
    *file = fopen(path, "r");
    return *file ? WHIT_OK : whit_fail_errno(error, path, "open");
}
