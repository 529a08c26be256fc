/* SPDX-License-Identifier: MIT
 * Changes of the store of pulled models, asked for over HTTP (--allow-pull).
 *
 * The server's own process can open no connection and write no model once its sandbox is closed. A helper process that
 * is forked before does these few things, one at a time, and says its progress in lines of JSON. */
#ifndef WHIT_SERVER_STORE_H
#define WHIT_SERVER_STORE_H

#include "server/site.h"

enum { WHIT_STORE_LINE_BYTES = 65536 }; /* most bytes of a line between server and helper */

/* Forks the helper; *fd is the server's end of the pair of sockets. The helper ends when that is closed. Call before
 * threads are started and before the sandbox. Errors: io; unsupported where a process cannot
 * be forked (Windows). */
whit_status whit_store_open(const whit_server_store *store, int *fd, whit_error *error);

#endif
