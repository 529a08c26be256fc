/* SPDX-License-Identifier: MIT
 * Makes the inside of a server for fuzz targets, with two small models, one of them with tools. */
#ifndef WHIT_TESTS_FUZZ_SERVER_SITE_H
#define WHIT_TESTS_FUZZ_SERVER_SITE_H

#include <stdlib.h>
#include <unistd.h>

#include "server/models.h"
#include "tiny_model.h"

#define TOOLS_TEMPLATE                                                                                                 \
    "{# <tool_call> #}{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"   \
    "{% if tools %}{% for t in tools %}{{ t.function.name }}{% endfor %}{% endif %}"                                   \
    "{% if add_generation_prompt %}assistant:{% endif %}"

static atomic_int stop;
static whit_site site;
static whit_server_model models[2];
static char folder[] = "/tmp/whit-fuzz-XXXXXX";

static void close_site(void)
{
    char command[64];
    whit_models_close(&site);
    whit_site_close(&site);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) abort();
}

static whit_status open_again(void *user, const char *path, whit_model **model, whit_error *error)
{
    whit_model_options options = whit_model_options_default();
    (void)user;
    options.no_cache = true;
    return whit_model_open(path, &options, model, error);
}

static whit_server_options wanted = {.models = models,
                                     .n_models = 2,
                                     .open_model = open_again,
                                     .n_parallel = 8,
                                     .n_threads = 1,
                                     .n_ctx_tokens = 96,
                                     .n_queue = 64,
                                     .is_unconfined = true,
                                     .cors_origin = "https://friend.invalid"};

static void open_site(void)
{
    static char paths[2][64];
    whit_error error;
    if (!mkdtemp(folder)) abort();
    for (int i = 0; i < 2; i++) {
        tiny_model tiny = tiny_model_default();
        tiny.chat_template = i ? TOOLS_TEMPLATE : TINY_TEMPLATE;
        snprintf(paths[i], sizeof paths[i], "%s/%d.gguf", folder, i);
        models[i] = (whit_server_model){.name = i ? "tools" : "plain", .path = paths[i]};
        if (!tiny_model_write(&tiny, paths[i])) abort();
        if (open_again(NULL, paths[i], &models[i].model, &error) != WHIT_OK) abort();
    }
    site =
        (whit_site){.options = &wanted, .stop = &stop, .log = {.fd = -1}, .store_fd = -1, .key_fd = -1, .keep_fd = -1};
    if (whit_models_open(&site, &error) != WHIT_OK || whit_site_open(&site, &error) != WHIT_OK ||
        whit_models_start(&site, &error) != WHIT_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    atexit(close_site);
}

#endif
