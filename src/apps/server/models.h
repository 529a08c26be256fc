/* SPDX-License-Identifier: MIT
 * The models of a server: opened at first use, closed when idle and memory is short, replaced on request. */
#ifndef WHIT_SERVER_MODELS_H
#define WHIT_SERVER_MODELS_H

#include <sys/stat.h>

#include "server/site.h"

/* A served model. Members after `options` change under the lock of the site's models. */
typedef struct whit_entry {
    const whit_server_model *options;
    whit_api *api; /* NULL: closed */
    bool is_opening;
    bool is_gone; /* removed from the store */
    uint64_t used_ns;
    whit_engine_counts past; /* counters of its closed engines */
    size_t n_bytes;          /* memory that the model needs when open */
    size_t n_file_bytes;     /* bytes of its files that are mapped */
    size_t n_one_bytes;      /* memory of its session with a single slot */
    size_t n_slot_bytes;     /* memory of each further slot */
    char family[64];         /* general.architecture */
    double n_parameters;
    const char *weight_type; /* type of most weights, a constant */
    uint32_t n_vocab, n_ctx_train, n_ctx;
    struct timespec changed; /* modification time and inode of the file, which tell a replaced file */
    ino_t file;
    char digest[65]; /* hash that identifies the content */
} whit_entry;

typedef struct whit_models {
    whit_entry *entries; /* array of n_places entries, which never move */
    size_t n, n_places;
    uint64_t n_free_bytes;                      /* free memory before they were opened; 0: unknown */
    size_t entry_of[WHIT_SERVER_MOST_ADAPTERS]; /* the first model that accepts an adapter */
    whit_api *retired;                          /* replaced ones with requests in flight */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} whit_models;

/* Opens each model once, so that none is found wanting later, and keeps the first. Takes the opened ones of the
 * options over, also on failure. */
whit_status whit_models_open(whit_site *site, whit_error *error);
/* Starts the engine of the first; whit_models_open reads files and starts no threads. */
whit_status whit_models_start(whit_site *site, whit_error *error);
void whit_models_close(whit_site *site);
/* Returns whether a request's model name means `own`; Ollama's clients append ":latest". */
bool whit_is_named(const char *own, const char *name);
/* Returns the model by that name (NULL: the first), ready to be used until whit_models_release. A model that the key
 * may not use is not opened for it, since that may close another. NULL: the reply says why. */
whit_api *whit_models_acquire(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply);
/* Closes a model of the store, which is about to be removed; one that the server was started with is refused. False:
 * the reply says why not. True also if the model is not served so far. */
bool whit_models_forget(whit_site *site, const char *name, whit_web_reply *reply);
/* Closes the models of the store whose files were removed, under whatever name requests have used them. */
void whit_models_forget_absent(whit_site *site);
/* Closes the model of that name if no request uses it; the next request opens it again. False: the reply contains
 * the reason. */
bool whit_models_unload(whit_site *site, const char *name, whit_web_reply *reply);
void whit_models_keep(whit_api *api); /* adds a reference; the caller must have one */
void whit_models_release(whit_api *api);
/* Reopens models whose files were replaced on disk; writes a line to stderr for each, also on failure. */
void whit_models_reload(whit_site *site);
bool whit_models_are_idle(whit_site *site);
/* Returns how many models before the named model, whose name is one of the site's own texts, have the same weights. */
uint32_t whit_models_twin(whit_site *site, const char *name);
/* Counts of the named model, whose name is one of the site's own texts; NULL: sums of all models. Counters continue
 * after a model was closed or replaced. */
void whit_models_count(whit_site *site, const char *name, whit_engine_counts *counts);
/* Copies the i-th entry, for lists; most of it is known while the model is closed, too. False if there is no i-th. */
bool whit_models_at(whit_site *site, size_t i, whit_entry *entry);

#endif
