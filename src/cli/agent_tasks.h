/* SPDX-License-Identifier: MIT
 * Declares the state in which tasks run, whether they are typed or sent by an editor: the model and its resources. */
#ifndef WHIT_CLI_AGENT_TASKS_H
#define WHIT_CLI_AGENT_TASKS_H

#include "agent/loop.h"
#include "cli/agent.h"
#include "cli/view.h"

#include <limits.h>

/* A model, and all that is needed to run tasks with it. */
struct cli_tasks {
    cli_call *call;
    const volatile bool *cancel;
    /* receives pieces of the answer; NULL: the answer is printed at the end */
    void (*on_text)(void *user, const char *text, size_t n_bytes);
    void *user;
    const char *project;
    const char *id; /* id of the editor's session, which has its own conversation file; NULL: the project's
                     * conversation */
    whit_buf key;
    whit_endpoint *endpoint;
    whit_remote_model remote;
    whit_model *model;
    whit_session *session;
    whit_local_model *local;
    whit_agent_model answering;
    whit_agent_config config;
    whit_runner runner;
    whit_mcp *mcp;   /* connections to MCP servers, or NULL */
    json_t *servers; /* MCP servers from the editor, to which those of the configuration are added; freed with this
                      * struct */
    whit_agent_messages messages;
    whit_agent_report report;
    whit_buf why;        /* the user's words about the last refusal */
    whit_buf shown;      /* diffs since the last question, which the terminal of the next one may not have shown */
    whit_buf attached;   /* texts that are appended to the next task */
    const char *pasted;  /* the command that runs, if the user may not have typed it; else NULL */
    char *name;          /* model chosen by /model; NULL: the model of the options is used */
    char kept[PATH_MAX]; /* path of the conversation's file */
    int kept_lock;       /* descriptor that locks the file `kept`; -1: not locked */
    uint64_t begun_ns;
    cli_view view; /* the answer that is being shown */
    bool has_streamed, is_viewing;
};

/* ---- functions for tasks -------------------------------------------------------------------- */

/* Opens the model, the MCP servers and the conversation. The members up to `id` must be set; `servers` may be set, all
 * other members must be zero. Returns CLI_OK, or an exit status after a message; the caller must close in both
 * cases. */
int cli_tasks_open(struct cli_tasks *tasks);
void cli_tasks_close(struct cli_tasks *tasks);
/* Runs a task and saves the conversation. only_reads: the model makes a plan, and nothing is written. Returns an exit
 * status. */
int cli_tasks_run(struct cli_tasks *tasks, const char *text, bool only_reads);
/* Runs a task together with the files that it names (@FILE) and what was attached before it. */
int cli_tasks_run_attached(struct cli_tasks *tasks, const char *task, bool only_reads);
/* Reads and runs typed tasks until the input ends. */
int cli_tasks_type(struct cli_tasks *tasks);
/* Writes the path of the usual conversation file of a project (id NULL), or of the editor's session `id` in it. Errors:
 * io. */
whit_status cli_tasks_path(const struct agent_values *values, const char *project, const char *id, char path[PATH_MAX],
                           whit_error *error);
/* Saves the conversation to its file. Errors: io. */
whit_status cli_tasks_keep(const struct cli_tasks *tasks, whit_error *error);
/* Prints the numbers of answers, calls, turns and tokens in the report, which counts the tasks of this process; a
 * resumed conversation's earlier ones are left out. */
void cli_tasks_cost(const struct cli_tasks *tasks);

#endif
