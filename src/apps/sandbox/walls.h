/* SPDX-License-Identifier: MIT
 * Declares the two mechanisms that every use of the sandbox shares: Landlock rules for files, and seccomp filters for
 * system calls. */
#ifndef WHIT_SANDBOX_WALLS_H
#define WHIT_SANDBOX_WALLS_H

#include "sandbox/sandbox.h"

#include <linux/filter.h>
#include <sys/types.h>

/* ---- Landlock (landlock.c) ------------------------------------------------------------------ */

uint32_t whit_landlock_abi(void);
/* Makes a rule set that refuses everything that this kernel's ABI can refuse, except `rules` and the system's programs
 * and libraries. is_for_command: also refuses signals to other processes and their abstract sockets. The caller owns
 * the descriptor. */
whit_status whit_landlock_make(const whit_sandbox_rules *rules, bool is_for_command, int *ruleset, whit_error *error);
/* Allows reading a folder. Makes only system calls, as required after a fork. */
bool whit_landlock_allow_read(int ruleset, const char *path);
/* Applies a rule set to the calling thread, which must have set no_new_privs. */
bool whit_landlock_restrict(int ruleset);
/* The system's folders and files that may be read; the list ends with NULL. */
extern const char *const whit_landlock_system[];

/* ---- seccomp (filter.c) ----------------------------------------------------------------------- */

typedef struct whit_filter_wants {
    bool is_watched;     /* refused calls and calls that name paths are reported to a listener */
    bool has_namespaces; /* new sessions and changed file modes are allowed, because they are harmless in namespaces */
    bool may_connect, may_start;
} whit_filter_wants;

/* Returns whether libseccomp is installed. */
bool whit_filter_is_here(void);
/* Compiles the filter; the caller owns the instructions in `code`. Errors: unsupported, memory. */
whit_status whit_filter_make(const whit_filter_wants *wants, whit_buf *code, whit_error *error);
/* Installs the filter; returns the listener's descriptor if `is_watched`, else 0; -1 with errno on failure. It makes
 * only system calls. for_all: the filter applies to all threads of the process. */
int whit_filter_install(const struct sock_fprog *program, bool is_watched, bool for_all);

/* ---- the watcher (watch.c) -------------------------------------------------------------------- */

typedef struct whit_watch whit_watch;

/* Opens a watcher, which answers the calls that a command's filter passes on. Calls that the filter refuses fail and
 * are recorded; calls that name paths continue, subject to Landlock, and are recorded if the paths are outside the
 * rules. */
whit_status whit_watch_open(const whit_sandbox_rules *rules, whit_watch **watch, whit_error *error);
/* Prepares a listener; call it before the first answer. */
void whit_watch_begin(int listener);
/* Answers one notification from the listener; returns false if the listener is closed. */
bool whit_watch_answer(whit_watch *watch, int listener, whit_sandbox_result *result);
void whit_watch_close(whit_watch *watch);
/* Reads a string of another process, at most `room` bytes including its final zero. */
bool whit_watch_read_text(pid_t pid, uint64_t address, char *text, size_t room);

/* Describes a call that a filter refuses or passes to the watcher; a call with two paths has two entries. */
typedef struct whit_call {
    const char *name;
    enum {
        CALL_REFUSE, /* refused; see `mask` */
        /* refused without namespaces; with them, refused if it names a path, unless a watcher lets it continue */
        CALL_UNSPACED,
        /* argument `path_at` is a process: without namespaces, refused if it is outside of the command */
        CALL_PROCESS,
        /* like CALL_PROCESS if argument 0 is `value`; concerns a process group if argument 0 is `value` + 1 */
        CALL_GROUP,
        CALL_LIMIT,   /* sets limits of a process: like CALL_PROCESS, and refused for the size of core files */
        CALL_CHANGE,  /* like CALL_UNSPACED, but without namespaces the watcher makes the call if it is allowed */
        CALL_WATCH,   /* the watcher makes the call if it is allowed */
        CALL_REQUEST, /* refused if argument 1 is not in whit_requests */
        CALL_READ,    /* names a path */
        CALL_WRITE,   /* names a path that it modifies */
        CALL_OPEN,    /* names a path; the next argument contains the flags */
        CALL_SOCKET,  /* refused without may_connect */
        CALL_START,   /* refused without may_start */
    } kind;
    int folder_at, path_at; /* argument numbers; folder_at -1: the current folder; path_at -1: no path */
    uint64_t mask, value;   /* the call is only caught if argument `path_at` & mask == value; mask 0: always */
    int number;             /* number of the call; 0: looked up by name */
} whit_call;
extern const whit_call whit_calls[]; /* ends with name NULL */
extern const uint32_t whit_requests[];
extern const size_t whit_n_requests;
/* Returns the number of a call on this machine; negative if it does not exist there. */
int whit_call_number(const whit_call *call);

/* ---- calls that the watcher makes (proxy.c) ----------------------------------------------------- */

/* Describes a folder that a command may change: its resolved path, and a descriptor of it. */
typedef struct whit_writable {
    const char *path;
    int fd;
} whit_writable;
struct seccomp_notif;
/* Makes a call of kind CALL_CHANGE for the process; returns 0 or the errno with which the call fails. EPERM is for
 * files outside the folders, and for bits that give a program another user's rights. */
int whit_proxy_change(const whit_writable *folders, size_t n, const struct seccomp_notif *call, const whit_call *of);
/* Makes an inotify_add_watch for the process; returns 0 and the watch's number, or an errno like whit_proxy_change. */
int whit_proxy_watch(const whit_writable *folders, size_t n, const struct seccomp_notif *call, int *number);

#endif
