/* SPDX-License-Identifier: MIT
 * Opens the model that ships inside the library, "tales" (docs/use/tales.md): bytes of the program itself, used in
 * place. */
#ifndef WHIT_HUB_BUILTIN_H
#define WHIT_HUB_BUILTIN_H

#include <stddef.h>

#define WHIT_BUILTIN_NAME "tales (built in)"

/* Returns the bytes of the model's .ndf file, 64-byte aligned. */
const void *whit_builtin_bytes(size_t *size_bytes);

#endif
