/* SPDX-License-Identifier: MIT
 * Declares sockets of Windows. base/windows/posix.h defines a struct pollfd and constants with the same names, which
 * stay in effect. */
#ifndef WHIT_WINDOWS_WINSOCK2_H
#define WHIT_WINDOWS_WINSOCK2_H
#undef pollfd
#include_next <winsock2.h>
#undef POLLIN
#undef POLLOUT
#undef POLLPRI
#undef POLLERR
#undef POLLHUP
#undef POLLNVAL
#define pollfd whit_posix_pollfd
#endif
