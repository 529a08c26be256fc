/* SPDX-License-Identifier: MIT
 * Implements whit serve, which serves models over HTTP. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sockets.h"
#include "base/utf8.h"
#include "cli/flags.h"
#include "cli/names.h"
#include "cli/parts.h"
#include "cli/profile.h"
#include "cli/program.h"
#include "cli/ranks.h"
#include "cli/tales.h"
#include "cli/templates.h"
#include "cli/verbs.h"
#include "format/conversion_cache.h"
#include "hub/pull.h"
#include "hub/settings.h"
#include "runtime/drawn.h"
#include "server/server.h"

struct serve_values {
    const char *host, *socket_path, *key_file, *key_table, *cors, *alias, *log;
    const char *template;
    bool log_texts, no_sandbox, no_tool_fallback, allow_pull;
    uint32_t port, n_parallel, n_queue, timeout_s, drain_s, step_budget_ms, n_draft;
    cli_list models, adapters, keys, overrides;
    const char *family, *cache_dir, *kv_events, *kv_replay, *advertise;
    bool no_cache;
    uint32_t max_memory_mb, request_memory_mb;
    cli_session_flags session;
};
static const struct serve_values defaults = {.host = "127.0.0.1",
                                             .port = 8080,
                                             .n_parallel = 4,
                                             .n_queue = 256,
                                             .step_budget_ms = 120,
                                             .n_draft = WHIT_DRAFT_BY_COST,
                                             .request_memory_mb = 1024};

#define AT(member) offsetof(struct serve_values, member)
static const cli_option options[] = {
    CLI_EXPERTS_OPTION(AT(session)),
    {"--host", CLI_TEXT, AT(host), "ADDRESS",
     "Where to listen; 127.0.0.1, the default, is this machine alone; 0.0.0.0 lets other devices in, such as a phone."},
    {"--port", CLI_COUNT, AT(port), "N", "The port; 8080 by default, 0 is any that is free.", 0, 65535},
    {"--socket", CLI_FILE, AT(socket_path), "PATH", "Listen on a Unix socket instead."},
    {"-np, --parallel", CLI_COUNT, AT(n_parallel), "N",
     "Requests at work at once, each with its own context; 4 by default.", 1, 256},
    {"--queue", CLI_COUNT, AT(n_queue), "N",
     "Answers that may wait, of which a request can want several; requests beyond are answered 503; 256 by default.", 1,
     65536},
    {"--timeout", CLI_COUNT, AT(timeout_s), "S", "Seconds that an answer may take; 0, the default, is no limit.", 0,
     1 << 20},
    {"--drain", CLI_COUNT, AT(drain_s), "S",
     "Seconds after SIGTERM in which requests are still answered while /health says draining; 0, the default, is none.",
     0, 3600},
    {"--step-budget", CLI_COUNT, AT(step_budget_ms), "MS",
     "Milliseconds that a new prompt may hold growing answers up at a time; 120 by default, 0 is no limit.", 0, 60000},
    {"--spec", CLI_COUNT, AT(n_draft), "N", CLI_DRAFT_HELP, 0, 15},
    CLI_DRAFT_OPTION(AT(session)),
    {"--alias", CLI_TEXT, AT(alias), "NAME",
     "What the first model is called in replies; by default the name given with -m."},
    {"--max-memory", CLI_COUNT, AT(max_memory_mb), "MB",
     "Close idle models beyond so much memory; 0, the default, keeps what was opened.", 0, 1 << 30},
    {"--request-memory", CLI_COUNT, AT(request_memory_mb), "MB",
     "Memory that requests may take together, a quarter of it each; others are refused; 1024 by default, 0 is no "
     "bound.",
     0, 1 << 20},
    {"--adapter", CLI_REPEAT, AT(adapters), "[NAME=]FILE",
     "An adapter that requests may ask for, by NAME, with a strength of their own; may be given again."},
    {"--api-key", CLI_REPEAT, AT(keys), "KEY",
     "Ask for this key, or one of several with commas between; others on this machine can read it in the list of "
     "processes, unless it comes from $WHIT_API_KEY."},
    {"--api-key-file", CLI_FILE, AT(key_file), "FILE",
     "Ask for one of these keys, one a line, after a name for the log if it has one: anna sk-..."},
    {"--keys", CLI_FILE, AT(key_table), "FILE",
     "Ask for one of these keys, one a line as KEY NAME MODELS RATE: models between commas or *, requests a minute."},
    {"--cache-dir", CLI_FILE, AT(cache_dir), "DIR",
     "Keep the beginnings that slots hold here, so that they are found again after a restart."},
    {"--kv-events", CLI_TEXT, AT(kv_events), "tcp://HOST:PORT",
     "Publish by ZeroMQ, for routers, which prefixes are cached, in vLLM's format; * is every address."},
    {"--kv-replay", CLI_TEXT, AT(kv_replay), "tcp://HOST:PORT", "Repeat events there to subscribers that missed some."},
    {"--advertise", CLI_TEXT, AT(advertise), "HOST:PORT",
     "How events name this server; by default the address that it listens on."},
    {"--log", CLI_FILE, AT(log), "FILE", "Append a line of JSON for each request; - is stderr. Texts are left out."},
    {"--log-texts", CLI_FLAG, AT(log_texts), NULL, "What was asked and answered goes to the log, too."},
    {"--chat-template, --template, --chat-template-file", CLI_FILE, AT(template), "NAME|FILE",
     "The first model's chat template, in place of its own: chatml, llama3, ... or a file."},
    {"--no-tool-fallback", CLI_FLAG, AT(no_tool_fallback), NULL,
     "Refuse tools where the model's chat template has none, rather than describe them in the system message."},
    {"--allow-pull", CLI_FLAG, AT(allow_pull), NULL,
     "Serve pulled models by their names, and let requests with a key pull, copy and delete them (Ollama's /api)."},
    {"--no-sandbox", CLI_FLAG, AT(no_sandbox), NULL, "Keep the rights to open files and connections after the start."},
    {"--cors", CLI_TEXT, AT(cors), "ORIGIN", "Let pages from there use the server; none may without this."},
    {0},
};

static const cli_option model_options[] = {
    {"-m, --model, -hf, -hfr, --hf-repo", CLI_REPEAT, AT(models), "[NAME=]FILE",
     "A model: an .ndf, a source that is converted into the cache, or a pulled one's name; tales, the built-in one, "
     "without this. May be given again: the first is open from the start, others at their first request."},
    {"--family", CLI_FILE, AT(family), "FILE",
     "The first model's forward pass, a program of the array language, instead of its family's own."},
    {"--override-kv", CLI_REPEAT, AT(overrides), "KEY=TYPE:VALUE",
     "Set a key of the first model's GGUF file; TYPE is int, float, bool or str."},
    {"--no-cache", CLI_FLAG, AT(no_cache), NULL, "Convert a source in memory and write nothing; for one model only."},
    {0},
};

/* 1 after SIGHUP: files of models and keys that were replaced are to be opened again */
static atomic_int reloading;
/* 1: the server ends once the time of --drain is over and all requests are answered; 2: it ends immediately */
static atomic_int ending;

static void on_signal(int signal)
{
    (void)signal;
    if (ending < 2) ending++;
}

static void on_hangup(int signal)
{
    (void)signal;
    reloading = 1;
}

/* Data for the messages that are printed once the server listens. */
struct ready_view {
    const whit_server_options *options;
    uint32_t n_trained;     /* trained context of the first model, in tokens; a request may close the model */
    const bool *is_textual; /* for each model, whether it has no chat template and is not an embedding model */
    char network[48];       /* this machine's address in its network; "": not found, or the server listens on one
                             * address */
};

/* If the server listens on all addresses, prints the address by which other devices reach it, because they cannot open
 * 0.0.0.0. */
static void tell_network(const struct ready_view *view, const char *address)
{
    const whit_server_options *o = view->options;
    const char *port = strrchr(address, ':');
    const bool is_open = !o->n_keys && !o->key_file && !o->key_table;
    if (!view->network[0] || !port) return;
    fprintf(stderr, "whit: other devices in this network open http://%s%s%s\n", view->network, port,
            is_open ? ", and may all ask (--api-key KEY wants a key)" : "");
}

/* Warns about requests that are refused or answered badly: chats with a model that has no template, and texts beyond
 * the trained context. */
static void remark_models(const struct ready_view *view)
{
    const whit_server_options *o = view->options;
    cli_remark_context(view->n_trained, o->n_ctx_tokens);
    for (size_t i = 0; i < o->n_models; i++)
        if (view->is_textual[i] && (i || !o->chat_template))
            cli_note("%s has no chat template: it continues texts at /v1/completions, and chats are refused%s",
                     o->models[i].name, i ? "" : " (--chat-template NAME gives it a template)");
}

static void ready(void *user, const char *address, size_t n_bytes)
{
    const struct ready_view *view = user;
    const whit_server_options *o = view->options;
    char size[32];
    fprintf(stderr, "whit: serving %s", o->models[0].name);
    for (size_t i = 1; i < o->n_models; i++) fprintf(stderr, ", %s", o->models[i].name);
    fprintf(stderr, " at %s (%u at once%s); Ctrl-C ends it\n", address, o->n_parallel,
            o->socket_path ? "" : "; open it in a browser to chat");
    fprintf(stderr, "whit: the first model takes up to %s, its file included; -np and -c change it\n",
            cli_bytes(n_bytes, size));
    tell_network(view, address);
    remark_models(view);
}

static void confined(void *user, const char *why_not)
{
    (void)user;
    if (why_not)
        fprintf(stderr, "whit: no sandbox: %s\n", why_not);
    else
        fprintf(stderr,
                "whit: in a sandbox: no connections, no programs, and of files its models' folders alone (--no-sandbox "
                "switches it off)\n");
}

/* ---- models and adapters ------------------------------------------------------------------------- */

/* Returns the last part of a file's path, since replies must not reveal folders. The name of a pulled model, which is
 * not a path, is returned unchanged. The caller frees the result; NULL if memory runs out. */
static char *base_of(const char *path)
{
    size_t n = strlen(path), begin;
    if (!whit_path_exists(path)) return strdup(path);
    while (n > 1 && path[n - 1] == '/') n--;
    for (begin = n; begin && path[begin - 1] != '/'; begin--) {
    }
    return n > begin ? strndup(path + begin, n - begin) : strdup(path);
}

/* Splits "NAME=PATH": returns the name, which the caller frees, and sets *path to the part of `text` after "=". Without
 * "NAME=", the name is that of the file. Returns NULL if memory runs out. */
static char *name_of(const char *text, const char **path)
{
    size_t n = strcspn(text, "=/");
    *path = text[n] == '=' && n ? text + n + 1 : text;
    return *path == text ? base_of(text) : strndup(text, n);
}

/* Returns whether a name is UTF-8, as it must be because each reply contains a model's name and JSON is UTF-8. */
static bool is_utf8(const char *name)
{
    size_t n = strlen(name);
    return whit_utf8_valid_bytes((const uint8_t *)name, n) == n;
}

/* The served models and adapters. free_served closes the models and frees the arrays and the names. */
struct served {
    whit_server_model *models;
    char (*paths)[CLI_PATH_BYTES];
    size_t n_models;
    whit_server_adapter *adapters;
    size_t n_adapters;
    cli_text family;    /* program of the first model's family; data NULL: not given */
    cli_list overrides; /* metadata that is set in the first model; the strings belong to the call */
    cli_text template;
    whit_model *drafter; /* separate draft model of the first model, or NULL */
    bool *is_textual;    /* for each model, whether it has no chat template and is not an embedding model */
    bool no_cache;
};

static whit_status open_again(void *user, const char *path, whit_model **model, whit_error *error)
{
    const struct served *served = user;
    whit_model_options wanted = whit_model_options_default();
    if (cli_under_mpirun())
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "several machines open a model only once: restart the server");
    if (!path) return cli_tales_open(model, error);
    wanted.no_cache = served->no_cache;
    if (path == served->models[0].path) {
        wanted.family_program = served->family.data;
        wanted.overrides = served->overrides.items;
        wanted.n_overrides = served->overrides.n;
    }
    return whit_model_open(path, &wanted, model, error);
}

static void free_served(struct served *served)
{
    for (size_t i = 0; i < served->n_models; i++) {
        whit_model_close(served->models[i].model);
        free((char *)served->models[i].name);
        free((char *)served->models[i].file);
    }
    for (size_t i = 0; i < served->n_adapters; i++) free((char *)served->adapters[i].name);
    whit_model_close(served->drafter);
    free(served->family.data);
    free(served->template.data);
    free(served->models);
    free(served->paths);
    free(served->is_textual);
    free(served->adapters);
}

static bool has_no_template(const whit_model *model)
{
    return !cli_model_template(model) && whit_model_pooling(model) == WHIT_POOLING_OWN;
}

static int open_model(cli_call *call, const struct serve_values *values, const char *text, struct served *served)
{
    whit_server_model *model = &served->models[served->n_models];
    char *found = served->paths[served->n_models];
    const char *path = NULL, *file;
    const void *address;
    size_t n_bytes;
    whit_error error;
    model->name = text ? name_of(text, &path) : strdup(CLI_TALES_NAME);
    served->n_models++;
    if (!model->name) return cli_fail(call, CLI_LIMIT, "not enough memory for the name of a model");
    bool has_alias = values->alias && served->n_models == 1;
    if (!has_alias && !is_utf8(model->name))
        return cli_fail(call, CLI_USAGE, "the file's name is not UTF-8; give the model a name: -m NAME=FILE");
    for (size_t i = 0; i + 1 < served->n_models; i++)
        if (!strcmp(served->models[i].name, model->name))
            return cli_fail(call, CLI_USAGE, "two models are called %s; give each its own name: -m NAME=FILE",
                            model->name);
    cli_model_flags flags = {.path = path, .no_cache = values->no_cache, .announces = true};
    if (served->n_models == 1) {
        flags.family = values->family;
        flags.overrides = values->overrides;
    }
    int status = cli_open_flagged_model(call, &flags, &model->model);
    if (status == CLI_OK) served->is_textual[served->n_models - 1] = has_no_template(model->model);
    if (status != CLI_OK || cli_is_tales(path)) return status;
    if (cli_find_model(path, found, &error) != WHIT_OK) return cli_fail_error(call, &error);
    model->path = found;
    if (whit_model_mapping(model->model, 0, &address, &n_bytes, &file) && file) {
        model->file = strdup(file);
        model->is_converted = strcmp(file, found) != 0;
    }
    return CLI_OK;
}

static int open_served(cli_call *call, const struct serve_values *values, struct served *served)
{
    size_t n = values->models.n ? values->models.n : 1;
    served->models = calloc(n, sizeof *served->models);
    served->paths = calloc(n, sizeof *served->paths);
    served->adapters = calloc(values->adapters.n + 1, sizeof *served->adapters);
    served->is_textual = calloc(n, sizeof *served->is_textual);
    if (!served->models || !served->paths || !served->adapters || !served->is_textual)
        return cli_fail(call, CLI_LIMIT, "not enough memory for the list of models");
    served->no_cache = values->no_cache;
    served->overrides = values->overrides;
    if (values->family) {
        int status = cli_read_family(call, values->family, &served->family);
        if (status != CLI_OK) return status;
    }
    if (values->template) {
        int status = cli_read_template(call, values->template, &served->template);
        if (status != CLI_OK) return status;
    }
    if (values->alias && !is_utf8(values->alias)) return cli_fail(call, CLI_USAGE, "--alias: the name is not UTF-8");
    if (values->no_cache && n > 1)
        return cli_fail(call, CLI_USAGE, "--no-cache works with one model only: leave out the others or --no-cache");
    for (size_t i = 0; i < n; i++) {
        int status = open_model(call, values, values->models.n ? values->models.items[i] : NULL, served);
        if (status != CLI_OK) return status;
    }
    if (values->alias) {
        for (size_t i = 1; i < n; i++)
            if (!strcmp(served->models[i].name, values->alias))
                return cli_fail(call, CLI_USAGE, "--alias: another model is called %s already", values->alias);
        free((char *)served->models[0].name);
        served->models[0].name = strdup(values->alias);
        if (!served->models[0].name) return cli_fail(call, CLI_LIMIT, "not enough memory for --alias");
    }
    for (size_t i = 0; i < values->adapters.n; i++) {
        whit_server_adapter *adapter = &served->adapters[served->n_adapters++];
        adapter->name = name_of(values->adapters.items[i], &adapter->path);
        if (!adapter->name) return cli_fail(call, CLI_LIMIT, "not enough memory for the name of an adapter");
        if (!is_utf8(adapter->name))
            return cli_fail(call, CLI_USAGE,
                            "the file's name is not UTF-8; give the adapter a name: --adapter NAME=FILE");
        bool is_taken = false;
        for (size_t k = 0; k < i; k++) is_taken |= !strcmp(served->adapters[k].name, adapter->name);
        for (size_t k = 0; k < n; k++) is_taken |= !strcmp(served->models[k].name, adapter->name);
        if (is_taken)
            return cli_fail(call, CLI_USAGE,
                            "another model or adapter is called %s; name this adapter: --adapter NAME=FILE",
                            adapter->name);
    }
    return CLI_OK;
}

/* ---- the store of pulled models ------------------------------------------------------------------ */

struct pull_progress {
    bool (*tell)(void *user, const char *file, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
};

static bool tell_progress(void *user, const whit_hub_progress *progress)
{
    const struct pull_progress *p = user;
    return p->tell(p->user, progress->file, progress->done_bytes, progress->total_bytes);
}

static whit_status store_pull(void *user, const char *text,
                              bool (*progress)(void *user, const char *file, uint64_t done, uint64_t total),
                              void *progress_user, whit_error *error)
{
    char endpoint[WHIT_HUB_ENDPOINT_BYTES], token[WHIT_HUB_TOKEN_BYTES];
    const char *from;
    struct pull_progress telling = {progress, progress_user};
    const whit_hub_pull_options pull = {
        .endpoint = endpoint, .token = token, .progress = tell_progress, .user = &telling};
    whit_hub_pulled pulled;
    whit_hub_name name;
    (void)user;
    WHIT_TRY(whit_hub_name_parse(text, &name, error));
    WHIT_TRY(whit_hub_endpoint(endpoint, error));
    WHIT_TRY(whit_hub_token(NULL, token, &from, error));
    return whit_hub_pull(&name, &pull, &pulled, error);
}

static whit_status store_copy(void *user, const char *from, const char *to, whit_error *error)
{
    (void)user;
    return whit_hub_store_copy(NULL, from, to, error);
}

static whit_status store_remove(void *user, const char *name, whit_error *error)
{
    const struct served *served = user;
    whit_hub_removed removed;
    for (size_t i = 0; i < served->n_models; i++)
        if (served->models[i].path && whit_hub_store_would_remove(NULL, name, served->models[i].path))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: the server was started with this model, so it stays",
                             name);
    return whit_hub_store_remove(NULL, name, &removed, error);
}

static whit_status store_find(void *user, const char *name, char **path, whit_error *error)
{
    char found[WHIT_CACHE_PATH_BYTES];
    (void)user;
    WHIT_TRY(whit_hub_store_path(NULL, name, found, error));
    *path = strdup(found);
    return *path ? WHIT_OK : whit_fail_memory(error, "a path", strlen(found));
}

/* Returns whether a model that has a block for predicting one more token uses this block to draft. */
static bool drafts_by_block(const struct serve_values *values)
{
    const char *draft = values->session.draft;
    return draft ? strcmp(draft, "none") != 0 : values->n_draft == WHIT_DRAFT_BY_COST;
}

/* Under mpirun, makes all ranks run the served model, which must be the only one. The server then runs without a
 * sandbox, since OpenMPI opens connections and shared memory during the run. Returns CLI_OK, or an exit status after a
 * message. */
static int split_served(cli_call *call, const struct serve_values *values, struct served *served)
{
    if (!cli_under_mpirun()) return CLI_OK;
    if (served->n_models > 1 || served->n_adapters || values->cache_dir)
        return cli_fail(call, CLI_USAGE, "several machines can serve only one model, without adapters and --cache-dir");
    const int status = cli_split_model(call, served->models->model);
    if (status == CLI_OK && !values->no_sandbox)
        cli_note("OpenMPI needs the network: the server runs without a sandbox");
    return status;
}

/* Returns an environment variable that asks for keys and has only blanks, or NULL. A script whose own variable is empty
 * would otherwise start a server without a key. */
static const char *find_blank_key(void)
{
    static const char *const names[] = {"WHIT_API_KEY", "WHIT_API_KEY_FILE", "WHIT_KEYS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && !value[strspn(value, " \t\r\n")]) return names[i];
    }
    return NULL;
}

static int run_serve(cli_call *call)
{
    struct serve_values *values = call->values;
    struct served served = {.n_models = 0};
    whit_error error;
    if (!whit_server_library())
        return cli_fail(call, CLI_REFUSED,
                        "libmicrohttpd (libmicrohttpd.so.12) is not on this machine or not in this build, so whit "
                        "cannot serve: install libmicrohttpd12");
    if (values->adapters.n > WHIT_SERVER_MOST_ADAPTERS)
        return cli_fail(call, CLI_LIMIT, "--adapter: at most %d adapters are possible", WHIT_SERVER_MOST_ADAPTERS);
    char folder[WHIT_CACHE_PATH_BYTES];
    const whit_server_store store = {.pull = store_pull,
                                     .copy = store_copy,
                                     .remove = store_remove,
                                     .find = store_find,
                                     .folder = folder,
                                     .user = &served};
    const bool is_open = !values->key_file && !values->key_table && !values->keys.n;
    const char *blank = is_open ? find_blank_key() : NULL;
    if (blank)
        return cli_fail(call, CLI_USAGE,
                        "%s is set but names no key, so everybody could ask: give it a value or unset it", blank);
    if (values->allow_pull && is_open)
        return cli_fail(call, CLI_USAGE, "--allow-pull needs a key for requests: --api-key-file FILE");
    if (values->allow_pull && whit_cache_folder(NULL, folder, &error) != WHIT_OK) return cli_fail_error(call, &error);
    int status = open_served(call, values, &served);
    if (status == CLI_OK) status = split_served(call, values, &served);
    if (status != CLI_OK) {
        free_served(&served);
        return status;
    }
    const whit_model *drafter = NULL;
    if (served.models[0].model)
        status = cli_choose_drafter(call, &values->session, values->n_draft, served.models[0].model, &drafter,
                                    &served.drafter);
    if (status != CLI_OK) {
        free_served(&served);
        return status;
    }
    served.models[0].drafter = served.drafter;
    whit_session_options session = cli_session_wanted(&values->session, WHIT_ACT_I8);
    const uint32_t tuned_batch = cli_profile_in_use()->values[CLI_TUNED_BATCH];
    const uint32_t n_batch = values->session.n_batch ? values->session.n_batch : tuned_batch;
    const uint64_t most = (uint64_t)values->max_memory_mb << 20;
    if (most && !values->session.state_memory_mb && session.state_bytes > most / 8) session.state_bytes = most / 8;
    whit_server_options wanted = {.host = values->host,
                                  .port = values->port,
                                  .socket_path = values->socket_path,
                                  .models = served.models,
                                  .n_models = served.n_models,
                                  .adapters = served.adapters,
                                  .n_adapters = served.n_adapters,
                                  .open_model = open_again,
                                  .open_user = &served,
                                  .max_memory_mb = values->max_memory_mb,
                                  .request_memory_mb = values->request_memory_mb,
                                  .key_file = values->key_file,
                                  .key_table = values->key_table,
                                  .keys = values->keys.items,
                                  .n_keys = values->keys.n,
                                  .cors_origin = values->cors,
                                  .store = values->allow_pull ? &store : NULL,
                                  .log_path = values->log,
                                  .log_texts = values->log_texts,
                                  .is_unconfined = values->no_sandbox || cli_under_mpirun(),
                                  .confined = confined,
                                  .n_parallel = values->n_parallel,
                                  .n_queue = values->n_queue,
                                  .n_threads = session.n_threads,
                                  .n_ctx_tokens = session.n_ctx_tokens,
                                  .timeout_s = values->timeout_s,
                                  .drain_s = values->drain_s,
                                  .kv = session.kv,
                                  .n_kv_window = session.n_kv_window,
                                  .state_bytes = session.state_bytes,
                                  .expert_bytes = (uint64_t)values->session.experts_memory_mb << 20,
                                  .act = session.act,
                                  .n_batch_tokens = n_batch,
                                  .step_budget_ms = values->step_budget_ms,
                                  .n_draft_tokens = values->n_draft,
                                  .has_draft_blocks = drafts_by_block(values),
                                  .exact_head = session.exact_head,
                                  .no_tool_fallback = values->no_tool_fallback,
                                  .chat_template = served.template.data,
                                  .chat_template_name = values->template,
                                  .drawn = whit_sampler_drawn,
                                  .cache_dir = values->cache_dir,
                                  .kv_events = values->kv_events,
                                  .kv_replay = values->kv_replay,
                                  .advertise = values->advertise};
    struct sigaction action = {.sa_handler = on_signal}, hangup = {.sa_handler = on_hangup}, before[3];
    sigaction(SIGINT, &action, &before[0]);
    sigaction(SIGTERM, &action, &before[1]);
    sigaction(SIGHUP, &hangup, &before[2]);
    signal(SIGPIPE, SIG_IGN);
    if (*cli_cancelled()) ending = 1; /* a signal arrived while the models were being opened */
    struct ready_view view = {&wanted, whit_model_context_size(served.models[0].model), served.is_textual, ""};
    const bool is_any = !values->socket_path && (!strcmp(values->host, "0.0.0.0") || !strcmp(values->host, "::"));
    if (is_any && !whit_find_network_address(view.network, sizeof view.network)) view.network[0] = 0;
    if (whit_server_run(&wanted, &ending, &reloading, ready, &view, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    sigaction(SIGHUP, &before[2], NULL);
    /* The server has taken ownership of the models. */
    for (size_t i = 0; i < served.n_models; i++) served.models[i].model = NULL;
    free_served(&served);
    return status;
}

const cli_verb cli_serve_verb = {
    "serve",
    "",
    0,
    0,
    "serve models over HTTP",
    "Answers requests as OpenAI's API has them (/v1/chat/completions with tools and schemas, /v1/completions, "
    "/v1/embeddings, /v1/responses, /v1/models), as Anthropic's (/v1/messages), Google's (/v1beta/models), Ollama's "
    "(/api/chat and others) and llama.cpp's (/completion, /infill); and /health, /metrics, /props, /slots, /tokenize, "
    "/detokenize, "
    "/apply-template; a chat page is at /. Several requests are worked on at once, and each gets the answer that it "
    "would get alone. Several models may be served, and adapters that requests ask for. SIGHUP takes model files that "
    "were replaced, and reads key files again. Every option may come from a variable instead, by its long name "
    "(WHIT_PORT for --port, WHIT_CTX_SIZE for -c); the option wins. SIGTERM lets what runs end; a second one ends it.\n"
    "  whit serve -m model.gguf --port 8080\n"
    "  whit serve -m small=a.gguf -m large=b.ndf --max-memory 4000 --cache-dir kept\n"
    "  curl localhost:8080/v1/completions -d '{\"prompt\": \"Once upon a time\"}'",
    {{"OPTIONS", options, 0}, {"MODEL", model_options, 0}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct serve_values),
    &defaults,
    run_serve,
    true,
    .usual = "-m, --host, --port, -np, -c",
};
