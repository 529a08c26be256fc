/* SPDX-License-Identifier: MIT
 * Converts paths to URIs of files and back, as the language server and model context protocols write them. */
#ifndef WHIT_BASE_URI_H
#define WHIT_BASE_URI_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes n bytes of a URI (%20). A '%' without two hexadecimal digits stands for itself, or is an error if
 * `is_strict`. Returns false also if the result has a zero byte, or does not fit into `room` bytes (at least 1) with
 * the zero byte at its end. */
bool whit_uri_decode(const char *text, size_t n, bool is_strict, char *decoded, size_t room);
/* Convert a URI such as "file:///a%20b" to an absolute path, and back. Return false if the argument is not a valid URI
 * or path, or if the result does not fit. */
bool whit_uri_to_path(const char *uri, char *path, size_t path_bytes);
bool whit_uri_of_path(const char *path, char *uri, size_t uri_bytes);

#endif
