/* SPDX-License-Identifier: MIT
 * Serves HTTP/1.1 by libmicrohttpd. A handler is called for each request, and makes a complete or a streamed reply.
 * Each connection has its own thread, so a handler may block. */
#ifndef WHIT_SERVER_HTTP_H
#define WHIT_SERVER_HTTP_H

#include "base/mem.h"
#include "server/budget.h"

#define WHIT_WEB_MAX_BODY_BYTES (16u << 20)

typedef struct whit_web_request {
    const char *method, *path;
    const char *body; /* NULL: there is no body, or it was discarded */
    size_t body_bytes;
    /* the body was discarded, because it exceeds WHIT_WEB_MAX_BODY_BYTES or memory ran out */
    bool is_too_long;
    /* result of claiming the body's memory; unless it is WHIT_CLAIM_TAKEN, the body was discarded */
    whit_claim_result body_claim;
    int fd; /* descriptor of the connection, to check whether the client has left; -1: unknown */
    const void *connection;
    /* The handler is called twice, first without the body and with headers_only. If it sets a status then, this reply
     * refuses the request, and there is no second call. */
    bool headers_only;
} whit_web_request;

/* Produces the next piece of a stream: copies at most `room` bytes to `data` and returns their number; 0: end of the
 * stream; -1: the connection should be closed, because the stream is incomplete or the client has left. */
typedef long whit_web_stream_fn(void *user, char *data, size_t room);

typedef struct whit_web_reply {
    int status;
    const char *type;        /* content type */
    whit_buf body;           /* body of the reply; the server frees it */
    const char *headers[16]; /* n_headers pairs of a name and a value, which must outlive the reply */
    size_t n_headers;
    whit_claim *claim; /* claim on the request's memory, released when the reply is sent; NULL while only the headers
                        * are read */
    /* storage for the value of a header Retry-After, in seconds, to which `headers` may point */
    char retry_after[24];
    char id[132];               /* id of the request for a header; "": none */
    bool is_id_given;           /* the id comes from the client or a proxy */
    bool is_logged;             /* the code that makes the reply also writes it to the log */
    bool is_known;              /* the request has a valid key, or no key is required; set by the handler's first
                                 * call */
    whit_web_stream_fn *stream; /* produces the body piece by piece, in place of `body`; NULL: the reply is complete */
    void (*end_stream)(void *user);
    void *stream_user;
} whit_web_reply;

typedef void whit_web_handler(void *user, const whit_web_request *request, whit_web_reply *reply);

/* Return the value of a header, or of a parameter of the query; NULL if absent. The request owns the text. */
const char *whit_web_header(const whit_web_request *request, const char *name);
const char *whit_web_query(const whit_web_request *request, const char *name);

typedef struct whit_web_server whit_web_server;
/* Starts serving on a listening socket; takes ownership of it on success. A connection is closed if nothing is read or
 * written for timeout_s seconds, not counting the time in which the handler or a stream computes. If more than
 * n_connections are open, a new connection closes the connection that has waited longest. A connection does not wait
 * while it answers a complete request that the handler's first call has marked as known (is_known), so that other
 * clients cannot occupy all connections. The memory of bodies is claimed from `budget` (NULL: no limit), which must
 * outlive the server. */
whit_status whit_web_serve(int listening, uint32_t n_connections, uint32_t timeout_s, whit_budget *budget,
                           whit_web_handler *handler, void *user, whit_web_server **server, whit_error *error);
/* Stops listening: a client that connects later is refused. Connections that the system has made already, and that wait
 * to be accepted, are served. Must be called once at most. */
void whit_web_quiesce(whit_web_server *server);
/* Returns how many requests and connections still need the server: requests whose headers were read and whose replies
 * are not completely sent yet, connections with bytes that were not read yet, and connections without a request that
 * are younger than a second. */
uint32_t whit_web_in_flight(whit_web_server *server);
void whit_web_close(whit_web_server *server);

#endif
