/* SPDX-License-Identifier: MIT
 * A server of models over HTTP: the APIs of OpenAI's clients, streaming, many requests at once. */
#ifndef WHIT_SERVER_SERVER_H
#define WHIT_SERVER_SERVER_H

#include <stdatomic.h>

#include "whit.h"

typedef struct whit_server_model {
    const char *name;  /* in requests and replies */
    const char *path;  /* for open_model; NULL: the built-in one */
    whit_model *model; /* opened; the server takes it over */
    const char *file;  /* that the model lies in; NULL: none */
    bool is_converted; /* a copy of what `path` names, which may be made again */
} whit_server_model;

enum { WHIT_SERVER_MOST_ADAPTERS = 64 };
typedef struct whit_server_adapter {
    const char *name, *path;
} whit_server_adapter;

typedef struct whit_server_options {
    const char *host, *socket_path;  /* socket_path: a Unix socket in place of host and port */
    uint32_t port;                   /* 0: any that is free */
    const whit_server_model *models; /* one at least */
    size_t n_models;
    const whit_server_adapter *adapters;
    size_t n_adapters;
    /* Opens one again, in the sandbox. */
    whit_status (*open_model)(void *user, const char *path, whit_model **model, whit_error *error);
    void *open_user;
    uint32_t max_memory_mb;     /* bound for open models; 0: no bound */
    uint32_t request_memory_mb; /* bound for all requests, a quarter of it for each; 0: no bound */
    const char *key_file;       /* one API key a line; NULL: none are asked for */
    const char *cors_origin;
    const char *log_path; /* of requests, "-" is stderr; NULL: none */
    bool log_texts;       /* what was asked and answered goes there, too */
    bool is_unconfined;   /* without the sandbox */
    /* Unless it is: told that the sandbox holds (NULL), or why this machine has none. */
    void (*confined)(void *user, const char *why_not);
    void *confined_user;
    uint32_t n_parallel, n_threads, n_ctx_tokens, n_queue, timeout_s;
    whit_kv_type kv;
    uint32_t n_kv_window;
    whit_act_type act;
    uint32_t n_batch_tokens; /* 0: the server's own choice */
    bool exact_head;
    bool no_tool_fallback; /* a template without tools takes none */
    const char *cache_dir; /* where beginnings outlive the server; NULL: nowhere */
} whit_server_options;

/* Serves until *stop is 1 and what runs has ended, or *stop is 2; looks for replaced files where *reload is not 0.
 * `ready` is told the address once connections are accepted. */
whit_status whit_server_run(const whit_server_options *options, const atomic_int *stop, atomic_int *reload,
                            void (*ready)(void *user, const char *address), void *user, whit_error *error);
/* The version of libmicrohttpd; NULL where it is not on this machine or in this build. */
const char *whit_server_library(void);

#endif
