/* SPDX-License-Identifier: MIT
 * Declares the table of endpoints. A row determines a path's handler, whether it needs a key, a body and an open model,
 * and the vendor whose error format it has. The replies 404 and 405 (with Allow) also come from the table.
 *
 * A request goes through these stages; the first three also run before its body is read (headers_only):
 *     CORS -> row -> key -> body -> key's rate -> model -> handler -> errors in the vendor's form */
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
    WHIT_ROUTE_MODEL = 2,   /* needs an open model, which the request names */
    WHIT_ROUTE_WORK = 4,    /* counts against the key's requests per minute; refused once the drain is over */
    WHIT_ROUTE_BARE = 8,    /* not also served under the prefix /v1 */
    WHIT_ROUTE_EMPTY = 128, /* an empty body is read as {} */
    WHIT_ROUTE_LIST = 64,   /* the body is a list, not an object */
    WHIT_ROUTE_NAMED = 32,  /* "*" in the path is the model's name */
    /* Served under every Host name: load balancers probe it, and it reveals nothing private. */
    WHIT_ROUTE_PROBE = 256,
    /* a path of two vendors; with the header anthropic-version it is Anthropic's */
    WHIT_ROUTE_SHARED = 16,
};

typedef struct whit_call whit_call;
typedef void whit_handler(whit_call *call);

typedef struct whit_route {
    /* method: "GET", "POST", "DELETE", or NULL for a row that only gives the vendor of unknown paths; path: "*" matches
     * one or more characters */
    const char *method, *path;
    whit_handler *handler;
    unsigned flags;
    whit_vendor vendor;
} whit_route;

/* A request as its handler gets it. */
struct whit_call {
    whit_site *site;
    whit_api *api; /* the open model, in use until the handler returns; NULL unless the row has WHIT_ROUTE_MODEL */
    const whit_web_request *request;
    const whit_route *route;
    const json_t *body; /* an object or a list, valid until the handler returns; NULL for GET */
    const char *rest;   /* the n_rest characters that "*" matches, not zero-terminated; NULL: the path has no "*" */
    size_t n_rest;
    whit_vendor vendor; /* vendor whose API determines the form of the reply */
    bool closes_model;  /* set by the handler: the model is closed after the request, unless other requests use it */
    uint64_t key;       /* hash of the API key; 0: no key */
    whit_web_reply *reply;
};

/* All rows, in the order in which paths are compared with them. */
extern const whit_route whit_routes[];
extern const size_t whit_n_routes;

#endif
