/* SPDX-License-Identifier: MIT
 * Implements calls of Linux and GNU on macOS. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#undef qsort_r

/* The caller's comparison function and its context, which are passed together as the single context pointer of macOS's
 * qsort_r. */
struct order {
    int (*compare)(const void *, const void *, void *);
    void *context;
};

static int compare_in_order(void *order_pointer, const void *a, const void *b)
{
    struct order *order = order_pointer;
    return order->compare(a, b, order->context);
}

void whit_qsort_r(void *items, size_t n, size_t item_bytes, int (*compare)(const void *, const void *, void *),
                  void *context)
{
    struct order order = {compare, context};
    qsort_r(items, n, item_bytes, &order, compare_in_order);
}

ssize_t getrandom(void *bytes, size_t size_bytes, unsigned flags)
{
    (void)flags;
    const size_t n = size_bytes < 256 ? size_bytes : 256;
    return getentropy(bytes, n) == 0 ? (ssize_t)n : -1;
}

int memfd_create(const char *name, unsigned flags)
{
    const char *folder = getenv("TMPDIR");
    char path[1024];
    (void)flags;
    int n = snprintf(path, sizeof path, "%s/%.32s-XXXXXX", folder && *folder ? folder : "/tmp", name);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) (void)unlink(path);
    return fd;
}

int posix_fallocate(int fd, off_t offset, off_t size_bytes)
{
    fstore_t space = {.fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE, .fst_length = size_bytes};
    if (fcntl(fd, F_PREALLOCATE, &space) != 0) return errno;
    return ftruncate(fd, offset + size_bytes) == 0 ? 0 : errno;
}
