/* SPDX-License-Identifier: MIT
 * Reads the settings of an agent: a JSON object in the user's configuration folder, and another in the project.
 *
 * The project's file may come from a stranger, so it cannot extend what the user allows. It can add checks, which are
 * commands that run in the sandbox, and set the time limit of commands; a longer limit than the user's file sets has
 * no effect. Only the user's file can set folders that commands may read and MCP servers that are started. */
#ifndef WHIT_AGENT_CONFIG_H
#define WHIT_AGENT_CONFIG_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_AGENT_CONFIG_FILE ".whit/agent.json" /* path of the settings in the project */

/* The agent's settings; zero-initialise it. The lists end with NULL; `values` owns the strings. */
typedef struct whit_agent_config {
    const char *checks[33]; /* shell commands that must succeed before changes are written */
    const char *read[33];   /* folders that commands may read */
    uint32_t command_s;     /* time limit of a command in seconds; 0: not set (600 seconds are used) */
    json_t *servers;        /* MCP servers by name; `values` owns the object; may be NULL */
    json_t *values[2];      /* the parsed files */
} whit_agent_config;

/* Adds the settings in a JSON text. `name` names the text in error messages. With is_projects the text is the
 * project's, which may contain only `check` and `command_seconds` and cannot extend the user's time limit. Errors:
 * format, with the place and the allowed values. */
whit_status whit_agent_config_parse(whit_agent_config *config, const char *text, size_t n_bytes, const char *name,
                                    bool is_projects, whit_error *error);
/* Appends the project's settings file to `text`. *exists becomes false without such a file. Errors: argument (a link
 * that leaves the project, or a file with keys), limit, io, memory. */
whit_status whit_agent_config_read(const char *project, whit_buf *text, bool *exists, whit_error *error);
/* Reads $XDG_CONFIG_HOME/whit/agent.json (or ~/.config/whit/agent.json) and the project's file, if they exist. */
whit_status whit_agent_config_load(whit_agent_config *config, const char *project, whit_error *error);
/* Tells the guard the programs of the user's MCP servers (programs.h), as whit_agent_config_load() does, without
 * reading the project's file. Errors: as of whit_agent_config_load(). */
whit_status whit_agent_config_know_programs(const char *project, whit_error *error);
void whit_agent_config_free(whit_agent_config *config);

#endif
