/* SPDX-License-Identifier: MIT
 * The caller and the opener exchange these messages:
 *
 *     caller                         opener
 *     a byte: which file     ->     open(2)
 *     errno and descriptor   <-     SCM_RIGHTS; no descriptor beside an errno */
#include "base/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/helper.h"

typedef union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
} control;

static bool send_opened(int socket, int failure, int fd)
{
    control passed;
    struct iovec data = {&failure, sizeof failure};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    memset(&passed, 0, sizeof passed);
    if (fd >= 0) {
        message.msg_control = &passed;
        message.msg_controllen = sizeof passed.room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof failure;
}

/* Receives a descriptor from the opener process; -1, with errno, on failure. */
static int receive_opened(int socket)
{
    control passed;
    int failure = 0, fd = -1;
    ssize_t got;
    struct iovec data = {&failure, sizeof failure};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &passed, .msg_controllen = sizeof passed.room};
    do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof failure) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(head), sizeof fd);
    }
    if (fd < 0) errno = failure ? failure : EPIPE;
    return fd;
}

struct listed {
    const char *const *paths;
    size_t n;
};

static void open_on_request(int socket, void *user)
{
    const struct listed *listed = user;
    uint8_t which;
    ssize_t got;
    while ((got = read(socket, &which, 1)) == 1 || (got < 0 && errno == EINTR)) {
        if (got != 1 || which >= listed->n) continue;
        const int fd = open(listed->paths[which], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const bool is_sent = send_opened(socket, fd < 0 ? errno : 0, fd);
        if (fd >= 0) close(fd);
        if (!is_sent) break;
    }
}

whit_status whit_opener_start(const char *const *paths, size_t n, int *fd, whit_error *error)
{
    struct listed listed = {paths, n};
    return whit_helper_start("the process that opens files", open_on_request, &listed, fd, error);
}

whit_status whit_opener_open(int fd, size_t i, const char *path, FILE **file, whit_error *error)
{
    uint8_t which = (uint8_t)i;
    int opened = -1;
    if (fd < 0)
        opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    else if (send(fd, &which, 1, MSG_NOSIGNAL) == 1)
        opened = receive_opened(fd);
    *file = opened >= 0 ? fdopen(opened, "r") : NULL;
    if (*file) return WHIT_OK;
    whit_status status = whit_fail_errno(error, path, "open");
    if (opened >= 0) close(opened);
    return status;
}
