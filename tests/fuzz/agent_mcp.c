/* SPDX-License-Identifier: MIT
 * Reads lines of JSON-RPC over a pipe as an MCP server's replies: lists of tools and results of calls. */
#include "agent/mcp.h"
#include "agent/rpc.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    int pipes[2];
    json_t *message, *tools = json_array();
    if (n_bytes > 60000 || pipe(pipes) != 0) { /* a pipe's buffer has 64 KiB */
        json_decref(tools);
        return 0;
    }
    ssize_t put = n_bytes ? write(pipes[1], data, n_bytes) : 0;
    close(pipes[1]);
    whit_rpc rpc = {.in = pipes[0], .out = -1};
    for (whit_rpc_got got;
         put >= 0 && (got = whit_rpc_read(&rpc, 0, &message)) != WHIT_RPC_END && got != WHIT_RPC_TIMEOUT;) {
        whit_buf result = {0};
        if (got != WHIT_RPC_MESSAGE) continue;
        whit_mcp_read_tools(message, "server", tools);
        whit_mcp_read_result(message, &result);
        (void)whit_rpc_is_reply(message, 1);
        whit_buf_free(&result);
        json_decref(message);
    }
    json_decref(tools);
    whit_rpc_free(&rpc);
    close(pipes[0]);
    return 0;
}
