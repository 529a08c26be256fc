/* SPDX-License-Identifier: MIT
 * Keeps the models of a server: a model is opened at first use, closed when it is idle and memory is short, and
 * replaced on request. */
#ifndef WHIT_SERVER_MODELS_H
#define WHIT_SERVER_MODELS_H

#include <sys/stat.h>

#include "server/site.h"

/* Describes a served model. Members after `options` change under the lock of the site's models. */
typedef struct whit_entry {
    const whit_server_model *options;
    whit_api *api; /* NULL: closed */
    bool is_opening;
    bool is_gone; /* the model was removed from the store */
    uint64_t used_ns;
    whit_engine_counts past; /* sum of the counters of the model's closed engines */
    size_t n_bytes;          /* memory that the model needs when open */
    size_t n_file_bytes;     /* bytes of its files that are mapped */
    size_t n_one_bytes;      /* memory of its session with a single slot */
    size_t n_slot_bytes;     /* memory of each further slot */
    char family[64];         /* value of general.architecture */
    double n_parameters;
    const char *weight_type; /* type of most weights, a constant */
    uint32_t n_vocab, n_ctx_train, n_ctx;
    struct timespec changed; /* modification time and inode of the file, which tell a replaced file */
    ino_t file;
    char digest[65]; /* hash that identifies the content */
} whit_entry;

typedef struct whit_models {
    whit_entry *entries; /* (n_places) entries, which never move */
    size_t n, n_places;
    uint64_t n_free_bytes;                      /* free memory before the models were opened; 0: unknown */
    size_t entry_of[WHIT_SERVER_MOST_ADAPTERS]; /* index of the first model that accepts each adapter */
    whit_api *retired;                          /* list of replaced models with requests in flight */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} whit_models;

/* Opens each model once, so that errors are found early, and keeps the first one open. Takes ownership of the opened
 * models in the options, also on failure. */
whit_status whit_models_open(whit_site *site, whit_error *error);
/* Starts the engine of the first model; whit_models_open reads files and starts no threads. */
whit_status whit_models_start(whit_site *site, whit_error *error);
void whit_models_close(whit_site *site);
/* Returns whether a request's model name stands for `own`; Ollama's clients append ":latest". */
bool whit_is_named(const char *own, const char *name);
/* Returns the model with that name (NULL: the first), ready to be used until whit_models_release. A model that the key
 * may not use is not opened, because that may close another model. Returns NULL if the request is refused, and fills in
 * the reply. */
whit_api *whit_models_acquire(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply);
/* Closes a model of the store that is about to be removed; a model with which the server was started is refused.
 * Returns false if it is refused, and fills in the reply; returns true also if the model is not served. */
bool whit_models_forget(whit_site *site, const char *name, whit_web_reply *reply);
/* Closes the models of the store whose files were removed, under all names that requests have used for them. */
void whit_models_forget_absent(whit_site *site);
/* Closes the model with that name if the key may use it and no request does; the next request opens it again. Returns
 * false if it is refused, and fills in the reply. */
bool whit_models_unload(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply);
void whit_models_keep(whit_api *api); /* adds a reference; the caller must already have one */
void whit_models_release(whit_api *api);
/* Reopens models whose files were replaced on disk; writes a line to stderr for each of them, also on failure. */
void whit_models_reload(whit_site *site);
bool whit_models_are_idle(whit_site *site);
/* Returns the number of models before the named one that have the same weights; `name` is one of the site's own
 * strings. */
uint32_t whit_models_twin(whit_site *site, const char *name);
/* Gets the counts of the named model, where `name` is one of the site's own strings; NULL: the sums of all models.
 * Counters continue after a model was closed or replaced. */
void whit_models_count(whit_site *site, const char *name, whit_engine_counts *counts);
/* Copies the i-th entry, for lists; most of its members are also known while the model is closed. Returns false if
 * there is no i-th entry. */
bool whit_models_at(whit_site *site, size_t i, whit_entry *entry);

#endif
