/* SPDX-License-Identifier: MIT
 * Declares the child's side of a command's fork. The child makes only system calls, because another thread may have
 * held any lock at the time of the fork. */
#ifndef WHIT_SANDBOX_CHILD_H
#define WHIT_SANDBOX_CHILD_H

#include "sandbox/walls.h"

/* Describes a message that a child sends through its pipe. */
typedef struct whit_child_word {
    enum { CHILD_STARTED, CHILD_FAILED, CHILD_NO_SPACES, CHILD_ENDED } kind;
    int value; /* by kind: process number of the command; errno; errno; status from waitpid */
    int step;  /* CHILD_FAILED: index into whit_child_steps */
} whit_child_word;
extern const char *const whit_child_steps[];

/* Holds the data that a child needs: prepared before the fork, and only read afterwards. */
typedef struct whit_child_plan {
    const whit_sandbox_command *command;
    const whit_sandbox_limits *limits; /* limits with defaults in place of zeros */
    char *const *environment;
    struct sock_fprog program;
    int ruleset; /* descriptor of the Landlock rule set; -1: unconfined */
    /* pipes for messages and for output, /dev/null, and a socket for the listener */
    int words, output, empty, listeners;
    bool has_namespaces;
    uid_t user;
    gid_t group;
} whit_child_plan;

/* Starts the keeper of a command: a process that makes the namespaces, starts the command, reaps orphans and reports
 * the end. Returns -1 with errno on failure. */
pid_t whit_child_start(const whit_child_plan *plan);

#endif
