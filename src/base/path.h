/* SPDX-License-Identifier: MIT
 * Examines and converts paths as the operating system writes them. Inside the program "/" separates folders on every
 * system ("the program's form"). */
#ifndef WHIT_BASE_PATH_H
#define WHIT_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether a path is absolute: "/x", on Windows also "\x", "C:/x" and "C:\x". */
bool whit_path_is_absolute(const char *path);
/* Returns whether a path in the program's form is relative, so that it can be appended to a folder's path. On Windows
 * the result is false for paths with "\" or ":", which contain a drive, a stream or another separator, and if a name in
 * the path is a device ("con", "nul.txt") or ends with a dot or a space (except "." and ".."). */
bool whit_path_is_relative(const char *path);
/* Converts a path that a user wrote to the program's form, in place: on Windows "\" becomes "/". */
void whit_path_adopt(char *path);
/* Copies a path that a user typed; "~/" at its beginning becomes the home folder if HOME is set. Returns false if the
 * result does not fit path_bytes; it is then truncated. */
bool whit_path_expand(const char *typed, char *path, size_t path_bytes);
/* Returns whether a path is the folder or lies in it, by their names alone. Slashes at the end of `folder` do not
 * count. */
bool whit_path_is_below(const char *path, const char *folder);
/* Returns whether the path names a file, folder or other entry that this process can look up; links are followed. If it
 * does not, errno has the reason, such as ENOENT. */
bool whit_path_exists(const char *path);
/* Returns whether the path names a folder; links are followed. */
bool whit_path_is_folder(const char *path);
/* Returns whether the path names a symbolic link, or a file that has other names. */
bool whit_path_is_linked(const char *path);

#endif
