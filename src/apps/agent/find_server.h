/* SPDX-License-Identifier: MIT
 * Finds a running model server on this machine, and reads the key of an endpoint. */
#ifndef WHIT_AGENT_FIND_SERVER_H
#define WHIT_AGENT_FIND_SERVER_H

#include "base/items.h"
#include "base/status.h"

/* Reads the endpoint's key, ended by a zero byte: from key_file, which nobody else may read, or, if key_file is NULL,
 * from $WHIT_API_KEY. The key is "" if neither is set or the variable has only blanks. Also adds the key to the keys of
 * whit_guard_find_key(). Errors: argument (others may read the file, or it contains no key), io, limit, memory. */
whit_status whit_agent_key(const char *key_file, whit_buf *key, whit_error *error);
/* A model server on this machine; zero-initialised: not found. */
typedef struct whit_found_server {
    /* notes: messages for the person, each ended by a line feed; texts: storage of `url` and `name` */
    whit_buf texts, notes;
    const char *url, *name;
    unsigned port;
    bool hides_key; /* the server is not known to be the person's own, so it must not get $WHIT_API_KEY */
} whit_found_server;
/* Finds a running server (whit serve, llama.cpp or Ollama). The model is `wanted`, whether or not the server has it,
 * or, if that is NULL, the first model of the server that is not an embedding model. The caller frees `found` in every
 * case. Errors: argument (no server with a model answers; the message says what to do). */
whit_status whit_find_server(const char *wanted, whit_found_server *found, whit_error *error);
void whit_found_server_free(whit_found_server *found);
/* Checks that the server still listens and has not been replaced by another user's since it was found; a server that is
 * not known to be the person's own (hides_key) is only checked for another user. This is done before each request
 * (whit_endpoint_options.check_receiver). found: a whit_found_server. Errors: argument. */
whit_status whit_found_server_check(const void *found, whit_error *error);

#endif
