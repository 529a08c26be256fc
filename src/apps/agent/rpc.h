/* SPDX-License-Identifier: MIT
 * JSON-RPC 2.0 in lines over two descriptors, as MCP (stdio) and the Agent Client Protocol have it. */
#ifndef WHIT_AGENT_RPC_H
#define WHIT_AGENT_RPC_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_RPC_LINE_BYTES ((size_t)16 << 20)

/* Zero-initialise with the first three set. */
typedef struct whit_rpc {
    int in, out;                 /* the caller's */
    const volatile bool *cancel; /* NULL: never */
    whit_buf bytes;              /* bytes read but not consumed yet */
    size_t n_taken;
    bool has_ended;  /* the input has ended */
    bool allows_nul; /* strings may contain zero bytes; otherwise such a line is BAD */
    int64_t next_id;
} whit_rpc;

typedef enum whit_rpc_got {
    WHIT_RPC_MESSAGE,
    WHIT_RPC_END,
    WHIT_RPC_TIMEOUT,
    WHIT_RPC_BAD,
    WHIT_RPC_OTHER
} whit_rpc_got;

/* Reads the next message, which is the caller's; empty lines are skipped. Waits at most timeout_ms (negative: for
 * ever). BAD: a line that is not JSON, or too long; OTHER: JSON that is not an object; the next message may be read.
 * END: cancelled, or the end of the input, whose last line may lack its line feed. */
whit_rpc_got whit_rpc_read(whit_rpc *rpc, int timeout_ms, json_t **message);

bool whit_rpc_notify(whit_rpc *rpc, const char *method, json_t *params);
/* Answers a request: with a result, or an error. Take the last argument over. */
bool whit_rpc_reply(whit_rpc *rpc, const json_t *id, json_t *result);
bool whit_rpc_refuse(whit_rpc *rpc, const json_t *id, int code, const char *message);
/* Sends a request; its id is for whit_rpc_is_reply. */
bool whit_rpc_ask(whit_rpc *rpc, const char *method, json_t *params, int64_t *id);
bool whit_rpc_is_reply(const json_t *message, int64_t id);
/* Sends a request and returns the reply, which the caller owns. Pings of the other side are answered, its other
 * requests refused, its notifications dropped. NULL: no reply within timeout_ms, whatever else arrived, or the other
 * side has ended. */
json_t *whit_rpc_converse(whit_rpc *rpc, const char *method, json_t *params, int timeout_ms);
void whit_rpc_free(whit_rpc *rpc);

#endif
