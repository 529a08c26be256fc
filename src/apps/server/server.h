/* SPDX-License-Identifier: MIT
 * Declares a server of models over HTTP, with the APIs of OpenAI's and other vendors' clients, streaming, and many
 * requests at once. */
#ifndef WHIT_SERVER_SERVER_H
#define WHIT_SERVER_SERVER_H

#include <stdatomic.h>

#include "whit.h"

typedef struct whit_server_model {
    const char *name;          /* name in requests and replies */
    const char *path;          /* path for open_model; NULL: the built-in model */
    whit_model *model;         /* an opened model, of which the server takes ownership */
    const char *file;          /* the file that contains the model; NULL: no file */
    bool is_converted;         /* `file` is a converted copy of `path` and can be converted again */
    const whit_model *drafter; /* a separate draft model, which must outlive the server; NULL: no draft model */
} whit_server_model;

enum { WHIT_SERVER_MOST_ADAPTERS = 64 };
typedef struct whit_server_adapter {
    const char *name, *path;
} whit_server_adapter;

/* Holds the store of pulled models. All functions but `find` run in a helper process without the sandbox; names are
 * those of `whit pull`. `progress` returns false to stop. */
typedef struct whit_server_store {
    void *user;
    whit_status (*pull)(void *user, const char *name,
                        bool (*progress)(void *user, const char *file, uint64_t done_bytes, uint64_t total_bytes),
                        void *progress_user, whit_error *error);
    whit_status (*copy)(void *user, const char *from, const char *to, whit_error *error);
    whit_status (*remove)(void *user, const char *name, whit_error *error);
    /* Finds the path of a pulled model; the caller frees it. */
    whit_status (*find)(void *user, const char *name, char **path, whit_error *error);
    const char *folder; /* folder of the store and of converted models */
} whit_server_store;

typedef struct whit_server_options {
    const char *host, *socket_path;  /* socket_path: a Unix socket, used in place of host and port */
    uint32_t port;                   /* 0: any free port */
    const whit_server_model *models; /* the served models, at least one */
    size_t n_models;
    const whit_server_adapter *adapters;
    size_t n_adapters;
    /* Opens a model again, in the sandbox. */
    whit_status (*open_model)(void *user, const char *path, whit_model **model, whit_error *error);
    void *open_user;
    uint32_t max_memory_mb; /* limit for the memory of open models; 0: no limit */
    /* limit for the memory of all requests together, a quarter of it for each; 0: no limit */
    uint32_t request_memory_mb;
    /* API keys: a file with one key per line, optionally after a name and blanks ("anna sk-..."), with comments after
     * '#'; and a list. If both are absent, no key is needed. */
    const char *key_file;
    const char *key_table; /* another file, with KEY NAME MODELS RATE on each line (docs/use/server.md) */
    const char *const *keys;
    size_t n_keys;
    const char *cors_origin;
    const char *log_path; /* log of requests, "-" is stderr; NULL: no log */
    bool log_texts;       /* log the texts of requests and answers, too */
    bool is_unconfined;   /* run without the sandbox */
    /* store, which requests may change, and whose models are served by name; NULL: only `models` are served */
    const whit_server_store *store;
    /* Called unless is_unconfined: with NULL if the sandbox was entered, otherwise with the reason why this machine has
     * no sandbox. */
    void (*confined)(void *user, const char *why_not);
    void *confined_user;
    uint32_t n_parallel, n_threads, n_ctx_tokens, n_queue, timeout_s;
    /* Seconds after the first signal in which requests are still answered, and /health says draining. */
    uint32_t drain_s;
    whit_kv_type kv;
    uint32_t n_kv_window;
    uint64_t state_bytes;  /* memory for each model's checkpoints */
    uint64_t expert_bytes; /* memory for the experts of each mixture; 0: no limit */
    whit_act_type act;
    uint32_t n_batch_tokens; /* maximum number of tokens of a step; 0: chosen by the server */
    uint32_t step_budget_ms; /* target for the time of a step in which answers grow; 0: no limit */
    uint32_t n_draft_tokens; /* number of drafted tokens, as in whit_generate_options, at most 15 */
    bool has_draft_blocks;   /* models with a block that predicts one more token use it to draft tokens */
    bool exact_head;
    /* Jinja chat template that replaces the first model's, and its name in messages; NULL: the model's own. */
    const char *chat_template, *chat_template_name;
    bool no_tool_fallback; /* templates without tools refuse tools */
    /* Writes log-probabilities after the samplers for a sampler's last pick: entries[0] is that of the picked token,
     * then come the n_top most likely tokens that were left for the draw; missing entries have id -1. NULL:
     * post_sampling_probs is refused. */
    void (*drawn)(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);
    const char *cache_dir; /* folder in which prefixes are saved beyond the server's life; NULL: not saved */
    /* KV events (kv_events.h): endpoints tcp://HOST:PORT for events and for replays, and HOST:PORT that topics name.
     * NULL: no events, no replays, the address on which the server listens. */
    const char *kv_events, *kv_replay, *advertise;
} whit_server_options;

/* Serves until *stop is 1, drain_s has passed and running requests have ended, or until *stop is 2; looks for replaced
 * files if *reload is not 0. `ready` is called when connections are accepted, with the address and the largest number
 * of bytes that the first model needs: for its file, all slots and the session of embeddings. */
whit_status whit_server_run(const whit_server_options *options, const atomic_int *stop, atomic_int *reload,
                            void (*ready)(void *user, const char *address, size_t n_bytes), void *user,
                            whit_error *error);
/* Returns the version of libmicrohttpd; NULL if it is not installed, or not supported by this build. */
const char *whit_server_library(void);

#endif
