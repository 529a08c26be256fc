/* SPDX-License-Identifier: MIT
 * Declares POSIX for Windows: the part that whit uses and mingw-w64 lacks, or has for one code page only.
 *
 * The build includes this header before every file of a Windows build (cmake/Windows.cmake), and the folder `include`
 * beside it has the header names that mingw-w64 does not know. File names, environment and arguments are UTF-8; "/" and
 * "\" both separate folders. Files are opened as binary, shared, and not inherited. Functions set errno as POSIX
 * specifies; functions without an equivalent on Windows fail or have no effect. */
#ifndef WHIT_BASE_WINDOWS_POSIX_H
#define WHIT_BASE_WINDOWS_POSIX_H

#include "posix_files.h"
#include "posix_folders.h"
#include "posix_system.h"
#include "posix_text.h"

#endif
