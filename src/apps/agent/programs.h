/* SPDX-License-Identifier: MIT
 * Finds the programs of MCP servers that are a part of the project. They run outside the sandbox, so a change of such a
 * program is agreed to by a person, whatever permissions are set. */
#ifndef WHIT_AGENT_PROGRAMS_H
#define WHIT_AGENT_PROGRAMS_H

#include "base/status.h"

#include <jansson.h>

/* Tells the guard (whit_guard_is_program) the folders of the project that have the programs of these servers
 * (config.h): the folders of programs and scripts that a command names, since a script finds modules beside itself;
 * folders of the command that are packages; paths in lines of code (sh -c), in the values of options such as
 * --directory, and in variables such as PYTHONPATH; and the project, if a server is started in it. Errors: limit. */
whit_status whit_programs_know(const json_t *servers, const char *project, whit_error *error);

#endif
