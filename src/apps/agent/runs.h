/* SPDX-License-Identifier: MIT
 * Runs commands of an agent in a scratch copy of the project, in the sandbox, and notes each in a list. */
#ifndef WHIT_AGENT_RUNS_H
#define WHIT_AGENT_RUNS_H

#include "agent/changes.h"
#include "agent/config.h"
#include "agent/scratch.h"
#include "sandbox/sandbox.h"

/* Holds the state of running commands; zero-initialise it except for the first four members; the agent's loop sets
 * `note`. */
typedef struct whit_runner {
    const char *project;   /* the project's folder, with links resolved */
    const char *state_dir; /* folder of the list; NULL: the usual place */
    const char *cache_dir; /* folder of the copies; NULL: the usual place */
    const whit_agent_config *config;
    /* a person has chosen to run commands without the sandbox, each after a question */
    bool no_sandbox;
    const volatile bool *cancel;                /* ends a command when it is set; NULL: commands are never cancelled */
    void (*note)(void *user, const char *line); /* receives notes about a command for the person; may be NULL */
    void *user;
    bool was_probed, was_said;
    char pass[WHIT_PASS_BYTES]; /* number of the last pass of checks; "": no checks have run */
    whit_sandbox_support support;
} whit_runner;

/* Returns the reason why commands cannot run in the sandbox here, or NULL if they can. */
const char *whit_runner_lacks(whit_runner *runner);
/* Tells the person once why commands are not run, and which option allows them. */
void whit_runner_tell_lack(whit_runner *runner, const char *lacks);

/* Runs a line of shell in the copy `copy` of the project with the staged changes on top, and adds it to the list
 * (agent-HASH.runs.jsonl in the journal's folder). `seconds` can only shorten the configuration's time limit; 0 keeps
 * that limit. Before the first command the person is told which limits this machine cannot enforce. Errors: unsupported
 * (no sandbox and no --no-sandbox), io, limit, memory, cancelled. */
whit_status whit_runner_run(whit_runner *runner, const char *copy, const whit_changes *staged, const char *line,
                            uint32_t seconds, whit_sandbox_result *result, whit_error *error);
/* These functions do the same in two steps, for several commands in one copy, which stays locked until
 * whit_scratch_close. */
whit_status whit_runner_open(whit_runner *runner, const char *copy, whit_scratch *scratch, whit_error *error);
whit_status whit_runner_run_in(whit_runner *runner, const char *copy, whit_scratch *scratch, const whit_changes *staged,
                               const char *line, uint32_t seconds, whit_sandbox_result *result, whit_error *error);
/* Formats a result as text for a model: status, output (shortened in the middle if long), refused calls. */
void whit_runner_tell(const whit_sandbox_result *result, size_t n_bytes, whit_buf *out);

#endif
