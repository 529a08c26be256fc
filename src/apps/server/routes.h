/* SPDX-License-Identifier: MIT
 * Declares the table of endpoints. The rows determine a path's handler, replies 404 and 405 with Allow, whether the
 * path needs a key, a body and an open model, and the vendor whose form its errors have.
 *
 *     headers -> CORS, key -> row -> body, once -> model -> handler -> errors in the vendor's form */
#ifndef WHIT_SERVER_ROUTES_H
#define WHIT_SERVER_ROUTES_H

#include "server/site.h"

typedef enum whit_vendor {
    WHIT_VENDOR_OPENAI,
    WHIT_VENDOR_ANTHROPIC,
    WHIT_VENDOR_OLLAMA,
    WHIT_VENDOR_GEMINI
} whit_vendor;

enum {
    WHIT_ROUTE_PUBLIC = 1,  /* needs no API key */
    WHIT_ROUTE_MODEL = 2,   /* the handler gets the open model that the request names */
    WHIT_ROUTE_WORK = 4,    /* refused while the server stops; counts among the requests that a key may make */
    WHIT_ROUTE_BARE = 8,    /* not served with the prefix /v1 */
    WHIT_ROUTE_EMPTY = 128, /* the body may be absent, which is read as {} */
    WHIT_ROUTE_LIST = 64,   /* the body is a list, not an object */
    WHIT_ROUTE_NAMED = 32,  /* "*" in the path is the model's name */
    /* Served under every Host, because load balancers probe it and it reveals nothing private. */
    WHIT_ROUTE_PROBE = 256,
    /* a path of two vendors: it is Anthropic's if the request has the header anthropic-version */
    WHIT_ROUTE_SHARED = 16,
};

typedef struct whit_call whit_call;
typedef void whit_handler(whit_call *call);

typedef struct whit_route {
    const char *method, *path; /* "GET", "POST" or "DELETE"; "*" in a path stands for one or more characters */
    whit_handler *handler;
    unsigned flags;
    whit_vendor vendor;
} whit_route;

/* Describes a request in the form that its handler gets. */
struct whit_call {
    whit_site *site;
    whit_api *api; /* NULL unless the row has WHIT_ROUTE_MODEL; held until the handler returns */
    const whit_web_request *request;
    const whit_route *route;
    const json_t *body; /* an object or list, valid until the handler returns; NULL for a GET */
    const char *rest;   /* (n_rest) the characters that "*" matches; not zero-terminated */
    size_t n_rest;
    whit_vendor vendor; /* vendor whose API determines the form of the reply */
    bool closes_model;  /* set by a handler: close the model afterwards, unless other requests use it */
    uint64_t key;       /* hash of the API key, for fairness */
    whit_web_reply *reply;
};

/* The rows, in the order in which they are matched. */
extern const whit_route whit_routes[];
extern const size_t whit_n_routes;

#endif
