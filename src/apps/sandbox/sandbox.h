/* SPDX-License-Identifier: MIT
 * What a program may reach, enforced by the kernel: Landlock for files and TCP, seccomp for system
 * calls, name spaces where the machine allows them, limits for what it may use.
 *
 * Two uses: a command is run in a folder that it may change, with its output caught and all of its
 * processes ended with it (whit_sandbox_run); or this process, having opened what it needs, gives up
 * the rest (whit_sandbox_enter). Both say what they cannot enforce; neither continues with less. */
#ifndef WHIT_SANDBOX_SANDBOX_H
#define WHIT_SANDBOX_SANDBOX_H

#include "base/mem.h"

typedef struct whit_sandbox_support {
    uint32_t landlock_abi; /* 0: the kernel has no Landlock, or it is disabled */
    bool seccomp;          /* libseccomp is installed, and the kernel accepts its filters */
    bool holds;            /* a test command was confined completely */
    bool namespaces;       /* user, mount, process and network namespaces: a second wall, not the first */
} whit_sandbox_support;

/* Probes the kernel's support, partly by trying in a separate process (some milliseconds). */
void whit_sandbox_probe(whit_sandbox_support *support);
/* Why commands cannot be held on this machine; NULL: they can. */
const char *whit_sandbox_lacks(const whit_sandbox_support *support);
/* Returns a note about the protections and limits that this machine lacks although commands can be confined, to be
 * shown before the first command; NULL if none is missing. */
const char *whit_sandbox_misses(const whit_sandbox_support *support);

/* Paths are absolute or of the current folder; lists end with NULL, and NULL is an empty one. */
typedef struct whit_sandbox_rules {
    const char *const *read;  /* may be read and run, beside the system's own programs and libraries */
    const char *const *write; /* may be read, run, changed, made and removed */
    bool may_connect;         /* may create new sockets; otherwise only connections that are already open work */
    bool may_start;           /* whit_sandbox_enter: may start other programs */
} whit_sandbox_rules;

/* 0 means the default that is named. */
typedef struct whit_sandbox_limits {
    uint32_t wall_s;       /* time of the whole command: 600 */
    uint32_t cpu_s;        /* processor time of each process: as wall_s */
    uint64_t memory_bytes; /* address space of each process: 16 GiB */
    uint64_t file_bytes;   /* size of each file: 2 GiB */
    /* Default 512; processes of root, which the kernel does not count, are counted by reading /proc. */
    uint32_t n_processes;
    /* Sums, counted by looking some times a second: memory of all processes (three quarters of the machine's), and what
     * all folders that it may change hold on disk (32 GiB). */
    uint64_t total_memory_bytes, disk_bytes;
    uint64_t output_bytes; /* limit of the output that is stored: 1 MiB; further output is read and dropped */
} whit_sandbox_limits;

typedef struct whit_sandbox_command {
    const char *const *arguments;   /* NULL-terminated; [0] is the program's path */
    const char *folder;             /* initial working folder */
    const char *home;               /* HOME and TMPDIR, a folder below one of rules.write */
    const char *const *environment; /* "NAME=VALUE" beside PATH, HOME, TMPDIR, LANG and TERM; may be NULL */
    whit_sandbox_rules rules;
    whit_sandbox_limits limits;
    bool is_unconfined;          /* a person said so: no wall at all, clean environment and limits stay */
    bool no_namespaces;          /* runs as on a machine without namespaces */
    const volatile bool *cancel; /* NULL: never */
} whit_sandbox_command;

/* Zero-initialise; whit_sandbox_result_free releases the buffers. */
typedef struct whit_sandbox_result {
    int status; /* exit status; -1: ended by `signal` */
    int signal;
    bool timed_out, was_cancelled, output_is_cut;
    bool is_spaced;   /* the command ran in its own namespaces */
    char over[120];   /* the resource (memory, disk) whose limit ended the command; else "" */
    whit_buf output;  /* stdout and stderr in the order of arrival */
    whit_buf refused; /* a line for each thing it tried and may not, the first 200 of them */
    uint32_t n_refused;
    uint64_t wall_ns;
} whit_sandbox_result;

/* The arguments that let the system's shell run a line. */
void whit_sandbox_shell(const char *line, const char *arguments[4]);

/* Runs a command to its end and ends what it has left running. Without a terminal, without descriptors
 * but its own, stdin is empty. Errors: unsupported (whit_sandbox_lacks), io (a path of the rules, the
 * program), memory. A command that fails is not an error: its exit status says so. */
whit_status whit_sandbox_run(const whit_sandbox_command *command, whit_sandbox_result *result, whit_error *error);
void whit_sandbox_result_free(whit_sandbox_result *result);

/* Restricts the calling thread and all that it starts from now on, for good; call it before other threads
 * are started (seccomp takes those along, Landlock does not). Open descriptors stay as they are, so
 * listening sockets still accept. Refused calls fail with EPERM or EACCES. Errors: unsupported (no
 * Landlock or no seccomp; nothing is restricted then), io (a path of the rules), memory. */
whit_status whit_sandbox_enter(const whit_sandbox_rules *rules, whit_error *error);

#endif
