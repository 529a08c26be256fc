/* SPDX-License-Identifier: MIT
 * Declares a server of models over HTTP. It offers the APIs of OpenAI and other vendors, streams answers, and works on
 * many requests at once. */
#ifndef WHIT_SERVER_SERVER_H
#define WHIT_SERVER_SERVER_H

#include <stdatomic.h>

#include "whit.h"

typedef struct whit_server_model {
    const char *name;          /* name of the model in requests and replies */
    const char *path;          /* path that open_model gets; NULL: the built-in model */
    whit_model *model;         /* the opened model, which the server then owns */
    const char *file;          /* file that contains the model; NULL: no file */
    bool is_converted;         /* `file` is a converted copy of `path` and can be converted again */
    const whit_model *drafter; /* separate draft model, which must outlive the server; NULL: none */
} whit_server_model;

enum { WHIT_SERVER_MOST_ADAPTERS = 64 };
typedef struct whit_server_adapter {
    const char *name, *path;
} whit_server_adapter;

/* Functions that change or read the store of pulled models. All except `find` run in a helper process outside the
 * sandbox. Names are those of `whit pull`. `progress` returns false to stop the work. */
typedef struct whit_server_store {
    void *user;
    whit_status (*pull)(void *user, const char *name,
                        bool (*progress)(void *user, const char *file, uint64_t done_bytes, uint64_t total_bytes),
                        void *progress_user, whit_error *error);
    whit_status (*copy)(void *user, const char *from, const char *to, whit_error *error);
    whit_status (*remove)(void *user, const char *name, whit_error *error);
    /* Finds the path of a pulled model. The caller frees it. */
    whit_status (*find)(void *user, const char *name, char **path, whit_error *error);
    const char *folder; /* folder that contains the store and the converted models */
} whit_server_store;

typedef struct whit_server_options {
    const char *host, *socket_path;  /* socket_path: path of a Unix socket; not NULL: used instead of host and port */
    uint32_t port;                   /* 0: any free port */
    const whit_server_model *models; /* array of n_models served models; at least one */
    size_t n_models;
    const whit_server_adapter *adapters;
    size_t n_adapters;
    /* Opens a model again later, from inside the sandbox. */
    whit_status (*open_model)(void *user, const char *path, whit_model **model, whit_error *error);
    void *open_user;
    uint32_t max_memory_mb; /* limit of the memory of open models, in MiB; 0: no limit */
    /* limit of the memory of all requests together, in MiB; each may use a quarter; 0: no limit */
    uint32_t request_memory_mb;
    /* API keys: a file with one key per line, which may follow a name and blanks ("anna sk-..."), comments begin with
     * '#'; and a list, each item of which may be several keys separated by commas. Without these two and key_table,
     * requests need no key. */
    const char *key_file;
    const char *key_table; /* another file, with KEY NAME MODELS RATE on each line (docs/use/server.md) */
    const char *const *keys;
    size_t n_keys;
    const char *cors_origin;
    const char *log_path; /* file of the request log, "-" is stderr; NULL: no log */
    bool log_texts;       /* the log includes the texts of requests and answers */
    bool is_unconfined;   /* the server does not enter the sandbox */
    /* the store, whose models requests may name, and may change; NULL: only `models` are served */
    const whit_server_store *store;
    /* Called unless is_unconfined. why_not: NULL if the sandbox was entered, otherwise the reason why this machine has
     * no sandbox. */
    void (*confined)(void *user, const char *why_not);
    void *confined_user;
    uint32_t n_parallel, n_threads, n_ctx_tokens, n_queue, timeout_s;
    /* seconds after the first signal in which requests are still answered, while /health reports that the server is
     * draining */
    uint32_t drain_s;
    whit_kv_type kv;
    uint32_t n_kv_window;
    /* memory for each model's checkpoints of states; 0: the session's default number of checkpoints */
    uint64_t state_bytes;
    uint64_t expert_bytes; /* memory for the experts of each mixture-of-experts model; 0: no limit */
    whit_act_type act;
    uint32_t n_batch_tokens; /* maximum number of tokens of a step; 0: chosen by the server */
    uint32_t step_budget_ms; /* target time of steps that generate tokens; 0: no target */
    uint32_t n_draft_tokens; /* maximum number of drafted tokens per step, as in whit_generate_options; at most 15 */
    bool has_draft_blocks;   /* models with a draft block, which predicts one more token, use it */
    bool exact_head;
    /* Jinja chat template that replaces the first model's own, and its name for messages; NULL: it is not replaced. */
    const char *chat_template, *chat_template_name;
    bool no_tool_fallback; /* requests with tools are refused if the template does not support tools */
    /* Writes log-probabilities after the samplers for a sampler's last pick: entries[0] is the picked token, followed
     * by the n_top likeliest tokens among the tokens that the samplers left; missing entries have id -1. NULL:
     * post_sampling_probs is refused. */
    void (*drawn)(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);
    const char *cache_dir; /* folder in which prefixes are saved beyond the server's life; NULL: they are not saved */
    /* KV events (kv_events.h). kv_events: endpoint tcp://HOST:PORT, NULL: no events. kv_replay: endpoint for replays,
     * NULL: no endpoint. advertise: HOST:PORT that names this server in the topics of the events; NULL: its own
     * address, with the machine's name if the server listens on all addresses. */
    const char *kv_events, *kv_replay, *advertise;
} whit_server_options;

/* Serves until *stop is 1, the drain is over and running requests have ended, or until *stop is 2. If *reload becomes
 * not 0, sets it to 0 and reads replaced files of keys and models. `ready` is called when connections are accepted:
 * with the address, and the maximum number of bytes that the first model needs for its file, its session with all slots
 * and drafts, its adapters and the session that computes embeddings. */
whit_status whit_server_run(const whit_server_options *options, const atomic_int *stop, atomic_int *reload,
                            void (*ready)(void *user, const char *address, size_t n_bytes), void *user,
                            whit_error *error);
/* Returns the version of libmicrohttpd; NULL if it is not installed or this build does not support it. */
const char *whit_server_library(void);

#endif
