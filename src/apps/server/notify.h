/* SPDX-License-Identifier: MIT
 * What systemd is told of a service with Type=notify (sd_notify(3)). */
#ifndef WHIT_SERVER_NOTIFY_H
#define WHIT_SERVER_NOTIFY_H

/* Opens the socket that $NOTIFY_SOCKET names; -1 if it is not set. */
int whit_notify_open(void);
/* "READY=1", "STOPPING=1" ... */
void whit_notify(int fd, const char *state);

#endif
