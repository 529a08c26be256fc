/* SPDX-License-Identifier: MIT
 * Recognises a git-LFS pointer: the small text file that a clone contains instead of a large file that was not
 * downloaded. */
#ifndef WHIT_FORMAT_LFS_H
#define WHIT_FORMAT_LFS_H

#include "base/mem.h"

#define WHIT_LFS_REASON "is a git-LFS pointer, not the file itself; fetch it with `git lfs pull` or download it again"

static inline bool whit_is_lfs_pointer(const void *data, uint64_t size_bytes)
{
    static const char head[] = "version https://git-lfs.github.com/spec/";
    return size_bytes >= sizeof head - 1 && memcmp(data, head, sizeof head - 1) == 0;
}

#endif
