/* SPDX-License-Identifier: MIT
 * The declarations are in base/windows/posix.h, which every file includes. */
