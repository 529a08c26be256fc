/* SPDX-License-Identifier: MIT */
#include "hub/builtin.h"

#include <stdint.h>

#include "base/embed.h"

WHIT_EMBED_FILE("whit_builtin", WHIT_BUILTIN_FILE);
extern const uint8_t whit_builtin_begin[], whit_builtin_end[];

const void *whit_builtin_bytes(size_t *size_bytes)
{
    *size_bytes = (uintptr_t)whit_builtin_end - (uintptr_t)whit_builtin_begin;
    return whit_builtin_begin;
}
