/* SPDX-License-Identifier: MIT */
#include "agent/model.h"

#include "endpoint/stream.h"

#include <stdlib.h>

static whit_status ask(void *user, const json_t *messages, const json_t *tools, json_t **answer, whit_error *error)
{
    const whit_remote_model *remote = user;
    json_t *request = json_pack("{s:O, s:O*, s:b, s:{s:b}, s:s*}", "messages", messages, "tools",
                                json_array_size(tools) ? tools : NULL, "stream", 1, "stream_options", "include_usage",
                                1, "model", remote->name);
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    *answer = NULL;
    if (!body) return whit_fail_memory(error, "a request", 0);
    whit_sse stream = {.on_text = remote->on_text, .user = remote->user};
    const whit_endpoint_sink sink = whit_sse_sink(&stream);
    whit_status status = whit_endpoint_post(remote->endpoint, body, strlen(body), &sink, error);
    free(body);
    if (status == WHIT_OK) status = whit_sse_finish(&stream, answer, error);
    whit_sse_free(&stream);
    return status;
}

whit_agent_model whit_remote_as_model(whit_remote_model *remote)
{
    return (whit_agent_model){.ask = ask, .user = remote};
}
