/* SPDX-License-Identifier: MIT
 * Runs an agent's commands in the sandbox, in a scratch copy of the project, and records each in a list. */
#ifndef WHIT_AGENT_RUNS_H
#define WHIT_AGENT_RUNS_H

#include "agent/changes.h"
#include "agent/config.h"
#include "agent/scratch.h"
#include "sandbox/sandbox.h"

/* Environment variables of the process of a task (whit agent -j), which works in a copy and has own folders for its
 * state and its copies: the project, and the folders of the process that has started it. */
#define WHIT_TASK_PROJECT "WHIT_TASK_PROJECT"
#define WHIT_TASK_STATE   "WHIT_TASK_STATE"
#define WHIT_TASK_CACHE   "WHIT_TASK_CACHE"
/* Environment variable with the Unix socket of the model's server that -j has started; requests of a task go there. */
#define WHIT_TASK_SOCKET "WHIT_TASK_SOCKET"
#define WHIT_TASK_URL    "http://localhost/v1" /* address of that server */

/* State for running commands. Zero-initialise it and set `project`; the members from state_dir to `cancel` are options,
 * and the agent's loop sets `note` and `user`. */
typedef struct whit_runner {
    const char *project;   /* the project's folder, with links resolved */
    const char *state_dir; /* folder of the list of runs; NULL: the default state folder */
    const char *cache_dir; /* folder of the scratch copies; NULL: the default cache folder */
    const whit_agent_config *config;
    /* runs commands without the sandbox; a person has chosen this and is asked about each command */
    bool no_sandbox;
    /* ends the running command when it becomes true; NULL: commands are never cancelled */
    const volatile bool *cancel;
    void (*note)(void *user, const char *line); /* called with each note about a command, for the person; may be NULL */
    void *user;
    bool was_probed, was_said, was_part_said;
    /* number of the last pass of checks (whit_scratch_begin_pass); "": the last gate pass ran no command, or
     * whit_gate_written() was called since */
    char pass[WHIT_PASS_BYTES];
    whit_sandbox_support support;
} whit_runner;

/* Returns the reason why commands cannot run in the sandbox on this machine, or NULL if they can. */
const char *whit_runner_lacks(whit_runner *runner);
/* Tells the person, once, why commands are not run, and which option allows them. */
void whit_runner_tell_lack(whit_runner *runner, const char *lacks);

/* Runs a shell command in the scratch copy `copy` of the project, with the staged changes (may be NULL) and the unsaved
 * texts of staged->open applied, and records it in the list of runs (agent-HASH.runs.jsonl in the state folder).
 * `seconds` can only shorten the configured time limit; 0 keeps that limit. Before the first command the person is told
 * which limits this machine cannot enforce. Errors: unsupported (no sandbox and no --no-sandbox), io, limit, memory,
 * cancelled. */
whit_status whit_runner_run(whit_runner *runner, const char *copy, const whit_changes *staged, const char *line,
                            uint32_t seconds, whit_sandbox_result *result, whit_error *error);
/* Run a command in two steps, so that several commands can run in one copy, which stays locked until
 * whit_scratch_close(). */
whit_status whit_runner_open(whit_runner *runner, const char *copy, whit_scratch *scratch, whit_error *error);
whit_status whit_runner_run_in(whit_runner *runner, const char *copy, whit_scratch *scratch, const whit_changes *staged,
                               const char *line, uint32_t seconds, whit_sandbox_result *result, whit_error *error);
/* Formats a result as text for a model: status, output (the middle is dropped beyond n_bytes), and calls that the
 * sandbox refused. */
void whit_runner_tell(const whit_sandbox_result *result, size_t n_bytes, whit_buf *out);

#endif
