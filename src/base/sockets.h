/* SPDX-License-Identifier: MIT
 * Listening sockets, and whether a client is still there. */
#ifndef WHIT_BASE_SOCKETS_H
#define WHIT_BASE_SOCKETS_H

#include "base/status.h"

#include <stdbool.h>

/* Listens on a Unix socket; a socket file that a killed server left is replaced. The caller closes *fd
 * (whit_socket_close). The call fails on Windows. */
whit_status whit_listen_unix(const char *path, int *fd, whit_error *error);
/* Listens on HOST:PORT (0: any free port); `address` receives "http://HOST:PORT" with the actual port. The caller
 * closes *fd unless it is -1, on failure, too. `option` is the advice that ends the message if the port is taken. */
whit_status whit_listen_tcp(const char *host, uint32_t port, const char *option, int *fd, char *address,
                            size_t address_bytes, whit_error *error);
/* Writes the IPv4 address by which devices of the same network reach this machine, which is the address of its route
 * outwards. It sends nothing. The result is false without a network. */
bool whit_find_network_address(char *address, size_t address_bytes);
/* Returns whether a listening socket is reached from this machine alone: its address is 127.0.0.0/8 or ::1. */
bool whit_socket_is_local(int fd);
/* Closes a socket, which is not a file descriptor on Windows. */
void whit_socket_close(int fd);
/* Ends a connection without closing its socket: a thread that reads or writes it sees the end. */
void whit_socket_end(int fd);
/* Returns whether the client at the other end of a connection has closed it, or its sending half. */
bool whit_socket_peer_left(int fd);

#endif
