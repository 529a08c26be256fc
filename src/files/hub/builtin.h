/* SPDX-License-Identifier: MIT
 * Provides the model that is part of the library, "tales" (docs/use/tales.md). Its bytes are used in place, without a
 * copy. */
#ifndef WHIT_HUB_BUILTIN_H
#define WHIT_HUB_BUILTIN_H

#include <stddef.h>

#define WHIT_BUILTIN_NAME "tales (built in)"

/* Returns the bytes of the model's .ndf file, 64-byte aligned. */
const void *whit_builtin_bytes(size_t *size_bytes);

#endif
