/* SPDX-License-Identifier: MIT */
#include "base/typed.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

ssize_t whit_typed_ask(int terminal, const char *question, size_t n_question, const char *mark, char *line, size_t room)
{
    /* The wait uses ppoll(2), which is never restarted after a signal handler, while read would be. Signals are blocked
     * until ppoll waits, so that none is missed; SIGCONT, which follows Ctrl-Z, does not end the wait. */
    sigset_t held, before, waiting;
    struct pollfd wait = {.fd = terminal, .events = POLLIN};
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, &before);
    waiting = before;
    sigaddset(&waiting, SIGCONT);
    (void)tcflush(terminal, TCIFLUSH);
    dprintf(terminal, "%.*s%s", (int)n_question, question, mark);
    ssize_t got = ppoll(&wait, 1, NULL, &waiting) < 0 ? -1 : read(terminal, line, room);
    if (got < 0) dprintf(terminal, "\n");
    sigprocmask(SIG_SETMASK, &before, NULL);
    return got;
}
