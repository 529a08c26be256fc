/* SPDX-License-Identifier: MIT */
#include "base/sockets.h"
#include "base/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns whether the path is a socket to which no server listens any more. connect() also refuses files that are not
 * sockets, but these must not be removed. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool stale =
        probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    return stale;
}

whit_status whit_listen_unix(const char *path, int *fd, whit_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *fd = -1;
    if (strlen(path) >= sizeof address.sun_path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: the path of a socket has at most %zu bytes", path,
                         sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = *fd >= 0;
    if (ok && bind(*fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int failure = errno;
        bool stale = failure == EADDRINUSE && is_stale(&address);
        ok = stale && unlink(path) == 0 && bind(*fd, (struct sockaddr *)&address, sizeof address) == 0;
        if (!stale) errno = failure;
    }
    if (!ok || listen(*fd, 128) != 0) return whit_fail_errno(error, path, "listen on this address");
    return WHIT_OK;
}

whit_status whit_listen_tcp(const char *host, uint32_t port, const char *option, int *fd, char *address,
                            size_t address_bytes, whit_error *error)
{
    char service[8], name[300];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    snprintf(service, sizeof service, "%u", port);
    snprintf(name, sizeof name, "%s:%u", host, port);
    *fd = -1;
    int reason = getaddrinfo(host, service, &hints, &found);
    if (reason) return whit_fail(error, WHIT_ERROR_IO, "%s: %s", name, gai_strerror(reason));
    int yes = 1;
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = *fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(*fd, found->ai_addr, found->ai_addrlen) == 0 && listen(*fd, 128) == 0;
    int failure = errno;
    freeaddrinfo(found);
    errno = failure;
    if (!ok && failure == EADDRINUSE)
        return whit_fail(error, WHIT_ERROR_IO, "%s: another program listens there; %s", name, option);
    if (!ok) return whit_fail_errno(error, name, "listen on this address");
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    char digits[16] = "";
    if (getsockname(*fd, (struct sockaddr *)&own, &n) == 0)
        getnameinfo((struct sockaddr *)&own, n, NULL, 0, digits, sizeof digits, NI_NUMERICSERV);
    snprintf(address, address_bytes, strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host, digits);
    return WHIT_OK;
}

bool whit_find_network_address(char *address, size_t address_bytes)
{
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    inet_pton(AF_INET, "192.0.2.1", &outside.sin_addr); /* an address reserved for documentation (RFC 5737) */
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&outside, sizeof outside) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &n) == 0 && !whit_address_is_loopback(&own) &&
        getnameinfo((struct sockaddr *)&own, n, address, (socklen_t)address_bytes, NULL, 0, NI_NUMERICHOST) == 0;
    whit_socket_close(fd);
    return found;
}

bool whit_socket_is_local(int fd)
{
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    return fd >= 0 && getsockname(fd, (struct sockaddr *)&own, &n) == 0 && whit_address_is_loopback(&own);
}

int whit_socket_accept(int listening)
{
    const int flags = fcntl(listening, F_GETFL);
    if (flags < 0 || fcntl(listening, F_SETFL, flags | O_NONBLOCK) != 0) return -1;
    int fd;
    do fd = accept(listening, NULL, NULL);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd >= 0) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

void whit_socket_close(int fd)
{
    if (fd >= 0) close(fd);
}

void whit_socket_end(int fd)
{
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

bool whit_socket_peer_left(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLRDHUP};
    return fd >= 0 && poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

bool whit_socket_has_bytes(int fd)
{
    char byte;
    return fd >= 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}
