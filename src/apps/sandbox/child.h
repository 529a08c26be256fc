/* SPDX-License-Identifier: MIT
 * The far side of a command's fork: system calls only, since other threads may have held any lock. */
#ifndef WHIT_SANDBOX_CHILD_H
#define WHIT_SANDBOX_CHILD_H

#include "sandbox/walls.h"

/* A message that a child sends over its pipe. */
typedef struct whit_child_word {
    enum { CHILD_STARTED, CHILD_FAILED, CHILD_NO_SPACES, CHILD_ENDED } kind;
    int value; /* by kind: process number of the command; errno; errno; status from waitpid */
    int step;  /* CHILD_FAILED: index into whit_child_steps */
} whit_child_word;
extern const char *const whit_child_steps[];

/* Data that a child needs: prepared before the fork, only read afterwards. */
typedef struct whit_child_plan {
    const whit_sandbox_command *command;
    const whit_sandbox_limits *limits; /* without zeros */
    char *const *environment;
    struct sock_fprog program;
    int ruleset;                         /* -1: unconfined */
    int words, output, empty, listeners; /* pipes for messages and output, /dev/null, a socket for the listener */
    bool has_namespaces;
    uid_t user;
    gid_t group;
} whit_child_plan;

/* Starts the keeper of a command: it makes the namespaces, starts the command, reaps orphans and reports the end. -1
 * with errno. */
pid_t whit_child_start(const whit_child_plan *plan);

#endif
