/* SPDX-License-Identifier: MIT
 * The part of base/system.h that Linux, macOS and WebAssembly share. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/system.h"

#include <stdlib.h>
#include <sys/random.h>
#include <wchar.h>

void whit_system_begin(int *argc, char ***argv)
{
    (void)argc, (void)argv;
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
