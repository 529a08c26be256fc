/* SPDX-License-Identifier: MIT
 * Holds the state of a server: whit_site has the state that all models share, whit_api is one open model. */
#ifndef WHIT_SERVER_SITE_H
#define WHIT_SERVER_SITE_H

#include <jansson.h>
#include <pthread.h>

#include "server/engine.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/server.h"

/* Describes one API key; its name has WHIT_KEY_NAME_BYTES bytes. */
#define WHIT_KEY_NAME_BYTES 40
struct whit_key {
    uint8_t hash[32];
    char name[WHIT_KEY_NAME_BYTES]; /* name for the log; "": no name */
    char *models;                   /* names of the models that the key may use, between commas; NULL: all models */
    uint32_t n_minute;              /* maximum number of requests per minute; 0: no limit */
    atomic_ullong due_ns;           /* time at which the requests so far would be finished at that rate */
};

typedef struct whit_keys {
    struct whit_key *items;
    size_t n; /* 0: no key is required */
} whit_keys;
typedef struct whit_keyring {
    pthread_rwlock_t lock; /* held for writing while a reload replaces the keys */
    whit_keys keys;
} whit_keyring;

/* Holds the state shared by all models. */
typedef struct whit_site {
    const whit_server_options *options;
    const atomic_int *stop;  /* not 0: the server ends, after a drain if one is configured */
    atomic_bool is_refusing; /* the server stops and the drain is over: requests for work are refused */
    struct whit_models *models;
    struct whit_events *events; /* NULL: no KV events are published */
    whit_keyring *keyring;
    bool is_local; /* the server listens on an address of this machine alone */
    int key_fd;    /* socket of the process that opens key files; -1: this process opens them */
    whit_request_log log;
    atomic_ullong n_ids;        /* number of replies so far */
    uint64_t id_seed;           /* random, so that replicas and restarts use different ids */
    whit_budget budget;         /* memory of requests */
    int store_fd;               /* socket of the helper process; -1: no store */
    pthread_mutex_t store_lock; /* held during a request to the helper */
    int keep_fd;                /* descriptor that keeps the number in the folder of --cache-dir; -1: no number */
    uint32_t i_server;          /* number among the servers that use the folder */
    time_t started;
    _Atomic float strengths[WHIT_SERVER_MOST_ADAPTERS]; /* strength of each adapter for requests that name no adapter */
    char page_policy[400];                              /* the page's Content-Security-Policy */
} whit_site;

/* Describes one open model with its engine, template, vocabularies and adapters. */
typedef struct whit_api {
    whit_site *site;
    const char *name;
    whit_model *model;
    const whit_server_options *options; /* owned by the site, like stop and log */
    whit_engine *engine;
    whit_chat_template *chat;            /* NULL if the model lacks one */
    whit_grammar_vocabulary *vocabulary; /* NULL: no tokenizer for grammars */
    /* Contains the special tokens of calls; NULL: `vocabulary` contains them. */
    whit_grammar_vocabulary *call_vocabulary;
    const atomic_int *stop;
    whit_request_log log;
    /* adapters by their number in the options; NULL: the adapter belongs to another model */
    whit_adapter *adapters[WHIT_SERVER_MOST_ADAPTERS];
    /* The following members are protected by the lock of the site's models. */
    uint32_t n_users;
    bool is_retired; /* replaced by a newer version: the last user closes it */
    struct whit_api *next_retired;
} whit_api;

/* Reads the API keys and opens the log. */
whit_status whit_site_open(whit_site *site, whit_error *error);
void whit_site_close(whit_site *site);
/* Returns a number that is unique among the replies of this server, and very likely among all servers. */
uint64_t whit_site_number(whit_site *site);
/* Answers one request: the handler of the HTTP server, whose `user` is the site. */
void whit_site_handle(void *user, const whit_web_request *request, whit_web_reply *reply);
/* Returns the options of the engine of the model with that name. */
whit_engine_options whit_api_engine_options(const whit_server_options *options, const char *name);

/* whit_api_open reads the model's files; whit_api_start then starts threads and reads no files. */
whit_status whit_api_open(whit_api *api, whit_error *error);
whit_status whit_api_start(whit_api *api, whit_error *error);
void whit_api_close(whit_api *api);

/* Hashes the page's script and style for its policy. */
void whit_page_open(whit_site *site);

#endif
