/* SPDX-License-Identifier: MIT
 * The server of models that runs on this machine, and the key of an endpoint. */
#ifndef WHIT_AGENT_FIND_SERVER_H
#define WHIT_AGENT_FIND_SERVER_H

#include "base/items.h"
#include "base/status.h"

/* Reads the endpoint's key, ended by a zero byte: from a file that nobody else may read, else from $WHIT_API_KEY; "" if
 * neither is set. Errors: argument (others may read the file), io. */
whit_status whit_agent_key(const char *key_file, whit_buf *key, whit_error *error);
/* A server of models on this machine; zero-initialised: not found. */
typedef struct whit_found_server {
    whit_buf texts, notes; /* notes: lines for the person, each with its line feed */
    const char *url, *name;
    bool hides_key; /* the server is not the person's own: $WHIT_API_KEY is not for it */
} whit_found_server;
/* Finds whit serve, llama.cpp or Ollama and its first model, or `wanted` (may be NULL). Free `found` in every case.
 * Errors: argument (no server answers, with what to do). */
whit_status whit_find_server(const char *wanted, whit_found_server *found, whit_error *error);
void whit_found_server_free(whit_found_server *found);

#endif
