/* SPDX-License-Identifier: MIT
 * Calls tools of MCP servers (Model Context Protocol, stdio), which are programs that the user's configuration names.
 * They run outside the sandbox, so the person is asked about each call unless the configuration lets it pass. */
#ifndef WHIT_AGENT_MCP_H
#define WHIT_AGENT_MCP_H

#include "base/mem.h"

#include <jansson.h>

/* tools are named mcp__SERVER__TOOL; a server's name contains no "__", which separates the parts */
#define WHIT_MCP_PREFIX "mcp__"

typedef struct whit_mcp whit_mcp;

/* Starts the servers of a configuration (config.h) and lists their tools. A server that does not answer is skipped, and
 * `note` gets a line about it. Errors: memory. */
whit_status whit_mcp_open(const json_t *servers, const volatile bool *cancel,
                          void (*note)(void *user, const char *line), void *user, whit_mcp **mcp, whit_error *error);
/* Ends the servers. NULL is allowed. */
void whit_mcp_close(whit_mcp *mcp);
/* Adds the servers' tools to a list for a model; returns false if memory runs out. */
bool whit_mcp_add_tools(const whit_mcp *mcp, json_t *tools);
/* Returns whether one of the servers has a tool with this name; *is_red becomes true if a person must approve its
 * calls. */
bool whit_mcp_has(const whit_mcp *mcp, const char *name, bool *is_red);
/* Calls a tool; `result` gets text for the model in every case. */
void whit_mcp_call(whit_mcp *mcp, const char *name, const json_t *arguments, whit_buf *result);

/* These functions read replies of servers. The first adds the tools of a reply to tools/list to `tools`, which gets at
 * most 200 in all. It names them after the server, and takes only tools that are named and described as the protocol
 * requires, each name once; the second reads the text of a reply to tools/call. */
void whit_mcp_read_tools(const json_t *reply, const char *server, json_t *tools);
void whit_mcp_read_result(const json_t *reply, whit_buf *result);

#endif
