/* SPDX-License-Identifier: MIT
 * Declares the tools of a chat. They come from a file, in which case the user types their results or a command gives
 * them, or from MCP servers. */
#ifndef WHIT_CLI_CHAT_TOOLS_H
#define WHIT_CLI_CHAT_TOOLS_H

#include "agent/config.h"
#include "agent/mcp.h"
#include "cli/cli.h"
#include "whit/conversation.h"

/* The tools of a chat; if zero-initialised, without tools. */
typedef struct cli_chat_tools {
    json_t *list;     /* descriptions of the tools, in the form of OpenAI's chat API */
    json_t *commands; /* for each tool with a command, by its name: the list of the command's words */
    whit_agent_config config;
    whit_mcp *mcp;
} cli_chat_tools;

/* Reads tools from a file (NULL: no file) and, if use_servers, from the MCP servers of the agent's configuration, of
 * which there must be one. The file is a JSON list, in which a tool may have the member "command": [program, argument,
 * ...]. Returns CLI_OK, or a status that was already reported; the caller must close in both cases. */
int cli_chat_tools_open(cli_call *call, const char *path, bool use_servers, cli_chat_tools *tools);
void cli_chat_tools_close(cli_chat_tools *tools);
/* Lets the model of a conversation call the tools. */
int cli_chat_tools_offer(cli_call *call, const cli_chat_tools *tools, whit_conversation *conversation);

typedef enum cli_tool_kind {
    CLI_TOOL_TYPED, /* the user types the tool's result */
    CLI_TOOL_ASKED, /* the tool runs if the user agrees */
    CLI_TOOL_FREE,  /* the configuration allows the tool to run without a question */
} cli_tool_kind;
cli_tool_kind cli_chat_tool_kind(const cli_chat_tools *tools, const char *name);
/* Returns the arguments of a call, an object that the caller releases, or NULL if they are not a JSON object or one of
 * their names stands twice, since a reader could take either value. */
json_t *cli_chat_tool_arguments(const whit_conversation_call *call);
/* Appends a description of a call and of the command that would run it, for the user's approval. The call and the
 * command are on one line each, and control and hidden characters are marked. Returns false if memory runs out. */
bool cli_chat_tool_describe(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *text);
/* Runs a tool; the call's arguments must be a JSON object. `result` gets the tool's output; if the tool fails, it also
 * or only gets "error: " and the reason. A command's output over 1 MiB is cut, with a note at its end. */
void cli_chat_tool_run(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *result);

#endif
