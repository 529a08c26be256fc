/* SPDX-License-Identifier: MIT
 * Manages the models of a server: a model is opened at first use (the first one at the start), closed if it is idle and
 * its memory is needed, and replaced by a reload if its file has changed. */
#ifndef WHIT_SERVER_MODELS_H
#define WHIT_SERVER_MODELS_H

#include <sys/stat.h>

#include "server/site.h"

/* A served model. Once the server runs, the members after `options` change only with the lock of the site's models
 * held. */
typedef struct whit_entry {
    const whit_server_model *options;
    whit_api *api; /* NULL: the model is closed */
    bool is_opening;
    bool is_gone; /* the model was removed from the store */
    uint64_t used_ns;
    whit_engine_counts past; /* counters of the model's earlier engines, which are closed */
    /* memory that the open model needs, including its mapped files, and the adapters of a model of the server's
     * options */
    size_t n_bytes;
    size_t n_file_bytes; /* size of its mapped files */
    size_t n_one_bytes;  /* memory of its session with one slot */
    size_t n_slot_bytes; /* memory of each further slot of the session; 0: the server has one slot */
    char family[64];     /* value of the metadata key general.architecture */
    double n_parameters;
    const char *weight_type; /* type of most of the weights; a constant */
    uint32_t n_vocab, n_ctx_train, n_ctx;
    struct timespec changed; /* modification time and inode number of the file, by which a replaced file is noticed */
    ino_t file;
    char digest[65]; /* hash of the content, in hexadecimal digits */
} whit_entry;

typedef struct whit_models {
    whit_entry *entries; /* array of n_places entries, which are never moved */
    size_t n, n_places;
    uint64_t n_free_bytes;                      /* free memory when whit_models_open was called; 0: unknown */
    size_t entry_of[WHIT_SERVER_MOST_ADAPTERS]; /* for each adapter, the index of the first model that it fits */
    whit_api *retired;                          /* list of replaced models that still answer requests */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} whit_models;

/* Opens each model once, so that errors are found at the start, and keeps only the first one open. Takes ownership of
 * the models that the options contain, also on failure. */
whit_status whit_models_open(whit_site *site, whit_error *error);
/* Starts the threads of the first model's engine; whit_models_open only reads files. */
whit_status whit_models_start(whit_site *site, whit_error *error);
void whit_models_close(whit_site *site);
/* Returns whether the model name in a request means `own`: it is equal, or has Ollama's suffix ":latest". */
bool whit_is_named(const char *own, const char *name);
/* Returns the model with this name, opened if necessary and usable until whit_models_release. The name of an adapter
 * means the first model that it fits; NULL, "" and, in a server of one model without a store, any other name mean the
 * first model. A model that the key may not use is not opened, since that could close another model. If the request is
 * refused, fills in the reply and returns NULL. */
whit_api *whit_models_acquire(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply);
/* Closes a model that is about to be removed from the store. A model that was named at the server's start, or that is
 * in use, is refused: fills in the reply and returns false. Returns true also if the model is not served. */
bool whit_models_forget(whit_site *site, const char *name, whit_web_reply *reply);
/* Closes all models of the store whose files were removed, under all names that requests have used for them. A model
 * that is answering requests gets no new ones, and is closed later. */
void whit_models_forget_absent(whit_site *site);
/* Closes the model with that name if the key may use all models and no request uses this one; the next request opens it
 * again. Returns false if it is refused, and fills in the reply. */
bool whit_models_unload(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply);
void whit_models_keep(whit_api *api); /* adds a reference; the caller must already have one */
void whit_models_release(whit_api *api);
/* Replaces open models whose files have changed on disk, and updates the facts about closed ones. Prints a line to
 * stderr for each of them, also for failures. */
void whit_models_reload(whit_site *site);
bool whit_models_are_idle(whit_site *site);
/* Returns how many models before this one have the same weights. `name` must be one of the site's own strings. */
uint32_t whit_models_twin(whit_site *site, const char *name);
/* Sets *counts to those of the model `name`, which must be one of the site's own strings; NULL: to the sums over all
 * models (context size and times of steps: the largest). Counters include those of closed and replaced engines. */
void whit_models_count(whit_site *site, const char *name, whit_engine_counts *counts);
/* Copies the i-th of the entries whose models were not removed; all members but `api` are valid even while the model is
 * closed, and `api` may be closed at any time. Returns false if there are only i such entries or fewer. */
bool whit_models_at(whit_site *site, size_t i, whit_entry *entry);

#endif
