/* SPDX-License-Identifier: MIT
 * Declares the request to clone a file's blocks (reflink), which ioctl refuses here. */
#ifndef WHIT_WINDOWS_LINUX_FS_H
#define WHIT_WINDOWS_LINUX_FS_H
#define FICLONE 0x40049409
#endif
