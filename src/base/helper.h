/* SPDX-License-Identifier: MIT
 * Starts helper processes, which are forked before the caller enters a sandbox. They do work that the sandbox forbids
 * the caller. */
#ifndef WHIT_BASE_HELPER_H
#define WHIT_BASE_HELPER_H

#include "base/status.h"

/* Answers requests from `socket` until it is closed; runs in the helper process. */
typedef void whit_helper_fn(int socket, void *user);

/* Forks a helper that runs `serve` with its end of a pair of stream sockets and then exits; *fd is the caller's end.
 * The helper ignores SIGHUP, SIGTERM, SIGPIPE and SIGINT (at Ctrl-C the caller closes the socket); `serve` may change
 * that. `name` names the helper in messages. Call before threads are started. Errors: io. */
whit_status whit_helper_start(const char *name, whit_helper_fn *serve, void *user, int *fd, whit_error *error);

#endif
