/* SPDX-License-Identifier: MIT
 * Determines which addresses only programs of this machine can reach, for sockets.c and its Windows form. */
#ifndef WHIT_BASE_LOOPBACK_H
#define WHIT_BASE_LOOPBACK_H

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <netinet/in.h>
#include <sys/socket.h>
#endif

#include <stdbool.h>

/* Returns whether an address is in 127.0.0.0/8 (RFC 1122, 3.2.1.3), ::1, or in 127.0.0.0/8 mapped into IPv6. */
static inline bool whit_address_is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET) return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    if (address->ss_family != AF_INET6) return false;
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
        (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127);
}

#endif
