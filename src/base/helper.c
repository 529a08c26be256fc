/* SPDX-License-Identifier: MIT */
#include "base/helper.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

whit_status whit_helper_start(const char *name, whit_helper_fn *serve, void *user, int *fd, whit_error *error)
{
    static const int ignored[] = {SIGINT, SIGHUP, SIGTERM, SIGPIPE};
    int ends[2];
    *fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return whit_fail_errno(error, name, "open a socket");
    const pid_t child = fork();
    if (child < 0) {
        const whit_status status = whit_fail_errno(error, name, "start");
        close(ends[0]);
        close(ends[1]);
        return status;
    }
    if (child > 0) {
        close(ends[1]);
        *fd = ends[0];
        return WHIT_OK;
    }
    close(ends[0]);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    serve(ends[1], user);
    _exit(0);
}
