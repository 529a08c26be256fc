/* SPDX-License-Identifier: MIT
 * What the processes of a command use together: setrlimit bounds each process alone, and a cgroup is not
 * everywhere to be had. Counted from outside, some times a second; a command that is over is to be ended. */
#ifndef WHIT_SANDBOX_QUOTA_H
#define WHIT_SANDBOX_QUOTA_H

#include "sandbox/sandbox.h"

#include <sys/types.h>

typedef struct whit_quota whit_quota;

/* Records the free disk space and memory at the start. NULL: out of memory. The arguments outlive it. */
whit_quota *whit_quota_open(const whit_sandbox_rules *rules, const whit_sandbox_limits *limits);
/* Counts the processes that descend from `keeper`, and a part of the writable folders: one call takes a few
 * milliseconds, however large they are. False if a limit is exceeded, which `over` names; the limit of memory, at two
 * calls in a row. */
bool whit_quota_holds(whit_quota *quota, pid_t keeper, char *over, size_t over_bytes);
void whit_quota_close(whit_quota *quota);
/* Three quarters of the machine's memory. */
uint64_t whit_quota_memory_default(void);
/* Can processes be counted here (is /proc there)? */
bool whit_quota_is_counted(void);

#endif
