/* SPDX-License-Identifier: MIT
 * Replaces HTTP in a build without libmicrohttpd: serving fails with an error. */
#include "server/http.h"
#include "server/server.h"

const char *whit_server_library(void)
{
    return NULL;
}

const char *whit_web_header(const whit_web_request *request, const char *name)
{
    (void)request, (void)name;
    return NULL;
}

const char *whit_web_query(const whit_web_request *request, const char *name)
{
    (void)request, (void)name;
    return NULL;
}

whit_status whit_web_serve(int listening, uint32_t n_connections, uint32_t timeout_s, whit_budget *budget,
                           whit_web_handler *handler, void *user, whit_web_server **server, whit_error *error)
{
    (void)listening, (void)n_connections, (void)timeout_s, (void)budget, (void)handler, (void)user;
    *server = NULL;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this build has no libmicrohttpd, so it cannot serve: install its headers and build again");
}

void whit_web_quiesce(whit_web_server *server)
{
    (void)server;
}

uint32_t whit_web_in_flight(whit_web_server *server)
{
    (void)server;
    return 0;
}

void whit_web_close(whit_web_server *server)
{
    (void)server;
}
