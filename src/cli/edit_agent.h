/* SPDX-License-Identifier: MIT
 * The agent of `whit edit`: a thread that does one piece of work at a time, between the editor's panel and
 * the agent's loop. */
#ifndef WHIT_CLI_EDIT_AGENT_H
#define WHIT_CLI_EDIT_AGENT_H

#include "agent/model.h"
#include "editor/panel.h"

/* Who answers; what the command line leaves out the editor's settings say. */
struct cli_edit_wish {
    const char *model, *url, *name, *key_file;
};

/* The command line's word before the settings'; texts stay whose they are. */
struct cli_edit_wish cli_edit_wish_of(const struct cli_edit_wish *line, const whit_panel_wish *settings);

/* An open model, in this process or at an endpoint; zero-initialised is none. */
struct cli_edit_model {
    whit_buf key;
    whit_endpoint *endpoint;
    whit_remote_model remote;
    whit_model *model;
    whit_session *session;
    whit_local_model *local;
    whit_agent_model answering;
    bool is_open;
};
/* `on_text` gets answers as they come. Errors: argument (no model is named), and those of what is opened. */
whit_status cli_edit_model_open(struct cli_edit_model *m, const struct cli_edit_wish *wish, const volatile bool *cancel,
                                void (*on_text)(void *user, const char *text, size_t n_bytes), void *user,
                                whit_error *error);
void cli_edit_model_close(struct cli_edit_model *m);

struct cli_edit_agent;
/* Starts nothing: the thread begins with the first piece of work. Texts of `wish` outlive it. */
whit_status cli_edit_agent_open(const struct cli_edit_wish *wish, struct cli_edit_agent **agent, whit_error *error);
void cli_edit_agent_close(struct cli_edit_agent *agent);
/* For the editor; lives as long as the agent. */
const whit_panel *cli_edit_agent_panel(const struct cli_edit_agent *agent);

#endif
