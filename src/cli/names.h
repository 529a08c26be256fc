/* SPDX-License-Identifier: MIT
 * Finds models by the names or paths that users give. */
#ifndef WHIT_CLI_NAMES_H
#define WHIT_CLI_NAMES_H

#include "base/status.h"

#define CLI_PATH_BYTES 4096

/* Finds the path of a model. If a file or folder `words` exists, it is that; "~/" means the home folder even if the
 * shell has not expanded it. Otherwise `words` is the name of a pulled model (whit_hub_store_path). Text that is
 * neither such a name nor probably a path or an address is returned unchanged, so that opening it reports the error.
 * Errors: io (no model of this name or path is found), argument (the built-in model has no path), unsupported (the file
 * is an unfinished download or one piece of a split file). */
whit_status cli_find_model(const char *words, char path[CLI_PATH_BYTES], whit_error *error);

/* Returns whether `words` are probably a path and not a name: they begin with '/', '.', '~' or the name of an existing
 * folder, or end with '/' or a suffix such as .gguf or .json. Addresses of a hub are not paths, and text with ':' only
 * if it begins with one of these signs or exists. */
bool cli_looks_like_path(const char *words);

/* Returns whether both paths exist and are the same file; links are followed. */
bool cli_is_same_file(const char *a, const char *b);

/* Returns whether the path is a regular file; then sets *n_bytes to its size. */
bool cli_file_size(const char *path, uint64_t *n_bytes);

/* Writes a number of bytes in a short form, such as "3.1 GB" or "271 kB". Returns `text`. */
const char *cli_bytes(uint64_t n_bytes, char text[32]);

#endif
