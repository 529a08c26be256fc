/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_DLFCN_H
#define WHIT_WINDOWS_DLFCN_H
#define RTLD_NODELETE 0
#endif
