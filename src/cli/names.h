/* SPDX-License-Identifier: MIT
 * Finds models by a name or path from the user. */
#ifndef WHIT_CLI_NAMES_H
#define WHIT_CLI_NAMES_H

#include "base/status.h"

#define CLI_PATH_BYTES 4096

/* Finds the path of `words`: `words` itself if such a file or folder exists ("~/" is the home folder, also if the shell
 * has not expanded it), else the pulled model of that name (whit_hub_store_path). The error is WHIT_ERROR_IO if nothing
 * is found. */
whit_status cli_find_model(const char *words, char path[CLI_PATH_BYTES], whit_error *error);

/* Returns whether the words are a path rather than a name: they begin with '/', '.', '~' or the name of an existing
 * folder, or have the ending of a model's file. */
bool cli_looks_like_path(const char *words);

/* Returns whether both paths exist and are the same file; links are followed. */
bool cli_is_same_file(const char *a, const char *b);

/* Returns whether the path is a regular file; *n_bytes is its size then. */
bool cli_file_size(const char *path, uint64_t *n_bytes);

/* Writes a number of bytes for people: "3.1 GB", "271 kB". */
const char *cli_bytes(uint64_t n_bytes, char text[32]);

#endif
