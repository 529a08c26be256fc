/* SPDX-License-Identifier: MIT */
#include "assistant/answering_model.h"

#include "agent/guard.h"
#include "agent/light.h"
#include "base/clock.h"
#include "base/items.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

whit_panel_wish whit_assistant_wish_of(const whit_panel_wish *line, const whit_panel_wish *settings)
{
    if (line->model || line->url) return *line;
    return (whit_panel_wish){settings->model, settings->model ? NULL : settings->url,
                             line->name ? line->name : settings->name,
                             line->key_file ? line->key_file : settings->key_file};
}

bool whit_assistant_is_secret(const char *path, const char *name, const char *around, size_t around_bytes)
{
    const bool is_named = path && (whit_guard_is_secret(path) || whit_guard_is_secret(name));
    /* a path of Windows is compared by its names alone */
    const bool is_own = path && path[0] == '/' && path[1] && whit_light_secret_file(path);
    return is_named || is_own || whit_guard_has_key(around, around_bytes);
}

static whit_status open_remote(whit_answering_model *m, const whit_panel_wish *wish, const whit_answering_calls *calls,
                               whit_error *error)
{
    if (!m->found.hides_key || wish->key_file) WHIT_TRY(whit_agent_key(wish->key_file, &m->key, error));
    if (!m->key.size_bytes && !whit_buf_append(&m->key, "", 1)) return whit_fail_memory(error, "a key", 1);
    whit_endpoint_options at = {.url = wish->url,
                                .key = whit_chars(&m->key),
                                .cancel = calls->cancel,
                                .check_receiver = m->found.url ? whit_found_server_check : NULL,
                                .receiver = &m->found};
    WHIT_TRY(whit_endpoint_open(&at, &m->endpoint, error));
    m->remote = (whit_remote_model){
        .endpoint = m->endpoint, .name = wish->name, .on_text = calls->on_text, .user = calls->user};
    m->answering = whit_remote_as_model(&m->remote);
    return WHIT_OK;
}

static whit_status open_local(whit_answering_model *m, const whit_panel_wish *wish, const whit_answering_calls *calls,
                              whit_error *error)
{
    char found[WHIT_CACHE_PATH_BYTES];
    whit_model_options how = whit_model_options_default();
    whit_session_options wanted = whit_session_options_default();
    const whit_local_options options = {.on_text = calls->on_text, .user = calls->user};
    WHIT_TRY(calls->find_model(wish->model, found, error));
    WHIT_TRY(whit_model_open(found, &how, &m->model, error));
    wanted.act = WHIT_ACT_I8;
    wanted.cpu = getenv("WHIT_CPU");
    wanted.cancel = calls->cancel;
    WHIT_TRY(whit_session_open(m->model, &wanted, &m->session, error));
    WHIT_TRY(whit_local_open(m->model, m->session, 0, &options, &m->local, error));
    m->answering = whit_local_as_model(m->local);
    return WHIT_OK;
}

/* Looks for a server on this machine, and sets the wish's url and name to those of the server and its model. */
static whit_status find_server(whit_answering_model *m, whit_panel_wish *wish, const whit_answering_calls *calls,
                               whit_error *error)
{
    whit_error why;
    const whit_status status = whit_find_server(wish->name, &m->found, &why);
    const char *at = whit_chars(&m->found.notes), *end = at + m->found.notes.size_bytes;
    for (const char *feed; at < end && (feed = memchr(at, '\n', (size_t)(end - at))); at = feed + 1) {
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)(feed - at), at);
        calls->on_note(calls->user, line);
    }
    if (status != WHIT_OK)
        return whit_fail(error, status, "%s; model and model_url in edit.conf do the same", why.message);
    wish->url = m->found.url;
    wish->name = m->found.name;
    return WHIT_OK;
}

whit_status whit_answering_model_open(whit_answering_model *m, const whit_panel_wish *wish,
                                      const whit_answering_calls *calls, whit_error *error)
{
    if (m->is_open) return WHIT_OK;
    whit_panel_wish wished = *wish;
    whit_status status = WHIT_OK;
    if (!wish->model && !wish->url) status = find_server(m, &wished, calls, error);
    if (status == WHIT_OK) status = (wished.model ? open_local : open_remote)(m, &wished, calls, error);
    m->is_open = status == WHIT_OK;
    if (status != WHIT_OK) whit_answering_model_close(m);
    return status;
}

void whit_answering_model_close(whit_answering_model *m)
{
    whit_local_close(m->local);
    whit_session_close(m->session);
    whit_model_close(m->model);
    whit_endpoint_close(m->endpoint);
    whit_buf_free(&m->key);
    whit_found_server_free(&m->found);
    *m = (whit_answering_model){0};
}
