/* SPDX-License-Identifier: MIT
 * Implements the part of base/system.h that Linux, macOS and WebAssembly share. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/system.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include <wchar.h>

/* Opens /dev/null for each standard stream that is closed, stdin only for writing and the others only for reading, so
 * that the usual access still fails with EBADF. Otherwise the next opened file would get the number of a standard
 * stream, and messages would be written into it. Without /dev/null the root folder is opened, which can be neither read
 * nor written. */
static void fill_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0) (void)open("/", O_RDONLY);
}

void whit_system_begin(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fill_streams();
}

void *whit_system_alloc(size_t size_bytes, size_t alignment_bytes)
{
    return aligned_alloc(alignment_bytes, size_bytes);
}

void whit_system_free(void *memory)
{
    free(memory);
}

uint64_t whit_system_draw(void)
{
    uint64_t drawn;
    return getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn ? drawn : whit_now_ns();
}

bool whit_system_replaces_mapped(void)
{
    return true;
}

int whit_system_columns(uint32_t code)
{
    return wcwidth((wchar_t)code);
}
