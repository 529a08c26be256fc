/* SPDX-License-Identifier: MIT
 * Opens the built-in model for the commands. */
#ifndef WHIT_CLI_TALES_H
#define WHIT_CLI_TALES_H

#include "hub/builtin.h"
#include "whit.h"

#include <string.h>

#define CLI_TALES_NAME WHIT_BUILTIN_NAME

/* Remarks advise to pull this model in place of the small built-in one; it is the first model in the README. */
#define CLI_FIRST_MODEL "microsoft/bitnet-b1.58-2B-4T-gguf"
#define CLI_FIRST_NAME  "bitnet-b1.58-2B-4T-gguf"

/* Returns whether `path`, as given by -m, means the built-in model: NULL or its name. */
static inline bool cli_is_tales(const char *path)
{
    return !path || strcmp(path, "tales") == 0;
}

/* Opens the built-in model; the caller closes it. */
whit_status cli_tales_open(whit_model **model, whit_error *error);

/* Writes the built-in model, an .ndf file, to `path` atomically. */
whit_status cli_tales_write(const char *path, whit_error *error);

#endif
