/* SPDX-License-Identifier: MIT
 * Declares a model and the resources of its tasks, which are typed or sent by an editor. */
#ifndef WHIT_CLI_AGENT_TASKS_H
#define WHIT_CLI_AGENT_TASKS_H

#include "agent/loop.h"
#include "cli/agent.h"
#include "cli/view.h"

#include <limits.h>

/* Holds a model that answers, and all resources of a task. */
struct cli_tasks {
    cli_call *call;
    const volatile bool *cancel;
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* receives the answer in pieces; may be NULL */
    void *user;
    const char *project;
    const char *id; /* an editor's session, which has its own file; NULL: the project's conversation */
    whit_buf key;
    whit_endpoint *endpoint;
    whit_remote_model remote;
    whit_model *model;
    whit_session *session;
    whit_local_model *local;
    whit_agent_model answering;
    whit_agent_config config;
    whit_runner runner;
    whit_mcp *mcp;   /* NULL: no servers */
    json_t *servers; /* servers named by the editor, later those of the configuration; freed with the tasks */
    whit_agent_messages messages;
    whit_agent_report report;
    whit_buf why;        /* the person's words about the last refusal */
    whit_buf shown;      /* diffs since the last question, for a terminal that has not shown them */
    whit_buf attached;   /* texts that go with the next task */
    char *name;          /* name of the model chosen by /model; NULL: the model from the options */
    char kept[PATH_MAX]; /* file of the conversation */
    int kept_lock;       /* lock that reserves `kept`; -1: not reserved yet */
    uint64_t begun_ns;
    cli_view view; /* the answer that is being shown */
    bool has_streamed, is_viewing;
};

/* ---- a task --------------------------------------------------------------------------------- */

/* Opens the model, with the first six members set. The result is CLI_OK, or an exit status after a message; close in
 * every case. */
int cli_tasks_open(struct cli_tasks *tasks);
void cli_tasks_close(struct cli_tasks *tasks);
/* Runs a task and saves the conversation. only_reads: only a plan is made, and nothing is written. */
int cli_tasks_run(struct cli_tasks *tasks, const char *text, bool only_reads);
/* Runs a task together with the files that it names (@FILE) and what was attached before it. */
int cli_tasks_run_attached(struct cli_tasks *tasks, const char *task, bool only_reads);
/* Reads and runs typed tasks until the input ends. */
int cli_tasks_type(struct cli_tasks *tasks);
/* Writes the path of the file that keeps an editor's session. Errors: io. */
whit_status cli_tasks_path(const struct agent_values *values, const char *project, const char *id, char path[PATH_MAX],
                           whit_error *error);
/* Saves the conversation to its file. Errors: io. */
whit_status cli_tasks_keep(const struct cli_tasks *tasks, whit_error *error);
/* Prints the number of answers, calls and tokens so far. */
void cli_tasks_cost(const struct cli_tasks *tasks);

#endif
