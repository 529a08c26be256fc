/* SPDX-License-Identifier: MIT
 * Implements sockets of Windows. Their handles are small numbers, which an int holds (the kernel uses 30 bits). */
#include "wide.h"

#include <stdio.h>
#include <string.h>
#include <ws2tcpip.h>

#include "base/sockets.h"
#include "base/loopback.h"

/* Result bits of WSAPoll; posix.h defines their usual names with other values. */
enum { POLLED_ERROR = 1, POLLED_CLOSED = 2, POLLED_INVALID = 4 };

static const struct {
    int code, number;
} reasons[] = {
    {WSAEADDRINUSE, EADDRINUSE}, {WSAEACCES, EACCES},  {WSAEADDRNOTAVAIL, EADDRNOTAVAIL},
    {WSAEMFILE, EMFILE},         {WSAENOBUFS, ENOMEM}, {WSAEAFNOSUPPORT, EAFNOSUPPORT},
};

static void set_errno(void)
{
    const int code = WSAGetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].code == code) errno = reasons[i].number;
}

whit_status whit_listen_unix(const char *path, int *fd, whit_error *error)
{
    *fd = -1;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: whit for Windows has no Unix sockets: serve on a port", path);
}

whit_status whit_listen_tcp(const char *host, uint32_t port, const char *option, int *fd, char *address,
                            size_t address_bytes, whit_error *error)
{
    char service[8], name[300], digits[16] = "";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    WSADATA about;
    snprintf(service, sizeof service, "%u", port);
    snprintf(name, sizeof name, "%s:%u", host, port);
    *fd = -1;
    if (WSAStartup(MAKEWORD(2, 2), &about) != 0)
        return whit_fail(error, WHIT_ERROR_IO, "%s: this system has no sockets", name);
    if (getaddrinfo(host, service, &hints, &found) != 0)
        return whit_fail(error, WHIT_ERROR_IO, "%s: is not an address of this machine", name);
    /* Without SO_EXCLUSIVEADDRUSE another program could listen on the same port, which is what SO_REUSEADDR allows on
     * Windows. */
    const BOOL yes = TRUE, no = FALSE;
    SOCKET s = WSASocketW(found->ai_family, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED);
    /* A socket on "::" accepts IPv4 connections too, as on other systems. */
    if (s != INVALID_SOCKET && found->ai_family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&no, sizeof no);
    bool ok = s != INVALID_SOCKET &&
        setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&yes, sizeof yes) == 0 &&
        bind(s, found->ai_addr, (int)found->ai_addrlen) == 0 && listen(s, 128) == 0;
    if (!ok) set_errno();
    freeaddrinfo(found);
    if (s != INVALID_SOCKET) *fd = (int)s;
    if (!ok && errno == EADDRINUSE)
        return whit_fail(error, WHIT_ERROR_IO, "%s: another program listens there; %s", name, option);
    if (!ok) return whit_fail_errno(error, name, "listen on this address");
    struct sockaddr_storage own;
    int n = sizeof own;
    if (getsockname(s, (struct sockaddr *)&own, &n) == 0)
        getnameinfo((struct sockaddr *)&own, n, NULL, 0, digits, sizeof digits, NI_NUMERICSERV);
    snprintf(address, address_bytes, strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host, digits);
    return WHIT_OK;
}

bool whit_find_network_address(char *address, size_t address_bytes)
{
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_storage own;
    int n = sizeof own;
    WSADATA about;
    if (WSAStartup(MAKEWORD(2, 2), &about) != 0) return false;
    inet_pton(AF_INET, "192.0.2.1", &outside.sin_addr); /* an address reserved for documentation (RFC 5737) */
    const SOCKET s = socket(AF_INET, SOCK_DGRAM, 0);
    if (s == INVALID_SOCKET) return false;
    const bool found = connect(s, (const struct sockaddr *)&outside, sizeof outside) == 0 &&
        getsockname(s, (struct sockaddr *)&own, &n) == 0 && !whit_address_is_loopback(&own) &&
        getnameinfo((struct sockaddr *)&own, n, address, (DWORD)address_bytes, NULL, 0, NI_NUMERICHOST) == 0;
    closesocket(s);
    return found;
}

bool whit_socket_is_local(int fd)
{
    struct sockaddr_storage own;
    int n = sizeof own;
    return fd >= 0 && getsockname((SOCKET)fd, (struct sockaddr *)&own, &n) == 0 && whit_address_is_loopback(&own);
}

int whit_socket_accept(int listening)
{
    u_long is_on = 1;
    if (listening < 0 || ioctlsocket((SOCKET)listening, FIONBIO, &is_on) != 0) return -1;
    const SOCKET fd = accept((SOCKET)listening, NULL, NULL);
    return fd == INVALID_SOCKET ? -1 : (int)fd;
}

void whit_socket_close(int fd)
{
    if (fd >= 0) closesocket((SOCKET)fd);
}

void whit_socket_end(int fd)
{
    if (fd >= 0) shutdown((SOCKET)fd, SD_BOTH);
}

bool whit_socket_peer_left(int fd)
{
    /* WSAPoll reports a closed connection even if the event was not requested. */
    WSAPOLLFD look = {.fd = (SOCKET)fd, .events = POLLRDNORM};
    if (fd < 0 || WSAPoll(&look, 1, 0) <= 0) return false;
    char byte;
    return (look.revents & (POLLED_ERROR | POLLED_CLOSED | POLLED_INVALID)) ||
        recv((SOCKET)fd, &byte, 1, MSG_PEEK) == 0;
}

bool whit_socket_has_bytes(int fd)
{
    u_long n = 0;
    return fd >= 0 && ioctlsocket((SOCKET)fd, FIONREAD, &n) == 0 && n > 0;
}
