/* SPDX-License-Identifier: MIT
 * Exchanges JSON-RPC 2.0 in lines over two descriptors, as MCP (stdio) and the Agent Client Protocol require. */
#ifndef WHIT_AGENT_RPC_H
#define WHIT_AGENT_RPC_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_RPC_LINE_BYTES ((size_t)16 << 20)

/* Holds the state of a connection; zero-initialise it, and set the first three members. */
typedef struct whit_rpc {
    int in, out;                 /* descriptors; the caller closes them */
    const volatile bool *cancel; /* ends waiting when it is set; NULL: waiting is never cancelled */
    whit_buf bytes;              /* bytes read but not consumed yet */
    size_t n_taken;
    bool has_ended;  /* the input has ended */
    bool allows_nul; /* strings may contain zero bytes (\u0000); if not set, a line with such a string is BAD */
    int64_t next_id;
} whit_rpc;

typedef enum whit_rpc_got {
    WHIT_RPC_MESSAGE,
    WHIT_RPC_END,
    WHIT_RPC_TIMEOUT,
    WHIT_RPC_BAD,
    WHIT_RPC_OTHER
} whit_rpc_got;

/* Reads the next message, which the caller then owns; empty lines are skipped. Waits at most timeout_ms (negative:
 * without a limit). BAD: a line that is not JSON, or too long; OTHER: JSON that is not an object; after both the next
 * message may be read. END: waiting was cancelled, or the input has ended, whose last line may lack its line feed. */
whit_rpc_got whit_rpc_read(whit_rpc *rpc, int timeout_ms, json_t **message);

bool whit_rpc_notify(whit_rpc *rpc, const char *method, json_t *params);
/* These functions answer a request with a result, or with an error. They take ownership of `result`. */
bool whit_rpc_reply(whit_rpc *rpc, const json_t *id, json_t *result);
bool whit_rpc_refuse(whit_rpc *rpc, const json_t *id, int code, const char *message);
/* Sends a request; *id is for whit_rpc_is_reply. */
bool whit_rpc_ask(whit_rpc *rpc, const char *method, json_t *params, int64_t *id);
bool whit_rpc_is_reply(const json_t *message, int64_t id);
/* Sends a request and returns the reply, which the caller owns. Meanwhile pings of the other side are answered, its
 * other requests are refused and its notifications dropped. NULL means that no reply came within timeout_ms, whatever
 * else arrived, or that the other side has ended. */
json_t *whit_rpc_converse(whit_rpc *rpc, const char *method, json_t *params, int timeout_ms);
void whit_rpc_free(whit_rpc *rpc);

#endif
