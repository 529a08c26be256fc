/* SPDX-License-Identifier: MIT
 * Changes the store of pulled models by requests over HTTP (--allow-pull).
 *
 * In its sandbox, the server's own process cannot open connections or write models. A helper process, which is forked
 * before the sandbox is entered, makes these changes one at a time and reports progress in lines of JSON. */
#ifndef WHIT_SERVER_STORE_H
#define WHIT_SERVER_STORE_H

#include "server/site.h"

enum { WHIT_STORE_LINE_BYTES = 65536 }; /* maximum size of a line between server and helper, in bytes */

/* Forks the helper process. *fd: the server's end of a pair of sockets; when it is closed, the helper ends. Must be
 * called before threads are started and before the sandbox is entered. Errors: io; unsupported if processes cannot be
 * forked (Windows). */
whit_status whit_store_open(const whit_server_store *store, int *fd, whit_error *error);

#endif
