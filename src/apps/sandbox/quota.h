/* SPDX-License-Identifier: MIT
 * Limits what the processes of a command use in total: setrlimit limits only each process, and cgroups are not
 * available everywhere. The use is counted from outside, several times per second; the caller ends a command that
 * exceeds a limit. */
#ifndef WHIT_SANDBOX_QUOTA_H
#define WHIT_SANDBOX_QUOTA_H

#include "sandbox/sandbox.h"

#include <sys/types.h>

typedef struct whit_quota whit_quota;

/* Records the free disk space and memory at the start of a command. Returns NULL if memory runs out. The arguments must
 * outlive the quota. */
whit_quota *whit_quota_open(const whit_sandbox_rules *rules, const whit_sandbox_limits *limits);
/* Counts the resources of all descendants of `keeper`, and walks through a part of the writable folders; a call takes a
 * few milliseconds, however large the folders are. Returns false if a limit is exceeded, or if the disk's free space or
 * the machine's memory is nearly used up, and describes the reason in `over`. The memory limit counts as exceeded after
 * two such calls in a row. */
bool whit_quota_holds(whit_quota *quota, pid_t keeper, char *over, size_t over_bytes);
void whit_quota_close(whit_quota *quota);
/* Returns three quarters of the machine's memory in bytes, or 16 GiB if its size is unknown. */
uint64_t whit_quota_memory_default(void);
/* Returns whether the resources of processes can be counted here, which needs /proc. */
bool whit_quota_is_counted(void);

#endif
