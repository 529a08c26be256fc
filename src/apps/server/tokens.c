/* SPDX-License-Identifier: MIT
 * Texts into tokens, tokens into texts, messages into a prompt. */
#include <stdlib.h>

#include "server/dialect.h"
#include "server/endpoints.h"

/* As llama.cpp has it: of a part of a character its bytes. */
static json_t *piece_json(const whit_api *api, int32_t id)
{
    whit_buf bytes = whit_api_token_bytes(api, id);
    json_t *piece =
        whit_api_is_text(&bytes) ? whit_dialect_text(bytes.data, bytes.size_bytes) : whit_api_byte_list(&bytes);
    whit_buf_free(&bytes);
    return json_pack("{s:i, s:o}", "id", (int)id, "piece", piece);
}

void whit_tokenize_post(whit_call *call)
{
    const whit_api *api = call->api;
    const json_t *body = call->body;
    whit_web_reply *reply = call->reply;
    const json_t *content = json_object_get(body, "content");
    size_t n_bytes = json_string_length(content), n = 0;
    int32_t *ids = malloc((n_bytes + 16) * sizeof *ids);
    whit_error error = {.status = WHIT_ERROR_MEMORY, .message = "out of memory"};
    if (!json_is_string(content)) {
        whit_api_fail(reply, 400, "invalid_request_error", "content", "content: expected a text");
    } else if (!ids ||
               whit_tokenize(
                   api->model, json_string_value(content), n_bytes, json_is_true(json_object_get(body, "add_special")),
                   !json_is_false(json_object_get(body, "parse_special")), ids, n_bytes + 16, &n, &error) != WHIT_OK) {
        whit_api_fail_error(reply, &error);
    } else {
        json_t *tokens = json_array();
        bool pieces = json_is_true(json_object_get(body, "with_pieces"));
        for (size_t i = 0; i < n; i++)
            json_array_append_new(tokens, pieces ? piece_json(api, ids[i]) : json_integer(ids[i]));
        whit_api_reply(reply, json_pack("{s:o}", "tokens", tokens));
    }
    free(ids);
}

void whit_detokenize_post(whit_call *call)
{
    const whit_api *api = call->api;
    const json_t *body = call->body;
    whit_web_reply *reply = call->reply;
    const json_t *tokens = json_object_get(body, "tokens");
    whit_detokenizer *d = NULL;
    whit_buf out = {0};
    whit_error error;
    const char *text;
    size_t n, i;
    json_t *token;
    whit_status status = whit_detokenizer_open(api->model, false, &d, &error);
    if (status == WHIT_OK && !json_is_array(tokens))
        status = whit_fail(&error, WHIT_ERROR_ARGUMENT, "tokens: expected a list of token ids");
    json_array_foreach((json_t *)tokens, i, token)
    {
        json_int_t id = json_is_integer(token) ? json_integer_value(token) : -1;
        if (status == WHIT_OK && (id < 0 || id >= whit_model_vocab_size(api->model)))
            status = whit_fail(&error, WHIT_ERROR_ARGUMENT, "tokens: expected token ids");
        if (status == WHIT_OK) status = whit_detokenizer_push(d, (int32_t)id, &text, &n, &error);
        if (status == WHIT_OK) whit_buf_append(&out, text, n);
    }
    if (status == WHIT_OK) status = whit_detokenizer_flush(d, &text, &n, &error);
    if (status == WHIT_OK) whit_buf_append(&out, text, n);
    if (status == WHIT_OK) {
        json_t *content = json_stringn(out.data ? (const char *)out.data : "", out.size_bytes);
        whit_api_reply(reply, json_pack("{s:o}", "content", content ? content : json_string("")));
    } else {
        whit_api_fail_error(reply, &error);
    }
    whit_detokenizer_close(d);
    whit_buf_free(&out);
}

void whit_template_post(whit_call *call)
{
    const whit_api *api = call->api;
    const json_t *body = call->body;
    whit_web_reply *reply = call->reply;
    whit_chat_prompt *prompt = NULL;
    size_t n;
    if (!whit_ask_render(api, body, json_array_size(json_object_get(body, "tools")) > 0, &prompt, reply)) return;
    const char *text = whit_chat_prompt_text(prompt, &n);
    whit_api_reply(reply, json_pack("{s:s%}", "prompt", text, n));
    whit_chat_prompt_close(prompt);
}
