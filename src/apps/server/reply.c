/* SPDX-License-Identifier: MIT
 * Answers as JSON: whole, or as server-sent events while they are written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "server/answers.h"
#include "server/ollama.h"

enum { LOOK_MS = 20, PING_MS = 10000 };

/* ---- parts of a reply -------------------------------------------------------------------------- */

static const char *finish_name(const whit_job *job, bool calls)
{
    /* What a time limit cut is not whole either. */
    if (job->finish != WHIT_FINISH_END && job->finish != WHIT_FINISH_STOP) return "length";
    return calls ? "tool_calls" : "stop";
}

static json_t *text_or_null(const char *text, size_t n)
{
    json_t *own = json_stringn(text ? text : "", n);
    return own ? own : json_null();
}

whit_buf whit_api_token_bytes(const whit_api *api, int32_t id)
{
    uint8_t few[64];
    size_t n = 0;
    whit_buf own = {0};
    if (whit_token_bytes(api->model, id, few, sizeof few, &n, NULL) == WHIT_OK)
        whit_buf_append(&own, few, n);
    else if (n > sizeof few && whit_buf_reserve(&own, n) &&
             whit_token_bytes(api->model, id, own.data, n, &n, NULL) == WHIT_OK)
        own.size_bytes = n;
    return own;
}

bool whit_api_is_text(const whit_buf *bytes)
{
    size_t n = bytes->size_bytes;
    return !n || (whit_utf8_valid_bytes(bytes->data, n) == n && !memchr(bytes->data, 0, n));
}

json_t *whit_api_byte_list(const whit_buf *bytes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < bytes->size_bytes; i++) json_array_append_new(list, json_integer(bytes->data[i]));
    return list;
}

/* Parts of characters as OpenAI writes them, bytes:\xe2\x80: a replacement would be the same for all. */
static json_t *token_json(const whit_buf *bytes)
{
    whit_buf text = {0};
    if (whit_api_is_text(bytes)) return text_or_null((const char *)bytes->data, bytes->size_bytes);
    whit_buf_append_str(&text, "bytes:");
    for (size_t i = 0; i < bytes->size_bytes; i++) whit_buf_printf(&text, "\\x%02x", bytes->data[i]);
    json_t *own = text_or_null((const char *)text.data, text.size_bytes);
    whit_buf_free(&text);
    return own;
}

/* Counts characters as clients do: code points, by their first bytes. */
static json_int_t count_chars(const whit_buf *text)
{
    json_int_t n_chars = 0;
    for (size_t i = 0; i < text->size_bytes; i++) n_chars += (text->data[i] & 0xC0) != 0x80;
    return n_chars;
}

/* Adds its characters to *n_chars. */
static json_t *logprob_entry(const whit_api *api, whit_logprob entry, json_int_t *n_chars)
{
    whit_buf bytes = whit_api_token_bytes(api, entry.id);
    double value = entry.logprob < -9999 ? -9999 : (double)entry.logprob;
    *n_chars += count_chars(&bytes);
    json_t *own = json_pack("{s:o, s:f, s:o, s:i}", "token", token_json(&bytes), "logprob", value, "bytes",
                            whit_api_byte_list(&bytes), "id", (int)entry.id);
    whit_buf_free(&bytes);
    return own;
}

/* Lists of tokens and their log-probabilities, as they grow. */
struct logged {
    json_t *content;                        /* a chat's */
    json_t *tokens, *values, *tops, *begin; /* a completion's */
    json_int_t n_chars;                     /* of the text before the next */
};

static struct logged logged_open(json_int_t n_chars)
{
    return (struct logged){json_array(), json_array(), json_array(), json_array(), json_array(), n_chars};
}

static void log_token(struct logged *to, const whit_ask *ask, const whit_logprob *entries, uint32_t n_top)
{
    json_int_t n_chars = to->n_chars, ignored = 0;
    json_t *own = logprob_entry(ask->api, entries[0], &to->n_chars), *list = json_array(), *map = json_object();
    for (uint32_t k = 1; k <= n_top; k++) {
        json_t *other = logprob_entry(ask->api, entries[k], &ignored);
        json_object_set(map, json_string_value(json_object_get(other, "token")), json_object_get(other, "logprob"));
        json_array_append_new(list, other);
    }
    json_array_append(to->tokens, json_object_get(own, "token"));
    json_array_append(to->values, json_object_get(own, "logprob"));
    json_array_append_new(to->tops, map);
    json_array_append_new(to->begin, json_integer(n_chars));
    json_object_set_new(own, "top_logprobs", list);
    json_array_append_new(to->content, own);
}

static const whit_buf *prompt_text(const whit_ask *ask, uint32_t i)
{
    return &ask->prompt_texts[i / ask->n_each];
}

/* The prompt's first token follows nothing: null, as OpenAI has it. One that was put in front of the text
 * takes no place in it. */
static void log_first(struct logged *to, const whit_ask *ask, uint32_t i)
{
    whit_buf bytes = whit_api_token_bytes(ask->api, ask->jobs[i]->ids[0]);
    const whit_buf *prompt = prompt_text(ask, i);
    size_t n = bytes.size_bytes;
    bool in_text = n <= prompt->size_bytes && n && !memcmp(prompt->data, bytes.data, n);
    json_array_append_new(to->tokens, token_json(&bytes));
    json_array_append_new(to->values, json_null());
    json_array_append_new(to->tops, json_null());
    json_array_append_new(to->begin, json_integer(to->n_chars));
    if (in_text) to->n_chars += count_chars(&bytes);
    whit_buf_free(&bytes);
}

static json_t *logged_close(struct logged *to, bool is_chat)
{
    if (is_chat) {
        json_decref(to->tokens), json_decref(to->values), json_decref(to->tops), json_decref(to->begin);
        return json_pack("{s:o, s:n}", "content", to->content, "refusal");
    }
    json_decref(to->content);
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", to->tokens, "token_logprobs", to->values, "top_logprobs",
                     to->tops, "text_offset", to->begin);
}

static json_int_t chars_before(const whit_ask *ask, uint32_t i)
{
    return count_chars(prompt_text(ask, i));
}

/* Of n tokens of an answer, in front of which are *n_chars characters: from then on, behind them. */
static json_t *logprobs_json(const whit_ask *ask, const whit_logprob *entries, uint32_t n_top, uint32_t n,
                             json_int_t *n_chars)
{
    struct logged logged = logged_open(*n_chars);
    for (uint32_t i = 0; i < n; i++, entries += 1 + n_top) log_token(&logged, ask, entries, n_top);
    *n_chars = logged.n_chars;
    return logged_close(&logged, ask->is_chat);
}

/* Of a job, as a chat has them or as completions do. */
static json_t *all_logprobs(const whit_ask *ask, uint32_t i_job, bool as_chat)
{
    const whit_job *job = ask->jobs[i_job];
    size_t entry = 1 + job->n_top, n = job->logprobs_of.size_bytes / (entry * sizeof(whit_logprob));
    size_t n_prompt = job->prompt_logprobs_of.size_bytes / (entry * sizeof(whit_logprob));
    const whit_logprob *of_prompt = (const whit_logprob *)job->prompt_logprobs_of.data;
    const whit_logprob *of_answer = (const whit_logprob *)job->logprobs_of.data;
    struct logged logged = logged_open(0);
    if (job->prompt_logprobs)
        log_first(&logged, ask, i_job);
    else
        logged.n_chars = chars_before(ask, i_job);
    for (size_t i = 0; i < n_prompt; i++) log_token(&logged, ask, of_prompt + i * entry, job->n_top);
    for (size_t i = 0; i < n; i++) log_token(&logged, ask, of_answer + i * entry, job->n_top);
    return logged_close(&logged, as_chat);
}

static json_t *usage_json(const whit_ask *ask)
{
    json_int_t prompt = 0, generated = 0, cached = 0;
    for (uint32_t i = 0; i < ask->n; i++) generated += ask->jobs[i]->n_generated;
    for (uint32_t i = 0; i < ask->n; i += ask->n_each) { /* a prompt counts once */
        prompt += (json_int_t)ask->jobs[i]->n_ids;
        cached += ask->jobs[i]->n_cached;
    }
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", prompt, "completion_tokens", generated,
                     "total_tokens", prompt + generated, "prompt_tokens_details", "cached_tokens", cached);
}

static json_t *envelope(const whit_ask *ask, bool chunk)
{
    const char *object = ask->is_chat ? chunk ? "chat.completion.chunk" : "chat.completion" : "text_completion";
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", ask->id, "object", object, "created", (json_int_t)ask->created,
                     "model", ask->api->name, "system_fingerprint", whit_version());
}

json_t *whit_ask_logprobs(const whit_ask *ask)
{
    json_t *own = all_logprobs(ask, 0, true), *list = json_incref(json_object_get(own, "content"));
    json_decref(own);
    return list;
}

json_t *whit_ask_timings(const whit_ask *ask)
{
    const whit_job *job = ask->jobs[0];
    double prompt_ms = (double)(job->first_ns - job->started_ns) / 1e6;
    double rest_ms = (double)(job->done_ns - job->first_ns) / 1e6;
    double n_prompt = (double)(job->n_ids - job->n_cached),
           n_rest = job->n_generated - 1.0; /* the first came at once */
    return json_pack("{s:I, s:I, s:f, s:f, s:I, s:f, s:f}", "cache_n", (json_int_t)job->n_cached, "prompt_n",
                     (json_int_t)n_prompt, "prompt_ms", prompt_ms, "prompt_per_second",
                     prompt_ms > 0 ? n_prompt / prompt_ms * 1e3 : 0, "predicted_n", (json_int_t)job->n_generated,
                     "predicted_ms", rest_ms, "predicted_per_second", rest_ms > 0 ? n_rest / rest_ms * 1e3 : 0);
}

/* ---- whole ------------------------------------------------------------------------------------- */

/* From which a parser knows whether the prompt opened the thinking; an answer that a schema holds has none. */
static const whit_chat_prompt *prompt_of(const whit_ask *ask)
{
    return ask->is_formed ? NULL : ask->prompt;
}

/* Ids as in a stream: no two answers have the same. */
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
    if (whit_chat_parser_push(parser, job->text.data ? (const char *)job->text.data : "", job->text.size_bytes,
                              error) == WHIT_OK &&
        whit_chat_parser_flush(parser, error) == WHIT_OK) {
        const char *text = whit_chat_parser_message(parser, &n);
        *calls = whit_chat_parser_n_calls(parser) > 0;
        message = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
        if (message) {
            json_object_set_new(message, "refusal", json_null());
            name_calls(ask, message);
            if (!json_object_get(message, "content")) json_object_set_new(message, "content", json_null());
        } else {
            whit_fail(error, WHIT_ERROR_FORMAT, "the answer could not be read");
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
        whit_buf_append(&text, prompt_text(ask, i)->data, prompt_text(ask, i)->size_bytes);
        whit_buf_append(&text, job->text.data, job->text.size_bytes);
        json_object_set_new(choice, "text", text_or_null((const char *)text.data, text.size_bytes));
        whit_buf_free(&text);
    }
    json_object_set_new(choice, "logprobs", job->logprobs ? all_logprobs(ask, i, ask->is_chat) : json_null());
    json_object_set_new(choice, "finish_reason", json_string(finish_name(job, calls)));
    return choice;
}

static void reply_whole(whit_ask *ask, whit_web_reply *reply)
{
    json_t *body = envelope(ask, false), *choices = json_array();
    whit_error error;
    for (uint32_t i = 0; i < ask->n && choices; i++) {
        json_t *choice = choice_of(ask, i, &error);
        if (choice) {
            json_array_append_new(choices, choice);
            continue;
        }
        whit_api_fail_error(reply, &error);
        json_decref(choices);
        json_decref(body);
        return;
    }
    if (ask->ollama) {
        const json_t *choice = json_array_get(choices, 0), *message = json_object_get(choice, "message");
        const json_t *text = json_object_get(ask->is_chat ? message : choice, ask->is_chat ? "content" : "text");
        const json_t *thinking = json_object_get(message, "reasoning_content");
        whit_api_reply(reply,
                       whit_ollama_line(ask, json_string_value(text), json_string_length(text),
                                        json_string_value(thinking), json_string_length(thinking),
                                        json_object_get(message, "tool_calls"), true));
        json_decref(choices);
        json_decref(body);
        return;
    }
    if (ask->dialect) {
        whit_api_reply(reply, ask->dialect->whole(ask, json_array_get(choices, 0)));
        json_decref(choices);
        json_decref(body);
        return;
    }
    json_object_set_new(body, "choices", choices);
    json_object_set_new(body, "usage", usage_json(ask));
    if (ask->jobs[0]->first_ns) json_object_set_new(body, "timings", whit_ask_timings(ask));
    whit_api_reply(reply, body);
}

/* ---- streamed ---------------------------------------------------------------------------------- */

struct stream {
    whit_ask *ask;
    whit_buf out; /* events that are to be sent */
    size_t n_sent;
    struct {
        struct stream *stream;
        uint32_t i;
        whit_chat_parser *parser;
        size_t n_taken;     /* bytes of its text */
        uint32_t n_logged;  /* tokens whose log-probabilities are out */
        json_int_t n_chars; /* to their end */
        uint32_t n_calls;
        bool begun, over;
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
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    if (text) {
        whit_buf_append_str(&s->out, s->ask->ollama ? "" : "data: ");
        whit_buf_append_str(&s->out, text);
        whit_buf_append_str(&s->out, s->ask->ollama ? "\n" : "\n\n");
    }
    free(text);
    json_decref(event);
    s->last_ns = whit_now_ns();
}

/* A chunk with a delta (chat) or a text; takes both over. */
static void send_chunk(struct stream *s, uint32_t i, json_t *piece, json_t *logprobs, const char *finish)
{
    json_t *event = envelope(s->ask, true);
    json_t *choice =
        json_pack("{s:i, s:o, s:o, s:o}", "index", (int)i, s->ask->is_chat ? "delta" : "text", piece, "logprobs",
                  logprobs ? logprobs : json_null(), "finish_reason", finish ? json_string(finish) : json_null());
    json_object_set_new(event, "choices", json_pack("[o]", choice));
    send_event(s, event);
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
    if (s->ask->ollama) { /* calls go out whole, at the end */
        if (event->kind == WHIT_CHAT_TEXT)
            send_event(s, whit_ollama_line(s->ask, event->text, event->text_bytes, NULL, 0, NULL, false));
        if (event->kind == WHIT_CHAT_THINKING)
            send_event(s, whit_ollama_line(s->ask, NULL, 0, event->text, event->text_bytes, NULL, false));
        return true;
    }
    json_t *text = text_or_null(event->text, event->text_bytes), *delta = NULL;
    char id[64];
    switch (event->kind) {
    case WHIT_CHAT_TEXT: delta = json_pack("{s:o}", "content", text); break;
    case WHIT_CHAT_THINKING: delta = json_pack("{s:o}", "reasoning_content", text); break;
    case WHIT_CHAT_CALL_BEGIN:
        snprintf(id, sizeof id, "call_%s_%u", s->ask->id, event->i_call);
        s->parts[part->i].n_calls++;
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

/* The end of an answer for Ollama's clients: its calls, and a line with the counts. */
static void end_ollama(struct stream *s, uint32_t i)
{
    size_t n = 0;
    const char *text = s->parts[i].parser ? whit_chat_parser_message(s->parts[i].parser, &n) : NULL;
    json_t *message = text ? json_loadb(text, n, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *calls = json_object_get(message, "tool_calls");
    json_t *line = json_array_size(calls) ? whit_ollama_line(s->ask, NULL, 0, NULL, 0, calls, false) : NULL;
    if (json_object_get(json_object_get(line, "message"), "tool_calls")) send_event(s, json_incref(line));
    json_decref(line);
    json_decref(message);
    send_event(s, whit_ollama_line(s->ask, NULL, 0, NULL, 0, NULL, true));
}

/* What is new of one answer. */
static void send_part(struct stream *s, uint32_t i, const char *text, size_t n, json_t *logprobs, json_t *of_prompt,
                      bool finished)
{
    const whit_job *job = s->ask->jobs[i];
    if (!s->parts[i].begun && !s->ask->ollama) {
        s->parts[i].begun = true;
        if (s->ask->dialect)
            s->ask->dialect->begin(s->ask, &s->out), json_decref(of_prompt);
        else if (s->ask->is_chat)
            send_chunk(s, i, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL, NULL);
        else if (s->ask->echo)
            send_chunk(s, i,
                       text_or_null((const char *)prompt_text(s->ask, i)->data, prompt_text(s->ask, i)->size_bytes),
                       of_prompt, NULL);
    }
    if (logprobs && s->ask->is_chat)
        send_chunk(s, i, json_pack("{s:s}", "content", ""), logprobs, NULL), logprobs = NULL;
    if (s->ask->dialect) json_decref(logprobs), logprobs = NULL; /* in whole answers alone */
    if (n && s->ask->is_chat)
        whit_chat_parser_push(s->parts[i].parser, text, n, NULL);
    else if (n && s->ask->dialect)
        s->ask->dialect->event(s->ask, &(whit_chat_event){.kind = WHIT_CHAT_TEXT, .text = text, .text_bytes = n},
                               &s->out);
    else if (n && s->ask->ollama)
        send_event(s, whit_ollama_line(s->ask, text, n, NULL, 0, NULL, false));
    else if (n || logprobs)
        send_chunk(s, i, text_or_null(text, n), logprobs, NULL);
    if (!finished) return;
    s->parts[i].over = true;
    if (s->ask->is_chat) whit_chat_parser_flush(s->parts[i].parser, NULL);
    if (job->error.status != WHIT_OK)
        send_error(s, &job->error);
    else if (s->ask->dialect)
        s->ask->dialect->end(s->ask, &s->out);
    else if (s->ask->ollama)
        end_ollama(s, i);
    else
        send_chunk(s, i, s->ask->is_chat ? json_object() : json_string(""), NULL,
                   finish_name(job, s->parts[i].n_calls > 0));
}

/* Looks for news of every answer, waiting a little where there are none. */
static void look(struct stream *s)
{
    whit_engine *engine = s->ask->api->engine;
    bool all = true, waited = false;
    for (uint32_t i = 0; i < s->ask->n; i++) {
        whit_job *job = s->ask->jobs[i];
        if (s->parts[i].over) continue;
        whit_engine_lock(engine);
        if (!waited && job->text.size_bytes == s->parts[i].n_taken && !job->finished)
            whit_engine_wait(engine, LOOK_MS), waited = true;
        size_t n = job->text.size_bytes - s->parts[i].n_taken;
        char *text = n ? malloc(n) : NULL;
        if (text) memcpy(text, job->text.data + s->parts[i].n_taken, n);
        bool finished = job->finished;
        size_t entry_bytes = (1 + job->n_top) * sizeof(whit_logprob);
        /* The prompt goes out with its log-probabilities, all of which come at once; that of one token has none. */
        bool waits = job->prompt_logprobs && job->n_ids > 1 && !job->prompt_logprobs_of.size_bytes && !finished &&
            !s->parts[i].begun;
        bool prompt_now = job->prompt_logprobs && !waits && !s->parts[i].begun;
        uint32_t n_logged = s->parts[i].n_logged,
                 n_log = (uint32_t)(job->logprobs_of.size_bytes / entry_bytes) - n_logged;
        whit_logprob *entries = n_log ? malloc(n_log * entry_bytes) : NULL;
        if (entries) memcpy(entries, job->logprobs_of.data + n_logged * entry_bytes, n_log * entry_bytes);
        whit_engine_unlock(engine);
        json_t *logprobs = NULL, *of_prompt = NULL;
        if (prompt_now) { /* final: the engine has written all of it */
            struct logged logged = logged_open(0);
            log_first(&logged, s->ask, i);
            size_t n_prompt = job->prompt_logprobs_of.size_bytes / entry_bytes;
            const whit_logprob *prompt_entries = (const whit_logprob *)job->prompt_logprobs_of.data;
            for (size_t k = 0; k < n_prompt; k++)
                log_token(&logged, s->ask, prompt_entries + k * (1 + job->n_top), job->n_top);
            of_prompt = logged_close(&logged, false);
        }
        if (entries) {
            if (!n_logged) s->parts[i].n_chars = chars_before(s->ask, i);
            logprobs = logprobs_json(s->ask, entries, job->n_top, n_log, &s->parts[i].n_chars);
        }
        if (text) s->parts[i].n_taken += n;
        if (entries) s->parts[i].n_logged += n_log;
        if (text || finished || logprobs || of_prompt)
            send_part(s, i, text, text ? n : 0, logprobs, of_prompt, finished);
        all &= s->parts[i].over;
        free(text);
        free(entries);
    }
    if (!all) return;
    if (s->ask->include_usage && !s->ask->dialect) {
        json_t *event = envelope(s->ask, true);
        json_object_set_new(event, "choices", json_array());
        json_object_set_new(event, "usage", usage_json(s->ask));
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
        if (whit_web_client_left(s->ask->fd) || *s->ask->api->stop > 1) return -1;
        look(s);
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

/* A line of the log, once all is answered or the client has left. */
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
        json_array_append_new(finishes,
                              json_string(!job->finished     ? "cancelled"
                                              : job->is_late ? "timeout"
                                                             : names[job->finish]));
        if (api->log.texts)
            json_array_append_new(answers, text_or_null((const char *)job->text.data, job->text.size_bytes));
    }
    whit_engine_unlock(api->engine);
    char key[20];
    snprintf(key, sizeof key, "%08x", (unsigned)ask->key);
    json_t *line =
        json_pack("{s:s, s:s, s:i, s:s, s:b, s:I, s:I, s:I, s:o, s:I, s:I, s:I}", "id", ask->id, "api",
                  ask->path          ? ask->path
                      : ask->is_chat ? "chat"
                                     : "completion",
                  "status", status, "key", key, "stream", ask->stream, "prompt_tokens", (json_int_t)n_prompt,
                  "cached_tokens", (json_int_t)n_cached, "generated_tokens", (json_int_t)n_generated, "finish",
                  finishes, "queue_us", (json_int_t)(queued_ns ? (queued_ns - begun_ns) / 1000 : 0), "first_token_us",
                  (json_int_t)(first_ns ? (first_ns - begun_ns) / 1000 : 0), "total_us",
                  (json_int_t)((whit_now_ns() - ask->begun_ns) / 1000));
    if (api->log.texts) {
        json_object_set_new(line, "request", json_string(ask->body ? ask->body : ""));
        json_object_set(line, "answers", answers);
    }
    json_decref(answers);
    whit_request_log_write(&api->log, line);
}

static void end_stream(void *user)
{
    struct stream *s = user;
    for (uint32_t i = 0; i < s->ask->n; i++) whit_chat_parser_close(s->parts[i].parser);
    log_ask(s->ask, 200);
    whit_ask_close(s->ask);
    whit_buf_free(&s->out);
    free(s);
}

/* Until an answer has begun, failed, or PING_MS went by: a request that waits for a slot has no status yet, so
 * that a balancer may give it to another server where this one dies. False: it waited for too long. */
static bool wait_for_start(const whit_ask *ask)
{
    bool refused = false;
    uint64_t until_ns = whit_now_ns() + PING_MS * 1000000ull;
    whit_engine_lock(ask->api->engine);
    while (whit_now_ns() < until_ns && !whit_web_client_left(ask->fd) && *ask->api->stop <= 1) {
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
    whit_error error = {.status = WHIT_ERROR_MEMORY, .message = "out of memory"};
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
            left |= whit_web_client_left(ask->fd);
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
    else if (left) /* seen by clients that closed only their half: never half an answer as a whole one */
        whit_api_fail(reply, 499, "invalid_request_error", NULL, "the client closed the connection before the answer");
    else if (ended)
        whit_api_fail(reply, 503, "server_error", NULL, "the server is ending");
    else
        reply_whole(ask, reply);
    log_ask(ask, reply->status);
    whit_ask_close(ask);
}
