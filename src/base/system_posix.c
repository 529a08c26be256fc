/* SPDX-License-Identifier: MIT
 * What Linux, macOS and WebAssembly share of base/system.h. */
#include "base/mem.h"
#include "base/system.h"

#include <stdlib.h>

void whit_system_begin(int *argc, char ***argv)
{
    (void)argc, (void)argv;
}

void *whit_system_alloc(size_t size_bytes)
{
    return aligned_alloc(WHIT_ALIGN_BYTES, size_bytes);
}

void whit_system_free(void *memory)
{
    free(memory);
}
