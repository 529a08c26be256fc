/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_SYS_STATVFS_H
#define WHIT_WINDOWS_SYS_STATVFS_H
#define statvfs(path, info) whit_posix_statvfs(path, info)
#endif
