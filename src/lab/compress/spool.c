/* SPDX-License-Identifier: MIT */
#include "compress/spool.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifdef O_TMPFILE

/* Returns whether the disk has twice this number of bytes free. */
static bool has_room(int fd, size_t bytes)
{
    struct statvfs disk;
    return fstatvfs(fd, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize / 2 >= bytes;
}

void *whit_spool_map(const char *folder, size_t bytes)
{
    int fd = folder && bytes ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return NULL;
    void *memory = MAP_FAILED;
    /* Otherwise writing to the memory would end the program when the disk is full. */
    if (has_room(fd, bytes) && posix_fallocate(fd, 0, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

#else

void *whit_spool_map(const char *folder, size_t bytes)
{
    (void)folder, (void)bytes;
    return NULL; /* only Linux has unnamed files; callers use normal memory */
}

#endif

void whit_spool_unmap(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}
