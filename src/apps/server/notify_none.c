/* SPDX-License-Identifier: MIT
 * Systems without systemd: notifications have no effect. */
#include "server/notify.h"

int whit_notify_open(void)
{
    return -1;
}

void whit_notify(int fd, const char *state)
{
    (void)fd, (void)state;
}
