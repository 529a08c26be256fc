/* SPDX-License-Identifier: MIT
 * A model and the resources of its tasks, which are typed or given by an editor. */
#ifndef WHIT_CLI_AGENT_TASKS_H
#define WHIT_CLI_AGENT_TASKS_H

#include "agent/loop.h"
#include "cli/agent.h"

/* The model that answers, and all resources of a task. */
struct cli_tasks {
    cli_call *call;
    const volatile bool *cancel;
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* receives the answer in pieces; may be NULL */
    void *user;
    const char *project;
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
    whit_buf refused; /* changes and calls that the person refused, in any of the tasks */
    whit_buf shown;   /* differences since the last question, for a terminal that has not seen them */
    uint64_t begun_ns;
    bool has_streamed;
};

/* ---- a task --------------------------------------------------------------------------------- */

/* Opens the model, with the first five members set. CLI_OK, or an exit status after a message; close in every case. */
int cli_tasks_open(struct cli_tasks *tasks);
void cli_tasks_close(struct cli_tasks *tasks);

#endif
