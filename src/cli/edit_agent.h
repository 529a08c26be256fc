/* SPDX-License-Identifier: MIT
 * The agent of `whit edit`: a thread that runs one job at a time, between the editor's panel and the agent's loop. */
#ifndef WHIT_CLI_EDIT_AGENT_H
#define WHIT_CLI_EDIT_AGENT_H

#include "agent/model.h"
#include "cli/agent.h"
#include "editor/panel.h"

/* The model that answers; members that the command line leaves unset come from the editor's settings. */
struct cli_edit_wish {
    const char *model, *url, *name, *key_file;
};

/* Merges both, where the command line has precedence over the settings; texts stay their owners'. */
struct cli_edit_wish cli_edit_wish_of(const struct cli_edit_wish *line, const whit_panel_wish *settings);

/* A model, in this process or at an endpoint; zero-initialised: not open. */
struct cli_edit_model {
    cli_found_server found; /* where neither a model nor an endpoint is named */
    whit_buf key;
    whit_endpoint *endpoint;
    whit_remote_model remote;
    whit_model *model;
    whit_session *session;
    whit_local_model *local;
    whit_agent_model answering;
    bool is_open;
};
/* Opens the model; `on_text` receives answers in pieces. Where the wish names no model, a server of this machine is
 * looked for, and on_note receives the lines about it. Errors: argument (there is no model), and those of opening. */
whit_status cli_edit_model_open(struct cli_edit_model *m, const struct cli_edit_wish *wish, const volatile bool *cancel,
                                void (*on_text)(void *user, const char *text, size_t n_bytes),
                                void (*on_note)(void *user, const char *line), void *user, whit_error *error);
void cli_edit_model_close(struct cli_edit_model *m);

struct cli_edit_agent;
/* Starts no thread yet: it begins with the first job. Texts of `wish` must outlive the agent. */
whit_status cli_edit_agent_open(const struct cli_edit_wish *wish, struct cli_edit_agent **agent, whit_error *error);
void cli_edit_agent_close(struct cli_edit_agent *agent);
/* The panel for the editor; valid as long as the agent. */
const whit_panel *cli_edit_agent_panel(const struct cli_edit_agent *agent);

#endif
