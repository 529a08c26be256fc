/* SPDX-License-Identifier: MIT
 * Paths as a system writes them. Inside the program "/" separates folders, on every system. */
#ifndef WHIT_BASE_PATH_H
#define WHIT_BASE_PATH_H

#include <stdbool.h>

/* Returns whether a path is complete by itself: "/x", on Windows also "C:/x". */
bool whit_path_is_absolute(const char *path);
/* Returns whether a path in the program's form stands for the same file below every folder. On Windows names with "\"
 * or ":" do not: they have a drive, a stream, or another separator. Nor do the names of devices ("con", "nul.txt"). */
bool whit_path_is_relative(const char *path);
/* Brings a path that a user wrote into the program's form: on Windows "\" becomes "/". */
void whit_path_adopt(char *path);

#endif
