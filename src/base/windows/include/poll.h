/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_POLL_H
#define WHIT_WINDOWS_POLL_H
/* Fails with EINTR when a signal arrives; the mask has no effect. */
int ppoll(struct pollfd *wanted, nfds_t n, const struct timespec *timeout, const sigset_t *mask);
#endif
