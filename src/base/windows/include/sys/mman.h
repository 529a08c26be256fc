/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_SYS_MMAN_H
#define WHIT_WINDOWS_SYS_MMAN_H
enum { MAP_FIXED = 16 }; /* mmap fails with ENOTSUP */
#endif
