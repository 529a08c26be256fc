/* SPDX-License-Identifier: MIT
 * Serves POST /v1/chat/completions/render and /v1/completions/render, which reply with the exact prompt of a request,
 * as text and as token ids. The ids are in two members, under the names that different clients of vLLM read. */
#include "server/ask.h"
#include "server/chat_tools.h"
#include "server/endpoints.h"

void whit_render_post(whit_call *call)
{
    whit_ask ask = {.api = call->api, .is_chat = true, .n_each = 1};
    size_t n_ids, n_bytes;
    json_t *kinds, *chat = whit_chat_tools_read(call->body, &kinds, call->reply);
    if (chat && whit_calls_read(&ask, chat, call->reply) &&
        whit_ask_render(call->api, chat, ask.tools, &ask.prompt, call->reply)) {
        const int32_t *ids = whit_chat_prompt_ids(ask.prompt, &n_ids);
        const char *text = whit_chat_prompt_text(ask.prompt, &n_bytes);
        json_t *list = json_array();
        for (size_t i = 0; i < n_ids; i++) json_array_append_new(list, json_integer(ids[i]));
        whit_api_reply(call->reply,
                       json_pack("{s:s, s:s%, s:O, s:o, s:I}", "model", call->api->name, "prompt", text, n_bytes,
                                 "token_ids", list, "prompt_token_ids", list, "n_tokens", (json_int_t)n_ids));
    }
    whit_chat_prompt_close(ask.prompt);
    json_decref(ask.calls.name), json_decref(chat), json_decref(kinds);
}

/* Replies with a list that has an object for each prompt. */
void whit_completions_render_post(whit_call *call)
{
    json_t *lists = whit_ask_token_lists(call->api, call->body, call->reply), *ids;
    json_t *prompts = json_array();
    size_t i;
    if (lists) {
        json_array_foreach(lists, i, ids)
            json_array_append_new(prompts,
                                  json_pack("{s:s, s:O, s:O, s:I}", "model", call->api->name, "token_ids", ids,
                                            "prompt_token_ids", ids, "n_tokens", (json_int_t)json_array_size(ids)));
        whit_api_reply(call->reply, json_incref(prompts));
    }
    json_decref(lists);
    json_decref(prompts);
}
