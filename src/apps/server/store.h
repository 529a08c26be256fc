/* SPDX-License-Identifier: MIT
 * Changes of the store of pulled models, requested over HTTP (--allow-pull).
 *
 * After it has entered its sandbox, the server's own process cannot open connections or write models. A helper process,
 * which is forked before, makes these changes one at a time, and reports its progress in lines of JSON. */
#ifndef WHIT_SERVER_STORE_H
#define WHIT_SERVER_STORE_H

#include "server/site.h"

enum { WHIT_STORE_LINE_BYTES = 65536 }; /* maximum number of bytes of a line between server and helper */

/* Forks the helper and sets *fd to the server's end of the pair of sockets. The helper ends when that is closed. Call
 * it before threads are started and before the sandbox is entered. Errors: io; unsupported if a process cannot be
 * forked (Windows). */
whit_status whit_store_open(const whit_server_store *store, int *fd, whit_error *error);

#endif
