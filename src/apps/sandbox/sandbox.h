/* SPDX-License-Identifier: MIT
 * Restricts a program by means of the kernel: Landlock for files and TCP, seccomp for system calls, namespaces where
 * the machine allows them, and limits of resources.
 *
 * whit_sandbox_run runs a command in a folder that it may change, captures its output, and ends all of its processes
 * with it. whit_sandbox_enter restricts this process after it has opened what it needs. Both fail if they cannot
 * enforce the restrictions; neither continues with less protection. */
#ifndef WHIT_SANDBOX_SANDBOX_H
#define WHIT_SANDBOX_SANDBOX_H

#include "base/mem.h"

typedef struct whit_sandbox_support {
    uint32_t landlock_abi; /* 0: the kernel has no Landlock, or it is disabled */
    /* libseccomp is installed and, as far as the test command shows, its filters work; false without Landlock */
    bool seccomp;
    bool holds;      /* a test command could be confined completely */
    bool namespaces; /* commands get user, mount, process, network and IPC namespaces, a second layer of
                            * protection */
} whit_sandbox_support;

/* Determines what this machine supports, partly by running a test command in the sandbox, which takes some
 * milliseconds. */
void whit_sandbox_probe(whit_sandbox_support *support);
/* Returns the reason why commands cannot be confined on this machine; NULL if they can. */
const char *whit_sandbox_lacks(const whit_sandbox_support *support);
/* Commands can be confined, but some protections or limits may be missing on this machine: returns a note about these,
 * to be shown before the first command; NULL if none is missing. */
const char *whit_sandbox_misses(const whit_sandbox_support *support);

/* Describes what a program may do. Paths are absolute or relative to the current folder. Lists end with NULL; NULL is
 * an empty list. */
typedef struct whit_sandbox_rules {
    /* paths that may be read and executed, in addition to the system's programs and libraries */
    const char *const *read;
    const char *const *write; /* paths that may be read, executed, changed, created and removed */
    /* resolved paths that stay closed although a folder that may be read, or a folder of the system, contains them */
    const char *const *hidden;
    bool may_connect; /* may create new sockets; otherwise only existing connections work */
    bool may_start;   /* may start other programs; only whit_sandbox_enter uses this */
} whit_sandbox_rules;

/* Limits of a command. 0 selects the default. */
typedef struct whit_sandbox_limits {
    uint32_t wall_s;       /* time until the command is ended; default 600 seconds */
    uint32_t cpu_s;        /* processor time of each process; default: wall_s */
    uint64_t memory_bytes; /* address space of each process; default 16 GiB */
    uint64_t file_bytes;   /* size of each file; default 2 GiB */
    /* number of the command's processes, counted by reading /proc; default 512. For users other than root it is also
     * the kernel's limit (RLIMIT_NPROC), which without namespaces counts all processes of the user. */
    uint32_t n_processes;
    /* Totals, which are counted several times per second: memory of all processes (default: three quarters of the
     * machine's), and size of the folders that the command may change (default 32 GiB). */
    uint64_t total_memory_bytes, disk_bytes;
    uint64_t output_bytes; /* stored output; default 1 MiB; further output is read and dropped */
} whit_sandbox_limits;

typedef struct whit_sandbox_command {
    const char *const *arguments;   /* NULL-terminated; [0] is the program's path */
    const char *folder;             /* working folder at the start */
    const char *home;               /* HOME and TMPDIR of the command; must be in one of the folders in rules.write */
    const char *const *environment; /* "NAME=VALUE" in addition to PATH, HOME, TMPDIR, LANG and TERM; may be NULL */
    whit_sandbox_rules rules;
    whit_sandbox_limits limits;
    bool is_unconfined;          /* no confinement, because the user has chosen this; the clean environment and the
                                  * limits still apply */
    bool no_namespaces;          /* does not use namespaces even if the machine allows them */
    const volatile bool *cancel; /* ends the command when it becomes true; NULL: never */
} whit_sandbox_command;

/* Result of a command. Zero-initialise it before; whit_sandbox_result_free frees the buffers. */
typedef struct whit_sandbox_result {
    int status; /* exit status; -1: the signal `signal` ended the command */
    int signal;
    bool timed_out, was_cancelled, output_is_cut;
    bool is_spaced; /* the command ran in its own namespaces */
    /* text that names the exceeded total (processes, memory, disk), or that the machine's disk or memory was nearly
     * used up, for which the command was ended; otherwise "" */
    char over[120];
    whit_buf output;  /* stdout and stderr together, in the order of arrival */
    whit_buf refused; /* a line for each refused access, one for repetitions in a row; at most 200 lines */
    uint32_t n_refused;
    uint64_t wall_ns;
} whit_sandbox_result;

/* Sets the arguments with which the system's shell runs a line; `line` must outlive them. */
void whit_sandbox_shell(const char *line, const char *arguments[4]);

/* Runs a command to its end, and then ends the processes that it has left running. The command has no terminal and none
 * of this process's descriptors; its stdin is empty. Errors: unsupported (whit_sandbox_lacks), io (a path of the rules,
 * the program), limit (the rules have too many folders), memory. A command that fails is not an error: see
 * result->status. */
whit_status whit_sandbox_run(const whit_sandbox_command *command, whit_sandbox_result *result, whit_error *error);
void whit_sandbox_result_free(whit_sandbox_result *result);

/* Permanently restricts the calling thread and everything that it starts from now on. Must be called before other
 * threads are started: seccomp also restricts existing threads, Landlock does not. Open descriptors are unaffected, so
 * listening sockets still accept connections. Refused calls fail with EPERM or EACCES. Errors: unsupported (no Landlock
 * or no seccomp; then nothing is restricted), io (a path of the rules), memory. */
whit_status whit_sandbox_enter(const whit_sandbox_rules *rules, whit_error *error);

#endif
