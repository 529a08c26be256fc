/* SPDX-License-Identifier: MIT
 * Models by name: what a user writes where a model is wanted. */
#ifndef WHIT_CLI_NAMES_H
#define WHIT_CLI_NAMES_H

#include "base/status.h"

#define CLI_PATH_BYTES 4096

/* The path behind `words`: themselves where such a file or folder is ("~/" is the home folder, also
 * where the shell leaves it), else that of the pulled model that they name (whit_hub_store_path).
 * WHIT_ERROR_IO where they name nothing. */
whit_status cli_find_model(const char *words, char path[CLI_PATH_BYTES], whit_error *error);

/* Is it rather a path than a name: with a leading '/', '.' or '~', the ending of a model's file, or the
 * name of a folder that is there in front? */
bool cli_looks_like_path(const char *words);

/* Are both there, and one file? Links are followed. */
bool cli_is_same_file(const char *a, const char *b);

/* "3.1 GB", "271 kB": a number of bytes for people. */
const char *cli_bytes(uint64_t n_bytes, char text[32]);

#endif
