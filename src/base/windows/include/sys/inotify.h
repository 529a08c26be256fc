/* SPDX-License-Identifier: MIT
 * Files are not watched: opening a watch fails, and callers look at files themselves. */
#ifndef WHIT_WINDOWS_SYS_INOTIFY_H
#define WHIT_WINDOWS_SYS_INOTIFY_H
enum { IN_NONBLOCK = 1, IN_CLOEXEC = 2, IN_ATTRIB = 4, IN_CLOSE_WRITE = 8, IN_DELETE_SELF = 1024, IN_MOVE_SELF = 2048 };
static inline int inotify_init1(int flags)
{
    (void)flags;
    return -1;
}
static inline int inotify_add_watch(int watch, const char *path, unsigned which)
{
    (void)watch, (void)path, (void)which;
    return -1;
}
static inline int inotify_rm_watch(int watch, int number)
{
    (void)watch, (void)number;
    return -1;
}
#endif
