/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"
#include "cli/agent.h"
#include "cli/edit_agent.h"
#include "cli/names.h"

#include "base/clock.h"
#include "base/items.h"
#include "base/status.h"

struct cli_edit_wish cli_edit_wish_of(const struct cli_edit_wish *line, const whit_panel_wish *settings)
{
    bool named = line->model || line->url;
    const char *url;
    if (named)
        url = line->url;
    else if (settings->model)
        url = NULL;
    else
        url = settings->url;
    return (struct cli_edit_wish){named ? line->model : settings->model, url, line->name ? line->name : settings->name,
                                  line->key_file ? line->key_file : settings->key_file};
}

static whit_status open_remote(struct cli_edit_model *m, const struct cli_edit_wish *wish, const volatile bool *cancel,
                               whit_error *error)
{
    WHIT_TRY(cli_agent_key(wish->key_file, &m->key, error));
    whit_endpoint_options at = {.url = wish->url, .key = whit_chars(&m->key), .cancel = cancel};
    WHIT_TRY(whit_endpoint_open(&at, &m->endpoint, error));
    m->remote.endpoint = m->endpoint;
    m->remote.name = wish->name;
    m->answering = whit_remote_as_model(&m->remote);
    return WHIT_OK;
}

static whit_status open_local(struct cli_edit_model *m, const struct cli_edit_wish *wish, const volatile bool *cancel,
                              const whit_local_options *options, whit_error *error)
{
    char found[CLI_PATH_BYTES];
    whit_model_options how = whit_model_options_default();
    whit_session_options wanted = whit_session_options_default();
    WHIT_TRY(cli_find_model(wish->model, found, error));
    WHIT_TRY(whit_model_open(found, &how, &m->model, error));
    wanted.act = WHIT_ACT_I8;
    wanted.cpu = getenv("WHIT_CPU");
    wanted.cancel = cancel;
    WHIT_TRY(whit_session_open(m->model, &wanted, &m->session, error));
    WHIT_TRY(whit_local_open(m->model, m->session, 0, options, &m->local, error));
    m->answering = whit_local_as_model(m->local);
    return WHIT_OK;
}

whit_status cli_edit_model_open(struct cli_edit_model *m, const struct cli_edit_wish *wish, const volatile bool *cancel,
                                void (*on_text)(void *user, const char *text, size_t n_bytes), void *user,
                                whit_error *error)
{
    if (m->is_open) return WHIT_OK;
    if (!wish->model && !wish->url)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "which model? start with -m MODEL or --url URL, or set model or model_url in edit.conf");
    whit_local_options options = {.on_text = on_text, .user = user};
    m->remote = (whit_remote_model){.on_text = on_text, .user = user};
    whit_status status =
        wish->model ? open_local(m, wish, cancel, &options, error) : open_remote(m, wish, cancel, error);
    m->is_open = status == WHIT_OK;
    if (status != WHIT_OK) cli_edit_model_close(m);
    return status;
}

void cli_edit_model_close(struct cli_edit_model *m)
{
    whit_local_close(m->local);
    whit_session_close(m->session);
    whit_model_close(m->model);
    whit_endpoint_close(m->endpoint);
    whit_buf_free(&m->key);
    *m = (struct cli_edit_model){0};
}
