/* SPDX-License-Identifier: MIT
 * Serves HTTP/1.1 by libmicrohttpd: a handler gets whole requests, and makes whole or streamed replies. Each connection
 * has a thread, so a handler may block. */
#ifndef WHIT_SERVER_HTTP_H
#define WHIT_SERVER_HTTP_H

#include "base/mem.h"
#include "server/budget.h"

#define WHIT_WEB_MAX_BODY_BYTES (16u << 20)

typedef struct whit_web_request {
    const char *method, *path;
    const char *body; /* NULL: the request has no body, or it was discarded */
    size_t body_bytes;
    bool is_too_long;             /* the body is over WHIT_WEB_MAX_BODY_BYTES and was not kept */
    whit_claim_result body_claim; /* result of claiming memory for the body; if refused, the body was discarded */
    int fd;                       /* descriptor of the connection, used to see whether the client has left */
    const void *connection;
    /* this is the first of two calls, before the body is read: a reply with a status refuses the request */
    bool headers_only;
} whit_web_request;

/* Produces a stream piece by piece: returns the number of bytes copied to `data`, 0 at the end, -1 if the client
 * left. */
typedef long whit_web_stream_fn(void *user, char *data, size_t room);

typedef struct whit_web_reply {
    int status;
    const char *type;        /* content type */
    whit_buf body;           /* body of the reply; the server frees it */
    const char *headers[16]; /* name-value pairs, which must outlive the reply */
    size_t n_headers;
    whit_claim *claim;          /* memory of the request, released when the reply is sent; NULL: not counted */
    char retry_after[24];       /* value of the header Retry-After in seconds; "": no header */
    char id[132];               /* id of the request; "": no id */
    bool is_id_given;           /* the client, or a proxy, chose the id */
    bool is_logged;             /* the code that makes the reply also logs it */
    bool is_known;              /* the request gives a valid key, or no key is required */
    whit_web_stream_fn *stream; /* produces the reply in place of `body` */
    void (*end_stream)(void *user);
    void *stream_user;
} whit_web_reply;

typedef void whit_web_handler(void *user, const whit_web_request *request, whit_web_reply *reply);

/* Return a header, or a parameter of the query, in place; NULL if absent. */
const char *whit_web_header(const whit_web_request *request, const char *name);
const char *whit_web_query(const whit_web_request *request, const char *name);

typedef struct whit_web_server whit_web_server;
/* Serves on a listening socket, of which it takes ownership. A connection on which nothing is read or written for
 * timeout_s is closed; the time in which the handler or a stream computes its answer does not count. If there are more
 * than n_connections, a new connection closes the connection with the longest wait, so that a client cannot keep others
 * out without a whole request that the handler's first reply declares known (is_known). Bodies are counted in `budget`
 * (NULL: not counted), which must outlive the server. */
whit_status whit_web_serve(int listening, uint32_t n_connections, uint32_t timeout_s, whit_budget *budget,
                           whit_web_handler *handler, void *user, whit_web_server **server, whit_error *error);
void whit_web_quiesce(whit_web_server *server); /* stops accepting new connections */
/* Returns the number of requests whose headers were read and whose replies are not completely sent. */
uint32_t whit_web_in_flight(const whit_web_server *server);
void whit_web_close(whit_web_server *server);

#endif
