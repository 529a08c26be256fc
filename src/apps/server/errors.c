/* SPDX-License-Identifier: MIT
 * Makes JSON replies, and errors in the form that the clients of each vendor read. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/items.h"
#include "server/body.h"
#include "server/json_text.h"

json_t *whit_api_any_text(const char *text)
{
    const uint8_t *bytes = (const uint8_t *)text;
    whit_buf plain = {0};
    for (size_t at = 0, n = strlen(text), length; at < n; at += length)
        if (whit_utf8_decode(bytes + at, n - at, &length) == WHIT_UTF8_INVALID)
            whit_buf_append_str(&plain, WHIT_UTF8_REPLACEMENT);
        else
            whit_buf_append(&plain, bytes + at, length);
    json_t *own = json_stringn(plain.data ? whit_chars(&plain) : "", plain.size_bytes);
    whit_buf_free(&plain);
    return own;
}

void whit_api_reply(whit_web_reply *reply, json_t *body)
{
    char *text = body ? whit_json_write(body) : NULL;
    json_decref(body);
    whit_buf_free(&reply->body);
    reply->body = (whit_buf){0};
    if (!text || !whit_buf_append_str(&reply->body, text)) reply->status = 500;
    if (reply->status == 0) reply->status = 200;
    reply->type = "application/json";
    free(text);
}

void whit_reply_header(whit_web_reply *reply, const char *name, const char *value)
{
    reply->headers[2 * reply->n_headers] = name;
    reply->headers[2 * reply->n_headers++ + 1] = value;
}

void whit_api_fail(whit_web_reply *reply, int status, const char *type, const char *param, const char *format, ...)
{
    char message[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    reply->status = status;
    whit_api_reply(reply,
                   json_pack("{s:{s:o, s:s, s:o, s:n}}", "error", "message", whit_api_any_text(message), "type", type,
                             "param", param ? json_string(param) : json_null(), "code"));
}

bool whit_api_fail_memory(whit_web_reply *reply)
{
    whit_api_fail(reply, 500, "server_error", NULL, "not enough memory for the request; try again later");
    return false;
}

void whit_api_fail_error(whit_web_reply *reply, const whit_error *error)
{
    bool theirs = error->status == WHIT_ERROR_ARGUMENT || error->status == WHIT_ERROR_LIMIT ||
        error->status == WHIT_ERROR_UNSUPPORTED || error->status == WHIT_ERROR_FORMAT;
    const char *type = theirs ? "invalid_request_error" : "server_error";
    whit_api_fail(reply, theirs ? 400 : 500, type, NULL, "%s", error->message);
}

bool whit_reply_claim(whit_web_reply *reply, size_t n_bytes)
{
    whit_claim_result result = reply->claim ? whit_claim_take(reply->claim, n_bytes) : WHIT_CLAIM_TAKEN;
    if (result == WHIT_CLAIM_TAKEN) return true;
    whit_reply_unclaimed(reply, result);
    return false;
}

void whit_reply_unclaimed(whit_web_reply *reply, whit_claim_result result)
{
    if (result == WHIT_CLAIM_LARGE) {
        whit_api_fail(reply, 413, "invalid_request_error", NULL,
                      "the request takes more memory than --request-memory allows one request: ask for less at once");
        return;
    }
    whit_api_fail(reply, 503, "server_error", NULL,
                  "other requests are using all of --request-memory; try again later");
    whit_reply_header(reply, "Retry-After", "1");
}

/* Parses the error that whit_api_fail has written as the reply's body; returns NULL if the body is something else. */
static json_t *written_error(const whit_web_reply *reply)
{
    if (reply->stream || reply->status < 400) return NULL;
    json_error_t ignored;
    json_t *body = whit_json_read(whit_chars(&reply->body), reply->body.size_bytes, &ignored);
    if (json_is_object(json_object_get(body, "error"))) return body;
    json_decref(body);
    return NULL;
}

void whit_api_set_code(whit_web_reply *reply, const char *code)
{
    json_t *body = written_error(reply);
    if (!body) return;
    json_object_set_new(json_object_get(body, "error"), "code", json_string(code));
    whit_api_reply(reply, body);
}

static const char *anthropic_type(const whit_web_reply *reply, const json_t *error)
{
    const char *type = json_string_value(json_object_get(error, "type"));
    if (reply->status == 503) return "overloaded_error";
    if (reply->status == 413) return "request_too_large";
    if (reply->status == 404) return "not_found_error";
    return reply->status >= 500 || !type ? "api_error" : type;
}

/* Makes an error in Google's form: the HTTP status code, the message, and Google's name for the status. */
static json_t *google_error(int status, json_t *message)
{
    static const struct {
        int status;
        const char *word;
    } words[] = {{400, "INVALID_ARGUMENT"}, {401, "UNAUTHENTICATED"},  {403, "PERMISSION_DENIED"},
                 {404, "NOT_FOUND"},        {413, "INVALID_ARGUMENT"}, {429, "RESOURCE_EXHAUSTED"},
                 {499, "CANCELLED"},        {503, "UNAVAILABLE"},      {405, "UNIMPLEMENTED"}};
    const char *word = "INTERNAL";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].status == status) word = words[i].word;
    return json_pack("{s:{s:i, s:O, s:s}}", "error", "code", status, "message", message, "status", word);
}

void whit_api_translate_error(whit_vendor vendor, whit_web_reply *reply)
{
    json_t *body = vendor == WHIT_VENDOR_OPENAI ? NULL : written_error(reply), *error = json_object_get(body, "error");
    json_t *message = json_object_get(error, "message");
    if (message && vendor == WHIT_VENDOR_OLLAMA)
        whit_api_reply(reply, json_pack("{s:O}", "error", message));
    else if (message && vendor == WHIT_VENDOR_GEMINI)
        whit_api_reply(reply, google_error(reply->status, message));
    else if (message)
        whit_api_reply(reply,
                       json_pack("{s:s, s:{s:s, s:O}, s:s}", "type", "error", "error", "type",
                                 anthropic_type(reply, error), "message", message, "request_id", reply->id));
    json_decref(body);
}
