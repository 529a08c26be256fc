/* SPDX-License-Identifier: MIT
 * Opens listening sockets, accepts connections, and tests what clients do. */
#ifndef WHIT_BASE_SOCKETS_H
#define WHIT_BASE_SOCKETS_H

#include "base/status.h"

#include <stdbool.h>

/* Listens on a Unix socket; a socket file that a killed server left is replaced. The caller closes *fd
 * (whit_socket_close) unless it is -1, also after a failure. The call fails on Windows. */
whit_status whit_listen_unix(const char *path, int *fd, whit_error *error);
/* Listens on HOST:PORT (port 0: any free port); `address` receives "http://HOST:PORT" with the actual port. The caller
 * closes *fd unless it is -1, also after a failure. `option` is the advice that ends the message if the port is
 * taken. */
whit_status whit_listen_tcp(const char *host, uint32_t port, const char *option, int *fd, char *address,
                            size_t address_bytes, whit_error *error);
/* Writes the IPv4 address at which devices of the same network reach this machine: the source address of its route to
 * the internet. Nothing is sent. The result is false without a network. */
bool whit_find_network_address(char *address, size_t address_bytes);
/* Returns whether a listening socket can be reached only from this machine: its address is a loopback address
 * (base/loopback.h). False for a Unix socket. */
bool whit_socket_is_local(int fd);
/* Accepts a connection that waits at a listening socket, which becomes non-blocking. Returns its socket, -1 if no
 * connection waits. */
int whit_socket_accept(int listening);
/* Closes a socket, which is not a file descriptor on Windows. */
void whit_socket_close(int fd);
/* Shuts a connection down without closing its socket: threads that read or write it see its end. */
void whit_socket_end(int fd);
/* Returns whether the client has closed the connection, or its sending half. */
bool whit_socket_peer_left(int fd);
/* Returns whether bytes have come that were not read yet. */
bool whit_socket_has_bytes(int fd);

#endif
