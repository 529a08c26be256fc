/* SPDX-License-Identifier: MIT
 * Reads the settings of an agent: a JSON object in the user's configuration folder, and another in the project.
 *
 * The project's file comes from whoever made the project, so it cannot widen a permission: it names checks, which are
 * commands run in the sandbox, and a time limit of commands, which has no effect if the user's file sets a shorter one.
 * Only the user's file names folders that commands may read and servers that are started. */
#ifndef WHIT_AGENT_CONFIG_H
#define WHIT_AGENT_CONFIG_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_AGENT_CONFIG_FILE ".whit/agent.json" /* path of the settings in the project */

/* Holds the settings; zero-initialise it. The lists end with NULL; `values` owns the texts. */
typedef struct whit_agent_config {
    const char *checks[33]; /* commands that must succeed before changes are written */
    const char *read[33];   /* folders that commands may read */
    uint32_t command_s;     /* time limit of a command in seconds; 0: not set (600 seconds) */
    json_t *servers;        /* MCP servers by name; `values` owns the object; may be NULL */
    json_t *values[2];      /* the parsed files */
} whit_agent_config;

/* Adds the settings of a text; `name` is the text's name for messages. Errors: format, with the place and the allowed
 * values. */
whit_status whit_agent_config_parse(whit_agent_config *config, const char *text, size_t n_bytes, const char *name,
                                    bool is_projects, whit_error *error);
/* Reads $XDG_CONFIG_HOME/whit/agent.json (or ~/.config/whit/agent.json) and the project's file, if they exist. */
whit_status whit_agent_config_load(whit_agent_config *config, const char *project, whit_error *error);
void whit_agent_config_free(whit_agent_config *config);

#endif
