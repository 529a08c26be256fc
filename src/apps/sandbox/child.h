/* SPDX-License-Identifier: MIT
 * Declares how a command's process is started. After the fork the child makes only system calls, because another thread
 * may have held any lock at the time of the fork. */
#ifndef WHIT_SANDBOX_CHILD_H
#define WHIT_SANDBOX_CHILD_H

#include "sandbox/walls.h"

/* A message that the child process sends through its pipe. */
typedef struct whit_child_word {
    enum { CHILD_STARTED, CHILD_FAILED, CHILD_NO_SPACES, CHILD_ENDED } kind;
    int value; /* in the order of `kind`: process number of the command; errno; errno; status from waitpid */
    int step;  /* CHILD_FAILED: index into whit_child_steps */
} whit_child_word;
extern const char *const whit_child_steps[];

/* The data that the child process needs. It is prepared before the fork, and only read afterwards. */
typedef struct whit_child_plan {
    const whit_sandbox_command *command;
    const whit_sandbox_limits *limits; /* limits in which defaults have replaced zeros */
    char *const *environment;
    struct sock_fprog program;
    int ruleset; /* descriptor of the Landlock rule set; -1: unconfined */
    /* write ends of the pipes for messages and output, /dev/null, and a socket for sending the filter's listener */
    int words, output, empty, listeners;
    bool has_namespaces;
    uid_t user;
    gid_t group;
} whit_child_plan;

/* Starts the keeper of a command: a process that creates the namespaces, if the plan has them, starts the command,
 * reaps its orphans and reports its end. Returns the keeper's process number; -1 with errno on failure. */
pid_t whit_child_start(const whit_child_plan *plan);

#endif
