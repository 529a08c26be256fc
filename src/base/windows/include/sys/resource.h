/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#ifndef WHIT_WINDOWS_SYS_RESOURCE_H
#define WHIT_WINDOWS_SYS_RESOURCE_H
typedef uint64_t rlim_t;
struct rlimit {
    rlim_t rlim_cur, rlim_max;
};
enum { RLIMIT_AS = 9, RLIMIT_STACK = 3, RLIMIT_NOFILE = 7 };
#define RLIM_INFINITY UINT64_MAX
/* Reports that no resource is limited. */
static inline int getrlimit(int what, struct rlimit *limit)
{
    (void)what;
    limit->rlim_cur = limit->rlim_max = RLIM_INFINITY;
    return 0;
}
#endif
