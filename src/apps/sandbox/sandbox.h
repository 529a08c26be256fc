/* SPDX-License-Identifier: MIT
 * Restricts a program by means of the kernel: Landlock for files and TCP, seccomp for system calls, namespaces where
 * the machine allows them, and limits of resources.
 *
 * It has two uses. whit_sandbox_run runs a command in a folder that it may change, captures its output, and ends all of
 * its processes with it. whit_sandbox_enter restricts this process after it has opened what it needs. Both report what
 * they cannot enforce; neither continues with less protection. */
#ifndef WHIT_SANDBOX_SANDBOX_H
#define WHIT_SANDBOX_SANDBOX_H

#include "base/mem.h"

typedef struct whit_sandbox_support {
    uint32_t landlock_abi; /* 0: the kernel has no Landlock, or it is disabled */
    bool seccomp;          /* libseccomp is installed, and the kernel accepts its filters */
    bool holds;            /* a test command was confined completely */
    bool namespaces;       /* user, mount, process and network namespaces, which are a second layer of protection */
} whit_sandbox_support;

/* Probes the kernel's support, partly by trying in a separate process (some milliseconds). */
void whit_sandbox_probe(whit_sandbox_support *support);
/* Returns why commands cannot be confined on this machine; NULL if they can. */
const char *whit_sandbox_lacks(const whit_sandbox_support *support);
/* Returns a note about the protections and limits that this machine lacks although commands can be confined, to be
 * shown before the first command; NULL if none is missing. */
const char *whit_sandbox_misses(const whit_sandbox_support *support);

/* Holds the permissions of a program. Paths are absolute or relative to the current folder; lists end with NULL, and
 * NULL is an empty list. */
typedef struct whit_sandbox_rules {
    /* paths that may be read and executed, in addition to the system's programs and libraries */
    const char *const *read;
    const char *const *write; /* paths that may be read, executed, changed, created and removed */
    bool may_connect;         /* may create new sockets; otherwise only connections that are already open work */
    bool may_start;           /* whit_sandbox_enter: may start other programs */
} whit_sandbox_rules;

/* Limits of a command; 0 selects the default, which each comment states. */
typedef struct whit_sandbox_limits {
    uint32_t wall_s;       /* time of the whole command: 600 seconds */
    uint32_t cpu_s;        /* processor time of each process: the same as wall_s */
    uint64_t memory_bytes; /* address space of each process: 16 GiB */
    uint64_t file_bytes;   /* size of each file: 2 GiB */
    /* Number of processes, default 512. Processes of root, which the kernel does not count, are counted by reading
     * /proc. */
    uint32_t n_processes;
    /* Limits of sums, which are counted several times per second: memory of all processes (default: three quarters of
     * the machine's), and disk space of all folders that the command may change (default: 32 GiB). */
    uint64_t total_memory_bytes, disk_bytes;
    uint64_t output_bytes; /* limit of the output that is stored: 1 MiB; further output is read and dropped */
} whit_sandbox_limits;

typedef struct whit_sandbox_command {
    const char *const *arguments;   /* NULL-terminated; [0] is the program's path */
    const char *folder;             /* working folder at the start */
    const char *home;               /* HOME and TMPDIR of the command, a folder below one of rules.write */
    const char *const *environment; /* "NAME=VALUE" in addition to PATH, HOME, TMPDIR, LANG and TERM; may be NULL */
    whit_sandbox_rules rules;
    whit_sandbox_limits limits;
    bool is_unconfined;          /* no confinement, by the user's decision; the clean environment and the limits stay */
    bool no_namespaces;          /* runs as on a machine without namespaces */
    const volatile bool *cancel; /* ends the command when it becomes true; NULL: never */
} whit_sandbox_command;

/* Holds the result of a command; zero-initialise it; whit_sandbox_result_free releases the buffers. */
typedef struct whit_sandbox_result {
    int status; /* exit status; -1: ended by `signal` */
    int signal;
    bool timed_out, was_cancelled, output_is_cut;
    bool is_spaced;   /* the command ran in its own namespaces */
    char over[120];   /* the excess (processes, memory, disk) that ended the command, as text; else "" */
    whit_buf output;  /* stdout and stderr in the order of arrival */
    whit_buf refused; /* a line for each refused access, up to 200 lines */
    uint32_t n_refused;
    uint64_t wall_ns;
} whit_sandbox_result;

/* Sets the arguments that make the system's shell run a line. */
void whit_sandbox_shell(const char *line, const char *arguments[4]);

/* Runs a command to its end, and ends the processes that it leaves running. The command has no terminal and only its
 * own descriptors; stdin is empty. Errors: unsupported (whit_sandbox_lacks), io (a path of the rules, the program),
 * memory. A command that fails is not an error: its exit status says so. */
whit_status whit_sandbox_run(const whit_sandbox_command *command, whit_sandbox_result *result, whit_error *error);
void whit_sandbox_result_free(whit_sandbox_result *result);

/* Restricts the calling thread, and everything that it starts from now on, permanently. Call it before other threads
 * are started (seccomp also restricts these, Landlock does not). Open descriptors are unaffected, so listening sockets
 * still accept. Refused calls fail with EPERM or EACCES. Errors: unsupported (no Landlock or no seccomp; nothing is
 * restricted then), io (a path of the rules), memory. */
whit_status whit_sandbox_enter(const whit_sandbox_rules *rules, whit_error *error);

#endif
