/* SPDX-License-Identifier: MIT
 * Runs the agent of `whit edit` on a separate thread, one job at a time. It connects the editor's panel with the
 * agent's loop. */
#ifndef WHIT_ASSISTANT_PANEL_AGENT_H
#define WHIT_ASSISTANT_PANEL_AGENT_H

#include "assistant/answering_model.h"

typedef struct whit_panel_agent whit_panel_agent;

/* Opens the agent; its thread starts with the first job. Strings of the options must outlive the agent. */
whit_status whit_panel_agent_open(const whit_assistant_options *options, whit_panel_agent **agent, whit_error *error);
void whit_panel_agent_close(whit_panel_agent *agent);
/* Returns the panel for the editor, which is valid as long as the agent is open. */
const whit_panel *whit_panel_agent_panel(const whit_panel_agent *agent);

#endif
