/* SPDX-License-Identifier: MIT
 * Handles the tools of a chat: from a file, whose results a person types or a command gives, and from MCP servers. */
#ifndef WHIT_CLI_CHAT_TOOLS_H
#define WHIT_CLI_CHAT_TOOLS_H

#include "agent/config.h"
#include "agent/mcp.h"
#include "cli/cli.h"
#include "whit/conversation.h"

/* Holds the tools of a chat; if zero-initialised, the chat has no tools. */
typedef struct cli_chat_tools {
    json_t *list;     /* as in OpenAI's chat API */
    json_t *commands; /* lists of words by the name of a tool: the command to run */
    whit_agent_config config;
    whit_mcp *mcp;
} cli_chat_tools;

/* Reads tools from a file (NULL: no file), a JSON list in which a tool may have "command": [program, argument, ...],
 * and from the MCP servers of the agent's configuration if `use_servers`. The result is CLI_OK or a status already
 * reported; close in every case. */
int cli_chat_tools_open(cli_call *call, const char *path, bool use_servers, cli_chat_tools *tools);
void cli_chat_tools_close(cli_chat_tools *tools);
/* Lets a conversation call the tools. */
int cli_chat_tools_offer(cli_call *call, const cli_chat_tools *tools, whit_conversation *conversation);

typedef enum cli_tool_kind {
    CLI_TOOL_TYPED, /* a person types its result */
    CLI_TOOL_ASKED, /* the tool can run if a person agrees */
    CLI_TOOL_FREE,  /* the configuration lets the tool run without a question */
} cli_tool_kind;
cli_tool_kind cli_chat_tool_kind(const cli_chat_tools *tools, const char *name);
/* Appends a call and the command that would run it, as a person must see them before agreeing: each on one line, every
 * control and hidden character marked. The result is false if memory runs out. */
bool cli_chat_tool_describe(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *text);
/* Runs a tool, whose arguments are a JSON object. `result` gets its output, or "error: " and the reason. */
void cli_chat_tool_run(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *result);

#endif
