/* SPDX-License-Identifier: MIT
 * Declares the two mechanisms that every use of the sandbox shares: Landlock rules for files, and seccomp filters for
 * system calls. Also declares the watcher, which answers calls that a filter passes on. */
#ifndef WHIT_SANDBOX_WALLS_H
#define WHIT_SANDBOX_WALLS_H

#include "sandbox/sandbox.h"

#include <linux/filter.h>
#include <sys/types.h>

/* ---- Landlock (landlock.c) ------------------------------------------------------------------ */

uint32_t whit_landlock_abi(void);
/* Makes a rule set that refuses everything that the kernel's Landlock can refuse, except what `rules` allow, reading
 * and executing the system's programs and libraries, and reading and writing /dev/null and /dev/full. is_for_command:
 * signals and abstract sockets of other processes are refused, too. The caller owns the descriptor *ruleset. */
whit_status whit_landlock_make(const whit_sandbox_rules *rules, bool is_for_command, int *ruleset, whit_error *error);
/* Adds a rule that allows reading and executing files in a folder; returns false with errno on failure. Makes only
 * system calls, so that it can be called after a fork. */
bool whit_landlock_allow_read(int ruleset, const char *path);
/* Applies a rule set to the calling thread, which must have set no_new_privs. Returns false with errno on failure. */
bool whit_landlock_restrict(int ruleset);
/* Folders and files of the system that every program may read and execute; the list ends with NULL. */
extern const char *const whit_landlock_system[];
/* Folders in those of the system that have settings and data of installed programs, perhaps with passwords: their files
 * are not read, unless the rules name such a folder. The list ends with NULL. */
extern const char *const whit_landlock_settings[];

/* ---- seccomp (filter.c) ----------------------------------------------------------------------- */

typedef struct whit_filter_wants {
    bool is_watched;     /* calls that are refused or name paths are sent to a listener (whit_watch_answer) */
    bool has_namespaces; /* sessions and changes of file modes are allowed, because namespaces make them harmless */
    bool may_connect, may_start;
} whit_filter_wants;

/* Returns whether libseccomp is installed and this program was built for it. */
bool whit_filter_is_here(void);
/* Builds a filter. `code` gets its BPF instructions, which the caller frees. Errors: unsupported, memory. */
whit_status whit_filter_make(const whit_filter_wants *wants, whit_buf *code, whit_error *error);
/* Installs the filter. Returns the listener's descriptor if `is_watched`, otherwise 0; -1 with errno on failure. Makes
 * only system calls. for_all: the filter applies to all threads of the process. */
int whit_filter_install(const struct sock_fprog *program, bool is_watched, bool for_all);

/* ---- the watcher (watch.c) -------------------------------------------------------------------- */

typedef struct whit_watch whit_watch;

/* Opens a watcher, which answers the calls that a command's filter sends to its listener. Refused calls fail and are
 * recorded. Calls that name paths continue, since Landlock decides about them, and are recorded if a path is outside
 * the rules. Some calls the watcher makes itself (proxy.c). Errors: memory, limit (more than 64 folders). */
whit_status whit_watch_open(const whit_sandbox_rules *rules, whit_watch **watch, whit_error *error);
/* Sets options of the listener's descriptor. Must be called before the first whit_watch_answer. */
void whit_watch_begin(int listener);
/* Receives one call from the listener, and answers it. Refused accesses are recorded in `result`. Returns false if the
 * listener is closed. */
bool whit_watch_answer(whit_watch *watch, int listener, whit_sandbox_result *result);
void whit_watch_close(whit_watch *watch);
/* Reads a zero-terminated string from another process, at most `room` bytes including the zero. Returns false if it
 * cannot be read or is longer. */
bool whit_watch_read_text(pid_t pid, uint64_t address, char *text, size_t room);

/* Describes a system call that a filter refuses or passes to the watcher. A call that names two paths has two
 * entries. */
typedef struct whit_call {
    const char *name;
    enum {
        CALL_REFUSE, /* refused, if `mask` and `value` match */
        /* refused without namespaces; with namespaces only refused if it names a path and there is no watcher */
        CALL_UNSPACED,
        /* argument `path_at` is a process number; without namespaces, refused for processes outside the command */
        CALL_PROCESS,
        /* like CALL_PROCESS if argument 0 is `value`; if it is `value` + 1, argument `path_at` is a process group,
         * which must be the command's; without namespaces, all other values of argument 0 are refused */
        CALL_GROUP,
        CALL_LIMIT,   /* like CALL_PROCESS for the process in argument 0; changing the size of core files is refused */
        CALL_CHANGE,  /* like CALL_UNSPACED, but without namespaces the watcher makes the call for the process if it is
                       * allowed */
        CALL_WATCH,   /* the watcher makes the call for the process if it is allowed */
        CALL_REQUEST, /* refused if argument 1 is not in whit_requests */
        CALL_READ,    /* names a path, for the watcher's records */
        CALL_WRITE,   /* names a path that it changes, for the watcher's records */
        CALL_OPEN,    /* names a path, and the next argument has the open flags, for the watcher's records */
        CALL_SOCKET,  /* refused unless may_connect */
        /* refused unless may_start; a watched filter never refuses it but sends it to the watcher, for the records */
        CALL_START,
    } kind;
    int folder_at, path_at; /* argument numbers; folder_at -1: the current folder; path_at -1: no path */
    uint64_t mask, value;   /* the entry applies only if (argument `path_at` & mask) == value; mask 0: always */
    int number;             /* system call number; 0: looked up by name */
} whit_call;
extern const whit_call whit_calls[]; /* the last entry has name NULL */
extern const uint32_t whit_requests[];
extern const size_t whit_n_requests;
/* Returns the system call number on this machine; negative if the call does not exist there or libseccomp is not
 * installed. */
int whit_call_number(const whit_call *call);

/* ---- calls that the watcher makes (proxy.c) ----------------------------------------------------- */

/* A folder that a command may change: its resolved path, and a descriptor. */
typedef struct whit_writable {
    const char *path;
    int fd;
} whit_writable;
struct seccomp_notif;
/* Makes a call of kind CALL_CHANGE in place of the process. Returns 0, or the errno with which the process's call must
 * fail: EPERM for files outside the folders, and for the bits setuid and setgid. */
int whit_proxy_change(const whit_writable *folders, size_t n, const struct seccomp_notif *call, const whit_call *of);
/* Makes a call of inotify_add_watch in place of the process. Returns 0 and sets *number to that of the watch, or
 * returns an errno as whit_proxy_change does. */
int whit_proxy_watch(const whit_writable *folders, size_t n, const struct seccomp_notif *call, int *number);

#endif
