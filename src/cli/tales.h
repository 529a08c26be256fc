/* SPDX-License-Identifier: MIT
 * Opens and writes the built-in model for the verbs. */
#ifndef WHIT_CLI_TALES_H
#define WHIT_CLI_TALES_H

#include "hub/builtin.h"
#include "whit.h"

#include <string.h>

#define CLI_TALES_NAME WHIT_BUILTIN_NAME

/* The model that remarks advise users to pull in place of the small built-in one; the README names it first. */
#define CLI_FIRST_MODEL "microsoft/bitnet-b1.58-2B-4T-gguf"
#define CLI_FIRST_NAME  "bitnet-b1.58-2B-4T-gguf"

/* Returns whether `path`, the value of -m, means the built-in model: it is NULL or the model's name. */
static inline bool cli_is_tales(const char *path)
{
    return !path || strcmp(path, "tales") == 0;
}

/* Opens the built-in model, which the caller closes. */
whit_status cli_tales_open(whit_model **model, whit_error *error);

/* Writes the built-in model as an .ndf file to `path`, atomically. */
whit_status cli_tales_write(const char *path, whit_error *error);

#endif
