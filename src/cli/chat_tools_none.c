/* SPDX-License-Identifier: MIT
 * Tools of a chat where programs cannot be started: refused. */
#include "cli/chat_tools.h"

#include <string.h>

int cli_chat_tools_open(cli_call *call, const char *path, bool use_servers, cli_chat_tools *tools)
{
    memset(tools, 0, sizeof *tools);
    (void)use_servers;
    return path ? cli_fail(call, CLI_USAGE, "%s: tools are not in the program for this system", path) : CLI_OK;
}

void cli_chat_tools_close(cli_chat_tools *tools)
{
    (void)tools;
}

int cli_chat_tools_offer(cli_call *call, const cli_chat_tools *tools, whit_conversation *conversation)
{
    (void)call, (void)tools, (void)conversation;
    return CLI_OK;
}

cli_tool_kind cli_chat_tool_kind(const cli_chat_tools *tools, const char *name)
{
    (void)tools, (void)name;
    return CLI_TOOL_TYPED;
}

bool cli_chat_tool_describe(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *text)
{
    (void)tools, (void)call;
    return whit_buf_append_str(text, "a tool");
}

void cli_chat_tool_run(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *result)
{
    (void)tools, (void)call;
    whit_buf_append_str(result, "error: tools are not in the program for this system");
}
