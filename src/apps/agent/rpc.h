/* SPDX-License-Identifier: MIT
 * Exchanges JSON-RPC 2.0 messages, one per line, over two descriptors, as MCP (stdio) and the Agent Client Protocol
 * require. */
#ifndef WHIT_AGENT_RPC_H
#define WHIT_AGENT_RPC_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_RPC_LINE_BYTES ((size_t)16 << 20)

/* State of a connection. Zero-initialise it and set the first three members. */
typedef struct whit_rpc {
    int in, out;                 /* descriptors; the caller closes them */
    const volatile bool *cancel; /* ends waiting when it becomes true; NULL: waiting is never cancelled */
    whit_buf bytes;              /* bytes that were read but not yet parsed */
    size_t n_taken;
    bool has_ended;  /* the input has ended */
    bool allows_nul; /* strings may contain zero bytes (\u0000); otherwise a line with such a string is BAD */
    int64_t next_id;
    /* returns the result of a request of the other side, or NULL to refuse it; may be NULL: only pings are answered */
    json_t *(*answer)(void *user, const char *method);
    void *user;
} whit_rpc;

typedef enum whit_rpc_got {
    WHIT_RPC_MESSAGE,
    WHIT_RPC_END,
    WHIT_RPC_TIMEOUT,
    WHIT_RPC_BAD,
    WHIT_RPC_OTHER
} whit_rpc_got;

/* Reads the next message, which the caller then owns, and skips empty lines. Waits at most timeout_ms (negative: no
 * limit). BAD: the line is not JSON or is too long. OTHER: the line is JSON but not an object. After BAD and OTHER the
 * next message can be read. END: waiting was cancelled or the input has ended. The last line may lack its line feed. */
whit_rpc_got whit_rpc_read(whit_rpc *rpc, int timeout_ms, json_t **message);

bool whit_rpc_notify(whit_rpc *rpc, const char *method, json_t *params);
/* Answer a request with a result, or with an error. The first takes ownership of `result`. */
bool whit_rpc_reply(whit_rpc *rpc, const json_t *id, json_t *result);
bool whit_rpc_refuse(whit_rpc *rpc, const json_t *id, int code, const char *message);
/* Sends a request; *id gets its number, for whit_rpc_is_reply(). Takes ownership of `params` (may be NULL), as
 * whit_rpc_notify() and whit_rpc_converse() do. */
bool whit_rpc_ask(whit_rpc *rpc, const char *method, json_t *params, int64_t *id);
bool whit_rpc_is_reply(const json_t *message, int64_t id);
/* Sends a request and returns the reply, which the caller owns. While it waits, it answers pings and the requests that
 * rpc->answer accepts, refuses others and drops notifications. Returns NULL if no reply came within timeout_ms,
 * whatever else arrived meanwhile, or if waiting was cancelled, or the other side has ended. */
json_t *whit_rpc_converse(whit_rpc *rpc, const char *method, json_t *params, int timeout_ms);
void whit_rpc_free(whit_rpc *rpc);

#endif
