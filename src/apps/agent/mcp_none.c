/* SPDX-License-Identifier: MIT
 * Servers of tools where they cannot be started: each is told, and left out. */
#include "agent/mcp.h"

#include <stdio.h>
#include <string.h>

whit_status whit_mcp_open(const json_t *servers, const volatile bool *cancel,
                          void (*note)(void *user, const char *line), void *user, whit_mcp **mcp, whit_error *error)
{
    const char *name;
    json_t *server;
    char line[200];
    (void)cancel, (void)error;
    *mcp = NULL;
    json_object_foreach((json_t *)(uintptr_t)servers, name, server)
    {
        snprintf(line, sizeof line, "the MCP server %.40s is left out: servers of tools are not ported to this system",
                 name);
        if (note) note(user, line);
    }
    return WHIT_OK;
}

void whit_mcp_close(whit_mcp *mcp)
{
    (void)mcp;
}

bool whit_mcp_add_tools(const whit_mcp *mcp, json_t *tools)
{
    (void)mcp, (void)tools;
    return true;
}

bool whit_mcp_has(const whit_mcp *mcp, const char *name, bool *is_red)
{
    (void)mcp, (void)name;
    *is_red = true;
    return false;
}

void whit_mcp_call(whit_mcp *mcp, const char *name, const json_t *arguments, whit_buf *result)
{
    (void)mcp, (void)arguments;
    whit_buf_printf(result, "error: there is no server of tools for %s", name);
}
