/* SPDX-License-Identifier: MIT
 * whit serve: a model over HTTP. */
#include <signal.h>
#include <stdio.h>
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

static int run(cli_call *call)
{
    struct serve_values *values = call->values;
    whit_model *model = NULL;
    whit_error error;
    if (!whit_server_library())
        return cli_fail(call, CLI_REFUSED,
                        "libmicrohttpd (libmicrohttpd.so.12) is not on this machine or not in this build, so it cannot "
                        "serve");
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
    "gets the answer that it would get alone. Every option may come from a variable instead, by its long name "
    "(WHIT_PORT for --port, WHIT_CTX_SIZE for -c); the option wins. SIGTERM lets what runs end; a second one ends it.\n"
    "  whit serve -m model.gguf --port 8080\n"
    "  curl localhost:8080/v1/completions -d '{\"prompt\": \"Once upon a time\"}'",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct serve_values),
    &defaults,
    run,
    true,
};
