/* SPDX-License-Identifier: MIT
 * whit serve: a model over HTTP. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"
#include "cli/verbs.h"
#include "server/server.h"

struct serve_values {
    const char *host, *socket_path, *key_file, *cors, *alias, *log;
    bool log_texts, no_sandbox;
    uint32_t port, n_parallel, n_queue, timeout_s;
    cli_model_flags model;
    cli_session_flags session;
};
static const struct serve_values defaults = {.host = "127.0.0.1", .port = 8080, .n_parallel = 4, .n_queue = 256};

#define AT(member) offsetof(struct serve_values, member)
static const cli_option options[] = {
    {"--host", CLI_TEXT, AT(host), "ADDRESS", "Where to listen; 127.0.0.1, this machine alone."},
    {"--port", CLI_COUNT, AT(port), "N", "The port; 8080, 0 is any that is free.", 0, 65535},
    {"--socket", CLI_FILE, AT(socket_path), "PATH", "Listen on a Unix socket instead."},
    {"-np, --parallel", CLI_COUNT, AT(n_parallel), "N", "Requests at work at once, each with its own context; 4.", 1,
     256},
    {"--queue", CLI_COUNT, AT(n_queue), "N", "Requests that may wait; beyond, they are answered 503; 256.", 0, 65536},
    {"--timeout", CLI_COUNT, AT(timeout_s), "S", "Seconds that an answer may take; 0, the default, is no limit.", 0,
     1 << 20},
    {"--alias", CLI_TEXT, AT(alias), "NAME", "What the model is called in replies; the name given with -m."},
    {"--api-key-file", CLI_FILE, AT(key_file), "FILE", "Ask for one of these keys, one a line."},
    {"--log", CLI_FILE, AT(log), "FILE", "Append a line of JSON for each request; - is stderr. Texts are left out."},
    {"--log-texts", CLI_FLAG, AT(log_texts), NULL, "What was asked and answered goes to the log, too."},
    {"--no-sandbox", CLI_FLAG, AT(no_sandbox), NULL, "Keep the rights to open files and connections after the start."},
    {"--cors", CLI_TEXT, AT(cors), "ORIGIN", "Let pages from there use the server; none may without this."},
    {0},
};

static volatile int ending; /* 1: end when all is answered; 2: now */

static void on_signal(int signal)
{
    (void)signal;
    if (ending < 2) ending++;
}

static void ready(void *user, const char *address)
{
    const whit_server_options *o = user;
    fprintf(stderr, "whit: serving %s at %s (%u at once%s); Ctrl-C ends it\n", o->model_name, address, o->n_parallel,
            o->socket_path ? "" : "; open it in a browser to chat");
}

static void confined(void *user, const char *why_not)
{
    (void)user;
    if (why_not)
        fprintf(stderr, "whit: no sandbox: %s\n", why_not);
    else
        fprintf(stderr, "whit: in a sandbox: no more files, connections or programs (--no-sandbox switches it off)\n");
}

/* What no flag gave may come from the environment. */
static bool from_environment(struct serve_values *values)
{
    const struct {
        const char *name, **text;
        const char *usual;
    } texts[] = {{"WHIT_HOST", &values->host, defaults.host},
                 {"WHIT_SOCKET", &values->socket_path, NULL},
                 {"WHIT_API_KEY_FILE", &values->key_file, NULL},
                 {"WHIT_CORS", &values->cors, NULL},
                 {"WHIT_ALIAS", &values->alias, NULL},
                 {"WHIT_MODEL", &values->model.path, NULL},
                 {"WHIT_LOG", &values->log, NULL}};
    const struct {
        const char *name;
        uint32_t *value, usual, max;
    } counts[] = {{"WHIT_PORT", &values->port, defaults.port, 65535},
                  {"WHIT_PARALLEL", &values->n_parallel, defaults.n_parallel, 256},
                  {"WHIT_QUEUE", &values->n_queue, defaults.n_queue, 65536},
                  {"WHIT_TIMEOUT", &values->timeout_s, 0, 1 << 20},
                  {"WHIT_CTX_SIZE", &values->session.n_ctx, 0, 1 << 30},
                  {"WHIT_THREADS", &values->session.n_threads, 0, 1024}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = getenv(texts[i].name);
        if (text && *text && *texts[i].text == texts[i].usual) *texts[i].text = text;
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const char *text = getenv(counts[i].name);
        char *end;
        if (!text || !*text || *counts[i].value != counts[i].usual) continue;
        unsigned long value = strtoul(text, &end, 10);
        if (*end || value > counts[i].max) return false;
        *counts[i].value = (uint32_t)value;
    }
    const struct {
        const char *name;
        bool *value;
    } switches[] = {{"WHIT_LOG_TEXTS", &values->log_texts}, {"WHIT_NO_SANDBOX", &values->no_sandbox}};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        const char *text = getenv(switches[i].name);
        if (text && *text && strcmp(text, "0") != 0) *switches[i].value = true;
    }
    return values->n_parallel > 0;
}

static int run(cli_call *call)
{
    struct serve_values *values = call->values;
    whit_model *model = NULL;
    whit_error error;
    if (!whit_server_library())
        return cli_fail(call, CLI_REFUSED,
                        "libmicrohttpd (libmicrohttpd.so.12) is not on this machine or not in this build, so it cannot "
                        "serve");
    if (!from_environment(values)) return cli_fail(call, CLI_USAGE, "a WHIT_ variable is not a number in its bounds");
    int status = cli_open_flagged_model(call, &values->model, &model);
    if (status != CLI_OK) return status;
    whit_session_options session = cli_session_wanted(&values->session, WHIT_ACT_I8);
    whit_server_options wanted = {.host = values->host,
                                  .port = values->port,
                                  .socket_path = values->socket_path,
                                  .model_name = values->alias ? values->alias : cli_model_name(&values->model),
                                  .key_file = values->key_file,
                                  .cors_origin = values->cors,
                                  .log_path = values->log,
                                  .log_texts = values->log_texts,
                                  .is_unconfined = values->no_sandbox,
                                  .confined = confined,
                                  .n_parallel = values->n_parallel,
                                  .n_queue = values->n_queue ? values->n_queue : 1,
                                  .n_threads = session.n_threads,
                                  .n_ctx_tokens = session.n_ctx_tokens,
                                  .timeout_s = values->timeout_s,
                                  .kv = session.kv,
                                  .n_kv_window = session.n_kv_window};
    struct sigaction action = {.sa_handler = on_signal}, before[2];
    sigaction(SIGINT, &action, &before[0]);
    sigaction(SIGTERM, &action, &before[1]);
    signal(SIGPIPE, SIG_IGN);
    if (whit_server_run(model, &wanted, &ending, ready, &wanted, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    whit_model_close(model);
    return status;
}

const cli_verb cli_serve_verb = {
    "serve",
    "",
    0,
    0,
    "serve a model over HTTP",
    "Answers requests as OpenAI's API has them: /v1/chat/completions, /v1/completions, /v1/models; and /health, "
    "/metrics, /props, /slots, /tokenize, /detokenize, /apply-template. Several requests are worked on at once, and "
    "each "
    "gets the answer that it would get alone. Every option of OPTIONS, -m, -c and -t may come from a variable instead "
    "(WHIT_PORT for --port); the option wins. SIGTERM lets what runs end; a second one ends it.\n"
    "  whit serve -m model.gguf --port 8080\n"
    "  curl localhost:8080/v1/completions -d '{\"prompt\": \"Once upon a time\"}'",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct serve_values),
    &defaults,
    run,
};
