/* SPDX-License-Identifier: MIT
 * Declares the state of a server: whit_site is shared by all models, whit_api is the state of one open model. */
#ifndef WHIT_SERVER_SITE_H
#define WHIT_SERVER_SITE_H

#include <jansson.h>
#include <pthread.h>

#include "server/engine.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/server.h"

/* An API key. WHIT_KEY_NAME_BYTES: size of its name including the zero byte. */
#define WHIT_KEY_NAME_BYTES 40
struct whit_key {
    uint8_t hash[32];
    char name[WHIT_KEY_NAME_BYTES]; /* name for the log; "": no name */
    /* comma-separated names of the models and adapters that the key may use; NULL: all */
    char *models;
    uint32_t n_minute;    /* maximum number of requests per minute; 0: no limit */
    atomic_ullong due_ns; /* time (whit_now_ns) at which the key's requests so far would be done at that
                                     * rate */
};

typedef struct whit_keys {
    struct whit_key *items;
    size_t n; /* number of keys; 0: no key is required */
} whit_keys;
typedef struct whit_keyring {
    pthread_rwlock_t lock; /* locked for writing while a reload replaces the keys */
    whit_keys keys;
} whit_keyring;

/* State of a server that all models share. */
typedef struct whit_site {
    const whit_server_options *options;
    const atomic_int *stop;  /* not 0: the server ends, after the drain if one is configured */
    atomic_bool is_refusing; /* the drain is over: requests for work are refused */
    struct whit_models *models;
    struct whit_events *events; /* NULL: KV events are not published */
    whit_keyring *keyring;
    bool is_local; /* the server listens on a TCP address of this machine only; false for a Unix socket */
    int key_fd;    /* socket of the helper process that opens key files again, or -1 */
    whit_request_log log;
    atomic_ullong n_ids;        /* number of request ids made so far */
    uint64_t id_seed;           /* random seed of ids, so that replicas and restarted servers make different ones */
    whit_budget budget;         /* memory that requests may use */
    int store_fd;               /* socket of the helper process for the store; -1: no store */
    pthread_mutex_t store_lock; /* held while a request uses the helper */
    int keep_fd;                /* lock of i_server in the folder of --cache-dir; -1: none */
    uint32_t i_server;          /* number of this server among the servers that use the folder of --cache-dir */
    time_t started;
    _Atomic float strengths[WHIT_SERVER_MOST_ADAPTERS]; /* strength of each adapter in requests that name no adapter */
    char page_policy[400];                              /* Content-Security-Policy of the web page */
} whit_site;

/* One open model with its engine, template, vocabularies and adapters. */
typedef struct whit_api {
    whit_site *site;
    const char *name;
    whit_model *model;
    const whit_server_options *options; /* the site owns this, and also `stop` and `log` */
    whit_engine *engine;
    whit_chat_template *chat;            /* NULL: the model has no usable chat template */
    whit_grammar_vocabulary *vocabulary; /* vocabulary for grammars; NULL: the model's tokenizer is not suitable */
    /* vocabulary for grammars of calls, which includes special tokens; NULL: `vocabulary` is used */
    whit_grammar_vocabulary *call_vocabulary;
    const atomic_int *stop;
    whit_request_log log;
    /* adapters by their index in the options; NULL: the adapter does not fit this model */
    whit_adapter *adapters[WHIT_SERVER_MOST_ADAPTERS];
    /* The following members are protected by the lock of the site's models. */
    uint32_t n_users;
    bool is_retired; /* replaced by a newer version; its last user closes it */
    struct whit_api *next_retired;
} whit_api;

/* Initialises the site: reads the API keys and opens the log. */
whit_status whit_site_open(whit_site *site, whit_error *error);
void whit_site_close(whit_site *site);
/* Returns a new number that no other reply of this server has, and very probably none of other servers. */
uint64_t whit_site_number(whit_site *site);
/* Handles one request; this is the handler of the HTTP server, and `user` is the site. */
void whit_site_handle(void *user, const whit_web_request *request, whit_web_reply *reply);
/* Returns the engine options for the model with this name, without the members that whit_api_start sets. */
whit_engine_options whit_api_engine_options(const whit_server_options *options, const char *name);

/* whit_api_open opens the model's chat template, vocabularies and adapters; whit_api_start starts its engine's
 * threads. */
whit_status whit_api_open(whit_api *api, whit_error *error);
whit_status whit_api_start(whit_api *api, whit_error *error);
void whit_api_close(whit_api *api);

/* Computes the page's policy with the hashes of its script and style. */
void whit_page_open(whit_site *site);

#endif
