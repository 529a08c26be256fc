/* SPDX-License-Identifier: MIT
 * Settings of an agent: a JSON object in the user's configuration folder, and one in the project.
 *
 * The project's file comes with the project, from whoever made that: it names checks, which are run in
 * the sandbox, and can widen nothing. Folders that commands may read and servers that are started
 * stand in the user's file alone. */
#ifndef WHIT_AGENT_CONFIG_H
#define WHIT_AGENT_CONFIG_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_AGENT_CONFIG_FILE ".whit/agent.json" /* in the project */

/* Zero-initialise. Lists are ends with NULL, texts belong to `values`. */
typedef struct whit_agent_config {
    const char *checks[33]; /* commands that must succeed before a turn is written */
    const char *read[33];   /* folders that commands may read */
    uint32_t command_s;     /* a command's time; 0: the sandbox's default */
    json_t *servers;        /* MCP servers by name; borrowed from `values`; may be NULL */
    json_t *values[2];      /* the parsed files */
} whit_agent_config;

/* Adds the settings of a text (`name` for messages). Errors: format, with the place and what is allowed. */
whit_status whit_agent_config_parse(whit_agent_config *config, const char *text, size_t n_bytes, const char *name,
                                    bool is_projects, whit_error *error);
/* Reads $XDG_CONFIG_HOME/whit/agent.json (or ~/.config) and the project's file, if they exist. */
whit_status whit_agent_config_load(whit_agent_config *config, const char *project, whit_error *error);
void whit_agent_config_free(whit_agent_config *config);

#endif
