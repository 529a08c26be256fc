/* SPDX-License-Identifier: MIT
 * Serves conversions: text to tokens, tokens to text, and messages to a prompt. */
#include <stdlib.h>

#include "base/json.h"
#include "base/items.h"
#include "server/chat_tools.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/logprobs.h"
#include "server/models.h"
#include "server/pieces.h"

enum { PIECE_TOKENS = 1024 };

/* A list of tokens that is being written as a reply. */
struct listed {
    const whit_api *api;
    int32_t *ids;
    size_t n, i;
    bool with_pieces;
};

static bool list_tokens(void *user, whit_buf *out)
{
    struct listed *l = user;
    if (!l->i) whit_buf_append_str(out, "{\"tokens\":[");
    for (size_t k = 0; k < PIECE_TOKENS && l->i < l->n; k++, l->i++) {
        if (l->i) whit_buf_append_str(out, ",");
        whit_buf_printf(out, l->with_pieces ? "{\"id\":%d,\"piece\":" : "%d", (int)l->ids[l->i]);
        if (!l->with_pieces) continue;
        whit_write_piece(l->api, l->ids[l->i], out);
        whit_buf_append_str(out, "}");
    }
    if (l->i < l->n) return true;
    whit_buf_append_str(out, "]}");
    return false;
}

static void free_listed(void *user)
{
    struct listed *l = user;
    whit_models_release((whit_api *)l->api);
    free(l->ids);
    free(l);
}

void whit_tokenize_post(whit_call *call)
{
    whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    const json_t *content;
    bool add_special = false, parse_special = true, with_pieces = false;
    whit_error error;
    if (!whit_field_text(call->body, "content", &content, reply) ||
        !whit_field_switch(call->body, "add_special", &add_special, reply) ||
        !whit_field_switch(call->body, "parse_special", &parse_special, reply) ||
        !whit_field_switch(call->body, "with_pieces", &with_pieces, reply))
        return;
    if (!content) {
        whit_field_refuse(reply, "content", "expected a text");
        return;
    }
    size_t n_bytes = json_string_length(content), capacity = n_bytes + 16;
    if (!whit_reply_claim(reply, capacity * sizeof(int32_t))) return;
    struct listed *l = calloc(1, sizeof *l);
    int32_t *ids = malloc(capacity * sizeof *ids);
    whit_status status = l && ids ? whit_tokenize(api->model, json_string_value(content), n_bytes, add_special,
                                                  parse_special, ids, capacity, &l->n, &error)
                                  : whit_fail_memory(&error, "the tokens", capacity * sizeof *ids);
    if (status != WHIT_OK) {
        free(ids);
        free(l);
        whit_api_fail_error(reply, &error);
        return;
    }
    l->api = api;
    l->ids = ids;
    l->with_pieces = with_pieces;
    whit_models_keep(api); /* keeps the model open until the reply is sent */
    whit_reply_pieces(reply, list_tokens, free_listed, l);
}

/* A list of token ids whose text is being written as a reply, detokenized piece by piece. */
struct spelt {
    whit_api *api;
    json_t *tokens;
    whit_detokenizer *detokenizer;
    size_t i;
};

static void free_spelt(void *user)
{
    struct spelt *s = user;
    whit_detokenizer_close(s->detokenizer);
    json_decref(s->tokens);
    whit_models_release(s->api);
    free(s);
}

/* Appends text inside a JSON string, with escapes. */
static void append_within(whit_buf *out, const char *text, size_t n)
{
    whit_buf quoted = {0};
    if (whit_json_write_string(&quoted, text, n))
        whit_buf_append(out, quoted.data + 1, quoted.size_bytes - 2);
    else
        out->failed = true;
    whit_buf_free(&quoted);
}

static bool spell_tokens(void *user, whit_buf *out)
{
    struct spelt *s = user;
    whit_buf text = {0};
    const char *more = "";
    size_t n = 0;
    if (!s->i) whit_buf_append_str(out, "{\"content\":\"");
    for (size_t k = 0; k < PIECE_TOKENS && s->i < json_array_size(s->tokens); k++, s->i++) {
        int32_t id = (int32_t)json_integer_value(json_array_get(s->tokens, s->i));
        if (whit_detokenizer_push(s->detokenizer, id, &more, &n, NULL) != WHIT_OK || !whit_buf_append(&text, more, n))
            out->failed = true;
    }
    bool is_over = s->i == json_array_size(s->tokens);
    if (is_over && whit_detokenizer_flush(s->detokenizer, &more, &n, NULL) == WHIT_OK) whit_buf_append(&text, more, n);
    append_within(out, whit_chars(&text), text.size_bytes);
    whit_buf_free(&text);
    if (is_over) whit_buf_append_str(out, "\"}");
    return !is_over;
}

void whit_detokenize_post(whit_call *call)
{
    whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    const json_t *tokens;
    whit_error error;
    size_t i;
    json_t *token;
    if (!whit_field_list(call->body, "tokens", &tokens, reply)) return;
    bool ok = tokens || whit_field_refuse(reply, "tokens", "expected a list of token ids");
    json_array_foreach((json_t *)tokens, i, token)
    {
        json_int_t id = json_is_integer(token) ? json_integer_value(token) : -1;
        if (ok && (id < 0 || id >= whit_model_vocab_size(api->model)))
            ok = whit_field_refuse(reply, "tokens", "expected token ids of the model's vocabulary");
    }
    struct spelt *s = ok ? calloc(1, sizeof *s) : NULL;
    if (!ok) return;
    if (!s || whit_detokenizer_open(api->model, false, &s->detokenizer, &error) != WHIT_OK) {
        if (!s) whit_fail_memory(&error, "the text", sizeof *s);
        free(s);
        whit_api_fail_error(reply, &error);
        return;
    }
    s->api = api;
    s->tokens = json_incref((json_t *)tokens);
    whit_models_keep(api);
    whit_reply_pieces(reply, spell_tokens, free_spelt, s);
}

void whit_template_post(whit_call *call)
{
    const whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    whit_chat_prompt *prompt = NULL;
    size_t n;
    json_t *kinds, *body = whit_chat_tools_read(call->body, &kinds, reply);
    if (body && whit_ask_render(api, body, json_array_size(json_object_get(body, "tools")) > 0, &prompt, reply)) {
        const char *text = whit_chat_prompt_text(prompt, &n);
        whit_api_reply(reply, json_pack("{s:s%}", "prompt", text, n));
        whit_chat_prompt_close(prompt);
    }
    json_decref(body), json_decref(kinds);
}
