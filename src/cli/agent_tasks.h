/* SPDX-License-Identifier: MIT
 * A model and what its tasks need, however they are given: typed or by an editor. */
#ifndef WHIT_CLI_AGENT_TASKS_H
#define WHIT_CLI_AGENT_TASKS_H

#include "agent/loop.h"
#include "cli/agent.h"

/* Who answers, and everything that a task needs. */
struct cli_tasks {
    cli_call *call;
    const volatile bool *cancel;
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* as it comes; NULL: not wanted */
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
    json_t *servers; /* freed with the tasks: those that an editor names, later with those of the configuration */
    whit_agent_messages messages;
    whit_agent_report report;
    whit_buf refused; /* what the person refused, in any of the tasks */
    whit_buf shown;   /* differences since the last question, for a terminal that has not seen them */
    uint64_t begun_ns;
    bool has_streamed;
};

/* ---- a task --------------------------------------------------------------------------------- */

/* With the first five set. CLI_OK, else an exit status after a line; close in every case. */
int cli_tasks_open(struct cli_tasks *tasks);
void cli_tasks_close(struct cli_tasks *tasks);

#endif
