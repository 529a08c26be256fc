/* SPDX-License-Identifier: MIT
 * Writes answers as JSON: complete, or as server-sent events during generation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/phrase.h"
#include "base/sockets.h"
#include "base/utf8.h"
#include "server/access.h"
#include "server/answers.h"
#include "server/body.h"
#include "server/chat_tools.h"
#include "server/logprobs.h"
#include "server/ollama.h"
#include "server/pieces.h"
#include "server/json_text.h"

enum { LOOK_MS = 20, PING_MS = 10000, CHUNK_TOKENS = 64 };

/* ---- parts of a reply -------------------------------------------------------------------------- */

static const char *finish_name(const whit_job *job, bool calls)
{
    /* This includes answers that were ended at a time limit. */
    if (job->finish != WHIT_FINISH_END && job->finish != WHIT_FINISH_STOP) return "length";
    return calls ? "tool_calls" : "stop";
}

static json_t *text_or_null(const char *text, size_t n)
{
    json_t *own = json_stringn(whit_or_empty(text), n);
    return own ? own : json_null();
}

static json_t *usage_json(const whit_ask *ask)
{
    json_int_t prompt = 0, generated = 0, cached = 0;
    for (uint32_t i = 0; i < ask->n; i++) generated += ask->jobs[i]->n_generated;
    for (uint32_t i = 0; i < ask->n; i += ask->n_each) { /* each prompt counts once, not once for each of its answers */
        prompt += (json_int_t)ask->jobs[i]->n_ids;
        cached += ask->jobs[i]->n_cached;
    }
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", prompt, "completion_tokens", generated,
                     "total_tokens", prompt + generated, "prompt_tokens_details", "cached_tokens", cached);
}

static json_t *envelope(const whit_ask *ask, bool chunk)
{
    const char *object = "text_completion";
    if (ask->is_chat) object = chunk ? "chat.completion.chunk" : "chat.completion";
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", ask->id, "object", object, "created", (json_int_t)ask->created,
                     "model", ask->api->name, "system_fingerprint", whit_version());
}

json_t *whit_ask_timings(const whit_ask *ask)
{
    const whit_job *job = ask->jobs[0];
    whit_engine_lock(ask->api->engine); /* the engine may be adding tokens to the answer */
    const uint32_t n_generated = job->n_generated;
    /* during generation, up to the answer's last token so far */
    const uint64_t last_ns = job->done_ns ? job->done_ns : job->last_ns;
    whit_engine_unlock(ask->api->engine);
    double prompt_ms = (double)(job->first_ns - job->started_ns) / 1e6;
    double rest_ms = (double)(last_ns - job->first_ns) / 1e6;
    double n_prompt = (double)(job->n_ids - job->n_cached),
           /* without the first token, which is computed by the last step of the prompt */
        n_rest = n_generated - 1.0;
    double prompt_rate = prompt_ms > 0 ? n_prompt / prompt_ms * 1e3 : 0;
    double rest_rate = rest_ms > 0 ? n_rest / rest_ms * 1e3 : 0;
    return json_pack("{s:I, s:I, s:f, s:f, s:I, s:f, s:f}", "cache_n", (json_int_t)job->n_cached, "prompt_n",
                     (json_int_t)n_prompt, "prompt_ms", prompt_ms, "prompt_per_second", prompt_rate, "predicted_n",
                     (json_int_t)n_generated, "predicted_ms", rest_ms, "predicted_per_second", rest_rate);
}

/* Writes a line of the log, when the whole reply was sent or the client has left. */
static void log_ask(const whit_ask *ask, int status)
{
    const whit_api *api = ask->api;
    if (api->log.fd < 0) return;
    static const char *const names[] = {"length", "end", "stop", "cancelled", "failed"};
    uint64_t n_prompt = 0, n_cached = 0, n_generated = 0, queued_ns = 0, first_ns = 0, begun_ns = UINT64_MAX;
    json_t *finishes = json_array(), *answers = json_array();
    whit_engine_lock(api->engine);
    for (uint32_t i = 0; i < ask->n; i++) {
        const whit_job *job = ask->jobs[i];
        if (i % ask->n_each == 0) n_prompt += job->n_ids, n_cached += job->n_cached;
        n_generated += job->n_generated;
        if (job->started_ns > queued_ns) queued_ns = job->started_ns;
        if (job->first_ns && (!first_ns || job->first_ns < first_ns)) first_ns = job->first_ns;
        if (job->queued_ns < begun_ns) begun_ns = job->queued_ns;
        const char *finish;
        if (!job->finished)
            finish = "cancelled";
        else if (job->is_late)
            finish = "timeout";
        else
            finish = names[job->finish];
        json_array_append_new(finishes, json_string(finish));
        if (api->log.texts) json_array_append_new(answers, text_or_null(whit_chars(&job->text), job->text.size_bytes));
    }
    whit_engine_unlock(api->engine);
    const char *path = "completion";
    if (ask->path)
        path = ask->path;
    else if (ask->is_chat)
        path = "chat";
    uint64_t queue_us = queued_ns ? (queued_ns - begun_ns) / 1000 : 0;
    uint64_t first_us = first_ns ? (first_ns - begun_ns) / 1000 : 0;
    json_t *line = json_pack("{s:s, s:s, s:i, s:b, s:I, s:I, s:I, s:o, s:I, s:I, s:I}", "id", ask->id, "api", path,
                             "status", status, "stream", ask->stream, "prompt_tokens", (json_int_t)n_prompt,
                             "cached_tokens", (json_int_t)n_cached, "generated_tokens", (json_int_t)n_generated,
                             "finish", finishes, "queue_us", (json_int_t)queue_us, "first_token_us",
                             (json_int_t)first_us, "total_us", (json_int_t)((whit_now_ns() - ask->begun_ns) / 1000));
    whit_access_log_key(api->site, ask->key, line);
    if (ask->request_id[0]) json_object_set_new(line, "request_id", json_string(ask->request_id));
    if (api->log.texts) {
        json_object_set_new(line, "request", json_string(whit_or_empty(ask->body)));
        json_object_set(line, "answers", answers);
    }
    json_decref(answers);
    whit_request_log_write(&api->log, line);
}

static void end_ask(whit_ask *ask, int status)
{
    log_ask(ask, status);
    whit_ask_close(ask);
}

/* ---- complete answers -------------------------------------------------------------------------- */

/* Returns the prompt, from which the parser of an answer learns whether a thinking section is already open. Returns
 * NULL if the answer follows a schema, since it then has no thinking section. */
static const whit_chat_prompt *prompt_of(const whit_ask *ask)
{
    return ask->is_formed ? NULL : ask->prompt;
}

/* Gives the calls of a complete message the same ids as in a stream. */
static void name_calls(const whit_ask *ask, json_t *message)
{
    const json_t *calls = json_object_get(message, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls); i++)
        json_object_set_new(json_array_get(calls, i), "id", json_sprintf("call_%s_%u", ask->id, (unsigned)i));
}

static json_t *message_of(const whit_ask *ask, const whit_job *job, bool *calls, whit_error *error)
{
    whit_chat_parser *parser;
    size_t n;
    *calls = false;
    if (whit_chat_parser_open(ask->api->chat, prompt_of(ask), ask->tools, NULL, NULL, &parser, error) != WHIT_OK)
        return NULL;
    json_t *message = NULL;
    json_error_t reason;
    if (whit_chat_parser_push(parser, job->text.data ? whit_chars(&job->text) : "", job->text.size_bytes, error) ==
            WHIT_OK &&
        whit_chat_parser_flush(parser, error) == WHIT_OK) {
        const char *text = whit_chat_parser_message(parser, &n);
        *calls = whit_chat_parser_n_calls(parser) > 0;
        message = whit_json_read(text, n, &reason);
        if (message) {
            json_object_set_new(message, "refusal", json_null());
            name_calls(ask, message);
            if (!ask->dialect) whit_chat_name_custom(ask->state.kinds, json_object_get(message, "tool_calls"));
            if (!json_object_get(message, "content")) json_object_set_new(message, "content", json_null());
        } else {
            whit_fail(error, WHIT_ERROR_FORMAT,
                      "the model's answer cannot be written as a message: probably because memory ran out; ask again");
        }
    }
    whit_chat_parser_close(parser);
    return message;
}

static json_t *choice_of(const whit_ask *ask, uint32_t i, whit_error *error)
{
    const whit_job *job = ask->jobs[i];
    json_t *choice = json_pack("{s:i}", "index", (int)i);
    bool calls = false;
    if (ask->is_chat) {
        json_t *message = message_of(ask, job, &calls, error);
        if (!message) {
            json_decref(choice);
            return NULL;
        }
        json_object_set_new(choice, "message", message);
    } else {
        whit_buf text = {0};
        whit_buf_append(&text, whit_ask_prompt_text(ask, i)->data, whit_ask_prompt_text(ask, i)->size_bytes);
        whit_buf_append(&text, job->text.data, job->text.size_bytes);
        json_object_set_new(choice, "text", text_or_null(whit_chars(&text), text.size_bytes));
        whit_buf_free(&text);
    }
    if (!job->logprobs) /* log-probabilities, which may be long, are written separately after the other members */
        json_object_set_new(choice, "logprobs", json_null());
    json_object_set_new(choice, "finish_reason", json_string(finish_name(job, calls)));
    return choice;
}

/* A reply with log-probabilities, which is written piece by piece: texts[0], log-probabilities of answer 0, texts[1],
 * log-probabilities of answer 1, ... */
struct long_reply {
    whit_ask *ask;
    whit_logs_form form;
    whit_buf texts[WHIT_API_MOST_ANSWERS + 1];
    uint32_t n_texts, i_text; /* i_text: index of the next text to write */
    whit_logs logs;
    size_t *offsets;
    bool in_logs;
};

static bool next_piece(void *user, whit_buf *out)
{
    struct long_reply *r = user;
    if (r->in_logs) {
        r->in_logs = whit_logs_write(&r->logs, out);
        return true;
    }
    free(r->offsets);
    r->offsets = NULL;
    if (r->i_text && r->i_text < r->n_texts) whit_buf_free(&r->texts[r->i_text - 1]);
    whit_buf_append(out, r->texts[r->i_text].data, r->texts[r->i_text].size_bytes);
    if (++r->i_text == r->n_texts) return false;
    whit_ask_logs(r->ask, r->i_text - 1, r->form, &r->logs, &r->offsets);
    r->in_logs = true;
    return true;
}

static void end_long(void *user)
{
    struct long_reply *r = user;
    for (uint32_t i = 0; i < r->n_texts; i++) whit_buf_free(&r->texts[i]);
    free(r->offsets);
    end_ask(r->ask, 200);
    free(r);
}

void whit_append_open(whit_buf *out, const json_t *object)
{
    char *text = whit_json_write(object);
    if (text)
        whit_buf_append(out, text, strlen(text) - 1);
    else
        out->failed = true;
    free(text);
}

/* Begins a long reply; takes ownership of `body` and `ask`. Log-probabilities become the member `name` of each object
 * in `choices` or, if that is NULL, of `body`. */
static void reply_long(whit_ask *ask, json_t *body, const json_t *choices, const char *name, whit_web_reply *reply)
{
    struct long_reply *r = calloc(1, sizeof *r);
    bool is_failed = !r;
    if (r) {
        *r = (struct long_reply){.ask = ask, .form = ask->is_chat ? WHIT_LOGS_CHAT : WHIT_LOGS_COMPLETION};
        if (!choices) r->form = WHIT_LOGS_LIST;
        r->n_texts = (choices ? (uint32_t)json_array_size(choices) : 1) + 1;
        whit_append_open(&r->texts[0], body);
        for (uint32_t i = 0; i + 1 < r->n_texts; i++) {
            if (choices && i == 0) whit_buf_append_str(&r->texts[0], ",\"choices\":[");
            if (choices) whit_append_open(&r->texts[i], json_array_get(choices, i));
            whit_buf_printf(&r->texts[i], ",\"%s\":", name);
            const char *end = "}]}";
            if (!choices)
                end = "}";
            else if (i + 2 < r->n_texts)
                end = "},";
            whit_buf_append_str(&r->texts[i + 1], end);
            is_failed |= r->texts[i].failed || r->texts[i + 1].failed;
        }
    }
    json_decref(body);
    if (!is_failed) {
        whit_reply_pieces(reply, next_piece, end_long, r);
        return;
    }
    for (uint32_t i = 0; r && i < r->n_texts; i++) whit_buf_free(&r->texts[i]);
    free(r);
    whit_api_fail_memory(reply);
    end_ask(ask, reply->status);
}

/* Replies with complete answers; takes ownership of `ask`. */
static void reply_whole(whit_ask *ask, whit_web_reply *reply)
{
    json_t *body = NULL, *choices = json_array();
    whit_error error;
    for (uint32_t i = 0; i < ask->n; i++) {
        json_t *choice = choice_of(ask, i, &error);
        if (choice) {
            json_array_append_new(choices, choice);
            continue;
        }
        whit_api_fail_error(reply, &error);
        json_decref(choices);
        end_ask(ask, reply->status);
        return;
    }
    const json_t *first = json_array_get(choices, 0);
    if (ask->ollama) {
        const json_t *message = json_object_get(first, "message");
        const json_t *within = ask->is_chat ? message : first;
        const json_t *text = json_object_get(within, ask->is_chat ? "content" : "text");
        const json_t *thinking = json_object_get(message, "reasoning_content");
        body = whit_ollama_line(ask, json_string_value(text), json_string_length(text), json_string_value(thinking),
                                json_string_length(thinking), json_object_get(message, "tool_calls"), true);
        if (ask->jobs[0]->logprobs) {
            reply_long(ask, body, NULL, "logprobs", reply);
            json_decref(choices);
            return;
        }
    } else if (ask->dialect && ask->n > 1) { /* llama.cpp replies with a list if there are several answers */
        body = json_array();
        for (uint32_t i = 0; i < ask->n; i++) {
            ask->state.i_job = i;
            json_array_append_new(body, ask->dialect->whole(ask, json_array_get(choices, i)));
        }
    } else if (ask->dialect) {
        body = ask->dialect->whole(ask, first);
        if (ask->dialect->logs_name && ask->jobs[0]->logprobs) {
            reply_long(ask, body, NULL, ask->dialect->logs_name, reply);
            json_decref(choices);
            return;
        }
    } else {
        body = envelope(ask, false);
        if (!ask->jobs[0]->logprobs) json_object_set(body, "choices", choices);
        json_object_set_new(body, "usage", usage_json(ask));
        if (ask->jobs[0]->first_ns) json_object_set_new(body, "timings", whit_ask_timings(ask));
        if (ask->jobs[0]->logprobs) {
            reply_long(ask, body, choices, "logprobs", reply);
            json_decref(choices);
            return;
        }
    }
    json_decref(choices);
    whit_api_reply(reply, body);
    end_ask(ask, reply->status);
}

/* ---- streamed answers -------------------------------------------------------------------------- */

struct stream {
    whit_ask *ask;
    whit_buf out; /* events that were not sent yet */
    size_t n_sent;
    struct {
        struct stream *stream;
        uint32_t i;
        whit_chat_parser *parser;
        size_t n_taken, n_chars; /* n_taken: processed bytes of the job's text; n_chars: characters of the reply's text
                                  * sent so far */
        size_t n_logged;         /* number of the answer's tokens whose log-probabilities were sent */
        size_t n_prompt_logged;  /* number of the prompt's tokens whose log-probabilities were sent */
        size_t *prompt_places;   /* (n_ids) offsets of the prompt's tokens in the text; NULL until they are needed */
        size_t n_token_bytes;    /* bytes of the job's `tokens` that were sent */
        size_t n_progress_bytes; /* bytes of the job's `progress` that were sent */
        whit_text_place place;   /* offset of the next token whose log-probabilities will be sent */
        uint32_t n_calls;
        bool begun, over, in_custom; /* in_custom: the stream is inside a call of a custom tool */
    } parts[WHIT_API_MOST_ANSWERS];
    uint64_t last_ns;
    bool over;
};
typedef struct stream_part {
    struct stream *stream;
    uint32_t i;
} stream_part;

static void send_event(struct stream *s, json_t *event)
{
    char *text = event ? whit_json_write(event) : NULL;
    if (text) {
        whit_buf_append_str(&s->out, s->ask->ollama ? "" : "data: ");
        whit_buf_append_str(&s->out, text);
        whit_buf_append_str(&s->out, s->ask->ollama ? "\n" : "\n\n");
    }
    free(text);
    json_decref(event);
    s->last_ns = whit_now_ns();
}

/* Sends a chunk in OpenAI's form. piece: a delta (chat) or a text, of which it takes ownership; logs: log-probabilities
 * as JSON text, or NULL; finish: the reason of the answer's end, or NULL. */
static void send_chunk(struct stream *s, uint32_t i, json_t *piece, const whit_buf *logs, const char *finish)
{
    json_t *event = envelope(s->ask, true);
    if (s->ask->times_tokens && s->ask->jobs[0]->first_ns)
        json_object_set_new(event, "timings", whit_ask_timings(s->ask));
    const char *key = s->ask->is_chat ? "delta" : "text";
    json_t *choice = json_pack("{s:i, s:o, s:o}", "index", (int)i, key, piece, "finish_reason",
                               finish ? json_string(finish) : json_null());
    if (!logs) {
        json_object_set_new(choice, "logprobs", json_null());
        json_object_set_new(event, "choices", json_pack("[o]", choice));
        send_event(s, event);
        return;
    }
    whit_buf_append_str(&s->out, "data: ");
    whit_append_open(&s->out, event);
    whit_buf_append_str(&s->out, ",\"choices\":[");
    whit_append_open(&s->out, choice);
    whit_buf_append_str(&s->out, ",\"logprobs\":");
    whit_buf_append(&s->out, logs->data, logs->size_bytes);
    whit_buf_append_str(&s->out, "}]}\n\n");
    json_decref(event);
    json_decref(choice);
    s->last_ns = whit_now_ns();
}

static bool on_event(void *user, const whit_chat_event *event)
{
    const stream_part *part = user;
    struct stream *s = part->stream;
    if (s->ask->dialect) {
        s->ask->dialect->event(s->ask, event, &s->out);
        s->last_ns = whit_now_ns();
        return true;
    }
    if (s->ask->ollama) { /* Ollama's clients get calls complete, at the end */
        if (event->kind == WHIT_CHAT_TEXT)
            send_event(s, whit_ollama_line(s->ask, event->text, event->text_bytes, NULL, 0, NULL, false));
        if (event->kind == WHIT_CHAT_THINKING)
            send_event(s, whit_ollama_line(s->ask, NULL, 0, event->text, event->text_bytes, NULL, false));
        return true;
    }
    json_t *text = text_or_null(event->text, event->text_bytes), *delta = NULL;
    char id[64];
    if (event->kind == WHIT_CHAT_CALL_BEGIN) {
        s->parts[part->i].n_calls++;
        s->parts[part->i].in_custom = whit_chat_is_custom(s->ask->state.kinds, event->text, event->text_bytes);
    }
    /* calls of custom tools are sent complete, at the end */
    if (event->kind >= WHIT_CHAT_CALL_BEGIN && s->parts[part->i].in_custom) {
        json_decref(text);
        return true;
    }
    switch (event->kind) {
    case WHIT_CHAT_TEXT: delta = json_pack("{s:o}", "content", text); break;
    case WHIT_CHAT_THINKING: delta = json_pack("{s:o}", "reasoning_content", text); break;
    case WHIT_CHAT_CALL_BEGIN:
        snprintf(id, sizeof id, "call_%s_%u", s->ask->id, event->i_call);
        delta = json_pack("{s:[{s:i, s:s, s:s, s:{s:o, s:s}}]}", "tool_calls", "index", (int)event->i_call, "id", id,
                          "type", "function", "function", "name", text, "arguments", "");
        break;
    case WHIT_CHAT_CALL_ARGUMENTS:
        delta =
            json_pack("{s:[{s:i, s:{s:o}}]}", "tool_calls", "index", (int)event->i_call, "function", "arguments", text);
        break;
    case WHIT_CHAT_CALL_END: json_decref(text); return true;
    }
    send_chunk(s, part->i, delta, NULL, NULL);
    return true;
}

static void send_error(struct stream *s, const whit_error *error)
{
    if (s->ask->dialect)
        s->ask->dialect->fail(s->ask, error, &s->out);
    else if (s->ask->ollama)
        send_event(s, json_pack("{s:s}", "error", error->message));
    else
        send_event(s,
                   json_pack("{s:{s:s, s:s, s:n, s:n}}", "error", "message", error->message, "type", "server_error",
                             "param", "code"));
}

/* Sends the end of an answer to an Ollama client: its calls, and a last line with counts. */
static void end_ollama(struct stream *s, uint32_t i)
{
    size_t n = 0;
    const char *text = s->parts[i].parser ? whit_chat_parser_message(s->parts[i].parser, &n) : NULL;
    json_error_t ignored;
    json_t *message = text ? whit_json_read(text, n, &ignored) : NULL;
    const json_t *calls = json_object_get(message, "tool_calls");
    json_t *line = json_array_size(calls) ? whit_ollama_line(s->ask, NULL, 0, NULL, 0, calls, false) : NULL;
    if (json_object_get(json_object_get(line, "message"), "tool_calls")) send_event(s, json_incref(line));
    json_decref(line);
    json_decref(message);
    send_event(s, whit_ollama_line(s->ask, NULL, 0, NULL, 0, NULL, true));
}

/* Sends the calls of custom tools, each in one chunk. */
static void send_custom_calls(struct stream *s, uint32_t i)
{
    size_t n = 0, k;
    const char *text = s->ask->state.kinds ? whit_chat_parser_message(s->parts[i].parser, &n) : NULL;
    json_error_t ignored;
    json_t *message = text ? whit_json_read(text, n, &ignored) : NULL, *call;
    name_calls(s->ask, message);
    whit_chat_name_custom(s->ask->state.kinds, json_object_get(message, "tool_calls"));
    json_array_foreach(json_object_get(message, "tool_calls"), k, call)
    {
        if (!json_object_get(call, "custom")) continue;
        json_object_set_new(call, "index", json_integer((json_int_t)k));
        send_chunk(s, i, json_pack("{s:[O]}", "tool_calls", call), NULL, NULL);
    }
    json_decref(message);
}

/* Sends the beginning of an answer: a first event, or the echo of its prompt with log-probabilities (may be NULL). */
static void begin_part(struct stream *s, uint32_t i, const whit_buf *logs)
{
    const whit_buf *prompt = whit_ask_prompt_text(s->ask, i);
    if (s->parts[i].begun || s->ask->ollama) return;
    s->parts[i].begun = true;
    if (s->ask->dialect)
        s->ask->dialect->begin(s->ask, &s->out);
    else if (s->ask->is_chat)
        send_chunk(s, i, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL, NULL);
    else if (s->ask->echo)
        send_chunk(s, i, text_or_null(whit_chars(prompt), prompt->size_bytes), logs, NULL);
}

/* Sends the end of an answer whose text was completely sent. */
static void finish_part(struct stream *s, uint32_t i)
{
    const whit_job *job = s->ask->jobs[i];
    s->parts[i].over = true;
    if (s->ask->is_chat && whit_chat_parser_flush(s->parts[i].parser, NULL) != WHIT_OK) s->out.failed = true;
    if (job->error.status != WHIT_OK)
        send_error(s, &job->error);
    else if (s->ask->dialect)
        s->ask->dialect->end(s->ask, &s->out);
    else if (s->ask->ollama)
        end_ollama(s, i);
    else {
        send_custom_calls(s, i);
        send_chunk(s, i, s->ask->is_chat ? json_object() : json_string(""), NULL,
                   finish_name(job, s->parts[i].n_calls > 0));
    }
}

/* Sends new text of an answer. logs: log-probabilities as JSON text, or NULL. */
static void send_part(struct stream *s, uint32_t i, const char *text, size_t n, const whit_buf *logs)
{
    begin_part(s, i, NULL);
    if (logs && s->ask->is_chat && !s->ask->ollama && !s->ask->dialect)
        send_chunk(s, i, json_pack("{s:s}", "content", ""), logs, NULL);
    if (s->ask->ollama && logs) {
        json_t *line = whit_ollama_line(s->ask, NULL, 0, NULL, 0, NULL, false);
        whit_append_open(&s->out, line);
        whit_buf_append_str(&s->out, ",\"logprobs\":");
        whit_buf_append(&s->out, logs->data, logs->size_bytes);
        whit_buf_append_str(&s->out, "}\n");
        json_decref(line);
    }
    if (s->ask->dialect && s->ask->dialect->logs_name && logs)
        whit_buf_append(&s->ask->state.logs, logs->data, logs->size_bytes);
    if (n && s->ask->is_chat) {
        if (whit_chat_parser_push(s->parts[i].parser, text, n, NULL) != WHIT_OK) s->out.failed = true;
    } else if (s->ask->dialect && (n || s->ask->state.logs.size_bytes))
        s->ask->dialect->event(s->ask, &(whit_chat_event){.kind = WHIT_CHAT_TEXT, .text = text, .text_bytes = n},
                               &s->out);
    else if (n && s->ask->ollama)
        send_event(s, whit_ollama_line(s->ask, text, n, NULL, 0, NULL, false));
    else if (!s->ask->is_chat && !s->ask->dialect && (n || logs))
        send_chunk(s, i, text_or_null(text, n), logs, NULL);
}

/* Sends log-probabilities of the next few tokens of the prompt; the first chunk also has the prompt's text. */
static void send_prompt_logs(struct stream *s, uint32_t i)
{
    const whit_job *job = s->ask->jobs[i]; /* read without the lock: the engine has written all of the prompt's
                                            * log-probabilities before */
    size_t at = s->parts[i].n_prompt_logged, n_left = job->n_ids - at,
           n = n_left < CHUNK_TOKENS ? n_left : CHUNK_TOKENS;
    if (!at) s->parts[i].prompt_places = whit_ask_prompt_places(s->ask, i);
    size_t n_first = !at, i_entry = at - !n_first;
    whit_logs logs = {.api = s->ask->api,
                      .form = WHIT_LOGS_COMPLETION,
                      .n_top = job->n_top,
                      .first_id = n_first ? job->ids[0] : -1,
                      .parts = {WHIT_ITEMS(const whit_logprob, &job->prompt_logprobs_of) + i_entry * (1 + job->n_top)},
                      .n_parts = {n - n_first},
                      .offsets = s->parts[i].prompt_places ? s->parts[i].prompt_places + at : NULL};
    whit_buf text = {0};
    while (whit_logs_write(&logs, &text)) {
    }
    if (n_first)
        begin_part(s, i, &text);
    else
        send_chunk(s, i, json_string(""), &text, NULL);
    whit_buf_free(&text);
    s->parts[i].n_prompt_logged = at + n;
}

/* Sends the progress of the prompt in llama.cpp's form: one event for each step that has computed a part of it. */
static void send_progress(struct stream *s, uint32_t i, const whit_buf *marks)
{
    const whit_job *job = s->ask->jobs[i];
    for (size_t at = 0; at + sizeof(whit_progress) <= marks->size_bytes; at += sizeof(whit_progress)) {
        whit_progress mark;
        memcpy(&mark, marks->data + at, sizeof mark);
        json_t *progress =
            json_pack("{s:I, s:I, s:I, s:f}", "total", (json_int_t)job->n_ids, "cache", (json_int_t)job->n_cached,
                      "processed", (json_int_t)mark.n_fed, "time_ms", (double)(mark.at_ns - job->started_ns) / 1e6);
        json_t *event = NULL;
        if (!s->ask->dialect) {
            event = envelope(s->ask, true);
            const char *key = s->ask->is_chat ? "delta" : "text";
            json_object_set_new(event, "choices",
                                json_pack("[{s:i, s:o, s:n}]", "index", (int)i, key,
                                          s->ask->is_chat ? json_object() : json_string(""), "finish_reason"));
        } else if (!s->ask->is_chat) {
            event = json_pack("{s:i, s:s, s:b}", "index", (int)i, "content", "", "stop", 0);
        }
        if (event) json_object_set(event, "prompt_progress", progress);
        json_decref(progress);
        if (event) send_event(s, event);
    }
}

/* A copy of what is new in a job, made with the engine's lock held. */
struct news {
    char *text;
    size_t n;
    whit_logprob *entries;
    size_t n_entries, n_all; /* n_entries: tokens whose log-probabilities are sent now; n_all: all tokens with
                              * log-probabilities so far */
    bool is_finished;        /* the job has ended */
    whit_buf progress;       /* new progress of the prompt */
    bool has_prompt;         /* the prompt can be sent: its log-probabilities are available or not requested */
    bool logs_prompt;        /* log-probabilities of the prompt must be sent before the answer */
};

static struct news take_news(struct stream *s, uint32_t i)
{
    whit_job *job = s->ask->jobs[i];
    size_t token_bytes = (1 + job->n_top) * sizeof(whit_logprob), n_all = job->logprobs_of.size_bytes / token_bytes;
    struct news news = {.n = job->text.size_bytes - s->parts[i].n_taken,
                        .n_entries = n_all - s->parts[i].n_logged,
                        .n_all = n_all,
                        .is_finished = job->finished};
    if (job->progress.size_bytes)
        whit_buf_append(&news.progress, job->progress.data + s->parts[i].n_progress_bytes,
                        job->progress.size_bytes - s->parts[i].n_progress_bytes);
    s->parts[i].n_progress_bytes = job->progress.size_bytes;
    if (s->ask->dialect && job->tokens.size_bytes > s->parts[i].n_token_bytes)
        whit_buf_append(&s->ask->state.tokens, job->tokens.data + s->parts[i].n_token_bytes,
                        job->tokens.size_bytes - s->parts[i].n_token_bytes);
    s->parts[i].n_token_bytes = job->tokens.size_bytes;
    /* The prompt's log-probabilities become available all at once; a prompt of one token has no log-probabilities. */
    news.has_prompt = !job->prompt_logprobs || job->n_ids == 1 || job->prompt_logprobs_of.size_bytes || job->finished;
    bool is_there = job->prompt_logprobs_of.size_bytes || (job->prompt_logprobs && job->n_ids == 1);
    news.logs_prompt = is_there && s->parts[i].n_prompt_logged < job->n_ids;
    if (news.n_entries > CHUNK_TOKENS) news.n_entries = CHUNK_TOKENS;
    if (news.n) news.text = malloc(news.n);
    if (news.text) memcpy(news.text, job->text.data + s->parts[i].n_taken, news.n);
    if (!news.text) news.n = 0;
    if (news.n_entries) news.entries = malloc(news.n_entries * token_bytes);
    if (news.entries)
        memcpy(news.entries, job->logprobs_of.data + s->parts[i].n_logged * token_bytes, news.n_entries * token_bytes);
    if (!news.entries) news.n_entries = 0;
    return news;
}

/* Writes log-probabilities of new tokens and returns whether there were any. For text completions it writes only those
 * of tokens whose text was sent, since a stop string could remove the others. */
static bool write_new_logs(struct stream *s, uint32_t i, const struct news *news, whit_buf *out)
{
    const whit_job *job = s->ask->jobs[i];
    size_t places[CHUNK_TOKENS], n = 0, n_chars = s->parts[i].n_chars;
    bool is_completion = !s->ask->is_chat && !s->ask->dialect && !s->ask->ollama;
    if (!s->parts[i].n_logged && is_completion && news->n_entries && !s->parts[i].place.detokenizer)
        whit_text_place_open(s->ask, i, &s->parts[i].place);
    for (; n < news->n_entries; n++) {
        whit_text_place *place = &s->parts[i].place;
        if (!is_completion) continue;
        if (!news->is_finished && place->n_chars + place->is_within >= n_chars) break;
        size_t at = whit_text_place_take(s->ask->api, place, news->entries[n * (1 + job->n_top)].id);
        places[n] = at < n_chars ? at : n_chars;
    }
    if (!n) return false;
    whit_logs logs = {.api = s->ask->api,
                      .form = s->ask->dialect && job->logs_drawn ? WHIT_LOGS_PROBS
                          : s->ask->dialect || s->ask->ollama    ? WHIT_LOGS_LIST
                          : s->ask->is_chat                      ? WHIT_LOGS_CHAT
                                                                 : WHIT_LOGS_COMPLETION,
                      .n_top = job->n_top,
                      .first_id = -1,
                      .parts = {NULL, news->entries},
                      .n_parts = {0, n},
                      .offsets = places};
    while (whit_logs_write(&logs, out)) {
    }
    s->parts[i].n_logged += n;
    return true;
}

/* Sends what is new in one answer. waits: if nothing is new, waits up to LOOK_MS for news. */
static void look_at_part(struct stream *s, uint32_t i, bool waits)
{
    whit_engine *engine = s->ask->api->engine;
    whit_job *job = s->ask->jobs[i];
    whit_engine_lock(engine);
    bool logs_prompt = job->prompt_logprobs_of.size_bytes && s->parts[i].n_prompt_logged < job->n_ids;
    if (waits && job->text.size_bytes == s->parts[i].n_taken && !job->finished && !logs_prompt)
        whit_engine_wait(engine, LOOK_MS);
    struct news news = take_news(s, i);
    whit_engine_unlock(engine);
    if (!s->ask->ollama) send_progress(s, i, &news.progress);
    if (news.logs_prompt) {
        send_prompt_logs(s, i); /* sent before any text of the answer */
    } else if (news.has_prompt) {
        whit_buf logs = {0};
        if (!s->parts[i].n_taken && !s->parts[i].n_chars) {
            const whit_buf *prompt = whit_ask_prompt_text(s->ask, i);
            s->parts[i].n_chars = whit_count_chars(prompt->data, prompt->size_bytes);
        }
        s->parts[i].n_taken += news.n;
        s->parts[i].n_chars += whit_count_chars(news.text, news.n);
        bool has_logs = write_new_logs(s, i, &news, &logs);
        bool is_over = news.is_finished && s->parts[i].n_logged == news.n_all;
        if (news.n || has_logs || is_over) send_part(s, i, news.text, news.n, has_logs ? &logs : NULL);
        if (is_over) finish_part(s, i);
        whit_buf_free(&logs);
    }
    free(news.text);
    free(news.entries);
    whit_buf_free(&news.progress);
}

/* Sends what is new in all answers. */
static void look(struct stream *s)
{
    bool all = true;
    for (uint32_t i = 0, n_looked = 0; i < s->ask->n; i++) {
        if (s->parts[i].over) continue;
        look_at_part(s, i, n_looked++ == 0);
        all &= s->parts[i].over;
    }
    if (!all) return;
    if (s->ask->include_usage && !s->ask->dialect) {
        json_t *event = envelope(s->ask, true);
        json_object_set_new(event, "choices", json_array());
        json_object_set_new(event, "usage", usage_json(s->ask));
        if (s->ask->jobs[0]->first_ns) json_object_set_new(event, "timings", whit_ask_timings(s->ask));
        send_event(s, event);
    }
    if (!s->ask->ollama && !s->ask->dialect) whit_buf_append_str(&s->out, "data: [DONE]\n\n");
    s->over = true;
}

static long read_stream(void *user, char *data, size_t room)
{
    struct stream *s = user;
    while (s->n_sent == s->out.size_bytes) {
        if (s->over) return 0;
        s->n_sent = s->out.size_bytes = 0;
        if (whit_socket_peer_left(s->ask->fd) || *s->ask->api->stop > 1) return -1;
        look(s);
        whit_json_keep_lines(&s->out);
        if (s->out.size_bytes == 0 && !s->ask->ollama && whit_now_ns() - s->last_ns > PING_MS * 1000000ull) {
            const char *ping = s->ask->dialect ? s->ask->dialect->ping : NULL;
            whit_buf_append_str(&s->out, ping ? ping : ": still at work\n\n");
            s->last_ns = whit_now_ns();
        }
        if (s->out.failed) return -1;
    }
    size_t n = s->out.size_bytes - s->n_sent < room ? s->out.size_bytes - s->n_sent : room;
    memcpy(data, s->out.data + s->n_sent, n);
    s->n_sent += n;
    return (long)n;
}

static void end_stream(void *user)
{
    struct stream *s = user;
    for (uint32_t i = 0; i < s->ask->n; i++) {
        whit_chat_parser_close(s->parts[i].parser);
        whit_text_place_close(&s->parts[i].place);
        free(s->parts[i].prompt_places);
    }
    end_ask(s->ask, 200);
    whit_buf_free(&s->out);
    free(s);
}

/* Waits until an answer has begun or failed, but at most PING_MS. Until then no status was sent, so that a load
 * balancer can send the request to another server if this one dies. Returns false if an answer failed before it had a
 * slot, because its deadline passed. */
static bool wait_for_start(const whit_ask *ask)
{
    bool refused = false;
    uint64_t until_ns = whit_now_ns() + PING_MS * 1000000ull;
    whit_engine_lock(ask->api->engine);
    while (whit_now_ns() < until_ns && !whit_socket_peer_left(ask->fd) && *ask->api->stop <= 1) {
        bool begun = false;
        for (uint32_t i = 0; i < ask->n; i++) {
            begun |= ask->jobs[i]->started || ask->jobs[i]->finished;
            refused |= ask->jobs[i]->finished && !ask->jobs[i]->started && ask->jobs[i]->error.status != WHIT_OK;
        }
        if (begun) break;
        whit_engine_wait(ask->api->engine, LOOK_MS);
    }
    whit_engine_unlock(ask->api->engine);
    return !refused;
}

static void start_stream(whit_ask *ask, whit_web_reply *reply)
{
    struct stream *s = calloc(1, sizeof *s);
    whit_error error = {.status = WHIT_ERROR_MEMORY, .message = "not enough memory for a stream; try again later"};
    bool ok = s != NULL;
    if (ok) s->ask = ask;
    for (uint32_t i = 0; ok && i < ask->n; i++) {
        s->parts[i].stream = s;
        s->parts[i].i = i;
        if (ask->is_chat)
            ok = whit_chat_parser_open(ask->api->chat, prompt_of(ask), ask->tools, on_event, &s->parts[i],
                                       &s->parts[i].parser, &error) == WHIT_OK;
    }
    if (!ok) {
        whit_api_fail_error(reply, &error);
        if (s)
            end_stream(s);
        else
            whit_ask_close(ask);
        return;
    }
    s->last_ns = whit_now_ns();
    reply->status = 200;
    reply->type = ask->ollama ? "application/x-ndjson" : "text/event-stream";
    if (ask->dialect && ask->dialect->type) reply->type = ask->dialect->type;
    reply->headers[2 * reply->n_headers] = "Cache-Control";
    reply->headers[2 * reply->n_headers++ + 1] = "no-cache";
    reply->headers[2 * reply->n_headers] = "X-Accel-Buffering";
    reply->headers[2 * reply->n_headers++ + 1] = "no";
    reply->stream = read_stream;
    reply->end_stream = end_stream;
    reply->stream_user = s;
}

void whit_ask_reply(whit_ask *ask, whit_web_reply *reply)
{
    reply->is_logged = true;
    if (reply->is_id_given)
        snprintf(ask->request_id, sizeof ask->request_id, "%s", reply->id);
    else
        snprintf(reply->id, sizeof reply->id, "%s", ask->id);
    if (ask->stream && wait_for_start(ask)) {
        start_stream(ask, reply);
        return;
    }
    const whit_job *failed = NULL;
    bool left = false, ended = false;
    for (uint32_t i = 0; i < ask->n; i++) {
        whit_engine_lock(ask->api->engine);
        while (!ask->jobs[i]->finished) {
            whit_engine_wait(ask->api->engine, LOOK_MS);
            left |= whit_socket_peer_left(ask->fd);
            ended |= *ask->api->stop > 1;
            if (left || ended)
                for (uint32_t k = 0; k < ask->n; k++) atomic_store(&ask->jobs[k]->cancelled, true);
        }
        whit_engine_unlock(ask->api->engine);
        if (ask->jobs[i]->error.status != WHIT_OK) failed = ask->jobs[i];
    }
    if (failed && !failed->started) {
        whit_api_fail(reply, 503, "server_error", NULL, "%s", failed->error.message);
        reply->headers[2 * reply->n_headers] = "Retry-After";
        reply->headers[2 * reply->n_headers++ + 1] = "1";
    } else if (failed)
        whit_api_fail_error(reply, &failed->error);
    /* The client has closed its sending half, and perhaps still reads: it gets this error and never an incomplete
     * answer that looks complete. */
    else if (left)
        whit_api_fail(reply, 499, "invalid_request_error", NULL, "the client closed the connection before the answer");
    else if (ended)
        whit_api_fail(reply, 503, "server_error", NULL, "the server is ending");
    else {
        reply_whole(ask, reply);
        return;
    }
    end_ask(ask, reply->status);
}
