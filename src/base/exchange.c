/* SPDX-License-Identifier: MIT */
#include "base/exchange.h"

#include "base/file.h"
#include "base/items.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef RENAME_EXCHANGE
/* Renames with flags of renameat2(2). *is_lacking becomes true if the system or the file system does not know them. */
static bool rename_with(const char *from, const char *to, unsigned flags, bool *is_lacking)
{
    const bool ok = renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) == 0;
    *is_lacking = !ok && (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP);
    return ok;
}
#else
enum { RENAME_NOREPLACE = 1, RENAME_EXCHANGE = 2 };

static bool rename_with(const char *from, const char *to, unsigned flags, bool *is_lacking)
{
    (void)from, (void)to, (void)flags;
    *is_lacking = true;
    return false;
}
#endif

bool whit_exchange_is(const char *path, const whit_expected *expected)
{
    whit_buf content = {0};
    whit_error ignored;
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    if (expected->is) return expected->is(path, expected->user);
    bool same = (uint64_t)about.st_size == expected->n_bytes &&
        whit_read_file(path, expected->n_bytes, &content, &ignored) == WHIT_OK &&
        content.size_bytes == expected->n_bytes &&
        (!expected->n_bytes || memcmp(content.data, expected->text, expected->n_bytes) == 0);
    whit_buf_free(&content);
    return same;
}

static bool is_as_expected(const char *path, const whit_expected *expected)
{
    struct stat about;
    return expected->exists ? whit_exchange_is(path, expected) : lstat(path, &about) != 0 && errno == ENOENT;
}

whit_exchanged whit_exchange_put(const char *beside, const char *full, const whit_expected *expected)
{
    bool is_lacking, is_back;
    struct stat about;
    if (!is_as_expected(full, expected)) return WHIT_EXCHANGE_OTHER;
    if (rename_with(beside, full, expected->exists ? RENAME_EXCHANGE : RENAME_NOREPLACE, &is_lacking)) {
        if (!expected->exists) return WHIT_EXCHANGE_DONE;
        /* another hard link that was made meanwhile would keep the old content */
        const bool is_alone = lstat(beside, &about) == 0 && about.st_nlink == 1;
        if (is_alone && whit_exchange_is(beside, expected)) {
            (void)unlink(beside);
            return WHIT_EXCHANGE_DONE;
        }
        is_back = rename_with(beside, full, RENAME_EXCHANGE, &is_lacking) || rename(beside, full) == 0;
        return is_back ? WHIT_EXCHANGE_OTHER : WHIT_EXCHANGE_FAILED;
    }
    if (is_lacking) return rename(beside, full) == 0 ? WHIT_EXCHANGE_DONE : WHIT_EXCHANGE_FAILED;
    return errno == EEXIST || errno == ENOENT ? WHIT_EXCHANGE_OTHER : WHIT_EXCHANGE_FAILED;
}

whit_exchanged whit_exchange_remove(const char *beside, const char *full, const whit_expected *expected)
{
    bool is_lacking;
    if (rename_with(full, beside, RENAME_NOREPLACE, &is_lacking)) {
        if (whit_exchange_is(beside, expected)) {
            (void)unlink(beside);
            return WHIT_EXCHANGE_DONE;
        }
        return rename_with(beside, full, RENAME_NOREPLACE, &is_lacking) ? WHIT_EXCHANGE_OTHER : WHIT_EXCHANGE_FAILED;
    }
    if (is_lacking) return unlink(full) == 0 ? WHIT_EXCHANGE_DONE : WHIT_EXCHANGE_FAILED;
    return errno == ENOENT ? WHIT_EXCHANGE_OTHER : WHIT_EXCHANGE_FAILED;
}
