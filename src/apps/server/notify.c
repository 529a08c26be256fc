/* SPDX-License-Identifier: MIT */
#include "server/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int whit_notify_open(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof address.sun_path || (*path != '/' && *path != '@')) return -1;
    memcpy(address.sun_path, path, n);
    if (*path == '@') address.sun_path[0] = 0; /* the name of an abstract socket, which begins with a zero byte */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void whit_notify(int fd, const char *state)
{
    if (fd < 0) return;
    if (send(fd, state, strlen(state), MSG_NOSIGNAL) < 0) { /* an error means that systemd has ended; it is ignored */
    }
}
