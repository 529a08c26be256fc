/* SPDX-License-Identifier: MIT
 * Calls tools of MCP servers (Model Context Protocol, stdio), which are programs that the user's configuration
 * names. They run outside the sandbox, so a person is asked about each call unless the configuration allows it. */
#ifndef WHIT_AGENT_MCP_H
#define WHIT_AGENT_MCP_H

#include "base/mem.h"

#include <jansson.h>

/* tools are named mcp__SERVER__TOOL; "__" separates the parts, so a server's name must not contain it */
#define WHIT_MCP_PREFIX "mcp__"

typedef struct whit_mcp whit_mcp;

/* Starts the servers of a configuration (config.h), at most 32, and lists their tools; `servers` must outlive them.
 * They are started in the person's home unless their `folder` is "project"; they can ask for the project's path (MCP's
 * roots). A server that does not answer is skipped. `note` is called with a line about it, and about servers and tools
 * that the limits leave out. Errors: memory, limit; cancelled if the flag ended the wait for a server. */
whit_status whit_mcp_open(const json_t *servers, const char *project, const volatile bool *cancel,
                          void (*note)(void *user, const char *line), void *user, whit_mcp **mcp, whit_error *error);
/* Ends the servers. NULL is allowed. */
void whit_mcp_close(whit_mcp *mcp);
/* Adds the servers' tools to a list for a model; returns false if memory runs out. */
bool whit_mcp_add_tools(const whit_mcp *mcp, json_t *tools);
/* Returns whether a server offers a tool with this name. *is_red becomes true if each call needs a person's
 * approval. */
bool whit_mcp_has(const whit_mcp *mcp, const char *name, bool *is_red);
/* Returns whether the editor names the server that offers a tool ("editor" in its settings), not the configuration. */
bool whit_mcp_is_editors(const whit_mcp *mcp, const char *name);
/* Calls a tool. `result` gets the tool's text or an error message, for the model. */
void whit_mcp_call(whit_mcp *mcp, const char *name, const json_t *arguments, whit_buf *result);

/* The first function adds the tools of a reply to tools/list to `tools`, up to 200 in all, and prefixes their names
 * with the server's. It skips tools that are not named and described as the protocol requires, and repeated names.
 * Returns the number of tools that the limit left out. The second appends the text of a reply to tools/call. */
size_t whit_mcp_read_tools(const json_t *reply, const char *server, json_t *tools);
void whit_mcp_read_result(const json_t *reply, whit_buf *result);

#endif
