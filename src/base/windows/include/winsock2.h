/* SPDX-License-Identifier: MIT
 * The sockets of Windows. Their struct pollfd and its constants have the names of those in base/windows/posix.h, which
 * keep them. */
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
