/* SPDX-License-Identifier: MIT
 * Sends the state of a service with Type=notify to systemd, as described in sd_notify(3). */
#ifndef WHIT_SERVER_NOTIFY_H
#define WHIT_SERVER_NOTIFY_H

/* Opens the socket that $NOTIFY_SOCKET names; returns -1 if the variable is not set or the socket cannot be opened. */
int whit_notify_open(void);
/* Sends a state, such as "READY=1" or "STOPPING=1". Does nothing if fd is -1. */
void whit_notify(int fd, const char *state);

#endif
