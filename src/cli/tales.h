/* SPDX-License-Identifier: MIT
 * The model that ships inside the program, "tales" (docs/tales.md): bytes of the program itself, used
 * where they lie. */
#ifndef WHIT_CLI_TALES_H
#define WHIT_CLI_TALES_H

#include "whit.h"

#include <string.h>

#define CLI_TALES_NAME "tales (built in)"

/* What to get in place of a toy: the model that the README names first. */
#define CLI_FIRST_MODEL "microsoft/bitnet-b1.58-2B-4T-gguf"
#define CLI_FIRST_NAME  "bitnet-b1.58-2B-4T-gguf"

/* Does `path`, as given by -m, stand for it? NULL does, and its name. */
static inline bool cli_is_tales(const char *path)
{
    return !path || strcmp(path, "tales") == 0;
}

/* Opens it; the caller closes it. */
whit_status cli_tales_open(whit_model **model, whit_error *error);

#endif
