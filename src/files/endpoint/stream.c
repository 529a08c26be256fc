/* SPDX-License-Identifier: MIT */
#include "endpoint/stream.h"
#include "base/items.h"

#include <stdio.h>

static bool fail_stream(whit_sse *s, const char *why)
{
    if (!s->failed) snprintf(s->why, sizeof s->why, "%s", why);
    s->failed = true;
    return false;
}

static void append_string(whit_buf *buf, const json_t *value)
{
    if (json_is_string(value)) whit_buf_append(buf, json_string_value(value), json_string_length(value));
}

static bool is_id(const whit_buf *own, const json_t *id)
{
    return own->size_bytes == json_string_length(id) && memcmp(own->data, json_string_value(id), own->size_bytes) == 0;
}

/* Returns the index in s->calls of the call that a piece belongs to. `i` is the index that the piece states. Some
 * servers leave the index out, or state 0 for every call; therefore a piece with a name and an id belongs, if call `i`
 * has another id, to the call with its id, or to a new call if that does not exist; from then on, a piece without a
 * name or id belongs to the last call. */
static json_int_t place_of(whit_sse *s, json_int_t i, const json_t *id, const json_t *name)
{
    bool begins = json_string_length(id) && json_string_length(name);
    if (!begins) return s->is_moved ? (json_int_t)s->n_calls - 1 : i;
    if (i < 0 || (size_t)i >= s->n_calls || !s->calls[i].id.size_bytes || is_id(&s->calls[i].id, id)) return i;
    s->is_moved = true;
    for (size_t k = 0; k < s->n_calls; k++)
        if (s->calls[k].id.size_bytes && is_id(&s->calls[k].id, id)) return (json_int_t)k;
    return (json_int_t)s->n_calls;
}

/* Appends a piece of a tool call to the call that place_of finds. Its id and name arrive in one piece, its arguments in
 * several. */
static bool add_call(whit_sse *s, const json_t *piece)
{
    const json_t *index = json_object_get(piece, "index"), *function = json_object_get(piece, "function");
    json_int_t i;
    if (json_is_integer(index))
        i = json_integer_value(index);
    else
        i = (json_int_t)(s->n_calls ? s->n_calls - 1 : 0);
    i = place_of(s, i, json_object_get(piece, "id"), json_object_get(function, "name"));
    if (i < 0 || i >= WHIT_SSE_CALLS_MAX)
        return fail_stream(s, "the answer makes too many calls at once: at most 64 are possible");
    struct whit_sse_call *call = &s->calls[i];
    if ((size_t)i >= s->n_calls) s->n_calls = (size_t)i + 1;
    if (!call->id.size_bytes) append_string(&call->id, json_object_get(piece, "id"));
    if (!call->name.size_bytes) append_string(&call->name, json_object_get(function, "name"));
    append_string(&call->arguments, json_object_get(function, "arguments"));
    return true;
}

static bool take_event(whit_sse *s, const char *data, size_t n)
{
    json_error_t at;
    size_t i;
    json_t *piece;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) return s->has_ended = s->is_done = true;
    json_t *event = json_loadb(data, n, JSON_ALLOW_NUL, &at);
    if (!event) return fail_stream(s, "a line of the streamed answer is not JSON: is the endpoint OpenAI's API?");
    s->n_events++;
    const json_t *wrong = json_object_get(event, "error"), *usage = json_object_get(event, "usage");
    if (wrong && !json_is_null(wrong)) {
        const char *message = json_string_value(json_is_object(wrong) ? json_object_get(wrong, "message") : wrong);
        snprintf(s->why, sizeof s->why, "the server says: %.150s", message ? message : "an error");
        s->failed = true;
    }
    if (json_is_object(usage)) {
        json_decref(s->usage);
        s->usage = json_incref((json_t *)(uintptr_t)usage);
    }
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
    const json_t *delta = json_object_get(choice, "delta"), *text = json_object_get(delta, "content");
    if (!delta) text = json_object_get(choice, "text"); /* the answer is one of /completions */
    append_string(&s->text, text);
    if (json_string_length(text) && s->on_text) s->on_text(s->user, json_string_value(text), json_string_length(text));
    json_array_foreach(json_object_get(delta, "tool_calls"), i, piece) if (!add_call(s, piece)) break;
    json_t *finish = json_object_get(choice, "finish_reason");
    if (json_is_string(finish)) {
        json_decref(s->finish);
        s->finish = json_incref(finish);
        s->is_done = true;
    }
    json_decref(event);
    return !s->failed;
}

/* Parses a line of the stream, without its line feed. Only "data:" lines count; comments, other fields and empty lines
 * are skipped. */
static bool take_line(whit_sse *s, const char *line, size_t n)
{
    if (s->has_ended) return true;
    if (n && line[n - 1] == '\r') n--;
    if (n < 5 || memcmp(line, "data:", 5) != 0) return true;
    line += 5, n -= 5;
    if (n && *line == ' ') line++, n--;
    return !n || take_event(s, line, n);
}

bool whit_sse_push(whit_sse *s, const char *data, size_t n)
{
    if (s->failed) return false;
    if (!s->is_stream && !whit_buf_append(&s->body, data, n)) return fail_stream(s, "not enough memory for an answer");
    if (!s->is_stream) { /* an answer that does not begin like an event stream is treated as one JSON object */
        size_t blanks = s->n_blanks;
        const char *body = whit_chars(&s->body);
        while (blanks < s->body.size_bytes && strchr(" \t\r\n", body[blanks]) && body[blanks]) blanks++;
        s->n_blanks = blanks;
        if (blanks + 5 > s->body.size_bytes) return true;
        s->is_stream = body[blanks] == ':' || memcmp(body + blanks, "data:", 5) == 0 ||
            memcmp(body + blanks, "event", 5) == 0 || memcmp(body + blanks, "retry", 5) == 0 ||
            memcmp(body + blanks, "id:", 3) == 0;
        if (!s->is_stream) return true;
        whit_buf all = s->body;
        s->body = (whit_buf){0};
        bool ok = whit_sse_push(s, whit_chars(&all) + blanks, all.size_bytes - blanks);
        whit_buf_free(&all);
        return ok;
    }
    for (const char *end; n && (end = memchr(data, '\n', n)); n -= (size_t)(end + 1 - data), data = end + 1) {
        bool ok;
        if (s->line.size_bytes) {
            ok = whit_buf_append(&s->line, data, (size_t)(end - data)) &&
                take_line(s, whit_chars(&s->line), s->line.size_bytes);
            s->line.size_bytes = 0;
        } else {
            ok = take_line(s, data, (size_t)(end - data));
        }
        if (!ok) return s->failed ? false : fail_stream(s, "not enough memory for an answer");
    }
    return !n || whit_buf_append(&s->line, data, n) || fail_stream(s, "not enough memory for an answer");
}

/* Returns whether the answer needs no repetition: it is not a stream, the end of the stream was received, or parsing
 * has failed (also because the server reported an error). */
static bool sse_is_whole(const whit_sse *s)
{
    return !s->is_stream || s->is_done || s->failed;
}

static json_t *string_of(const whit_buf *buf)
{
    json_t *value = json_stringn(buf->size_bytes ? whit_chars(buf) : "", buf->size_bytes);
    return value ? value : json_string("");
}

static json_t *put_together(const whit_sse *s)
{
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", string_of(&s->text));
    json_t *calls = json_array();
    for (size_t i = 0; i < s->n_calls; i++)
        json_array_append_new(calls,
                              json_pack("{s:o, s:s, s:{s:o, s:o}}", "id", string_of(&s->calls[i].id), "type",
                                        "function", "function", "name", string_of(&s->calls[i].name), "arguments",
                                        string_of(&s->calls[i].arguments)));
    if (s->n_calls) json_object_set(message, "tool_calls", calls);
    json_decref(calls);
    return json_pack("{s:[{s:o, s:O?}], s:O?}", "choices", "message", message, "finish_reason", s->finish, "usage",
                     s->usage);
}

whit_status whit_sse_finish(whit_sse *s, json_t **answer, whit_error *error)
{
    json_error_t at;
    *answer = NULL;
    if (s->is_stream && !s->failed && s->line.size_bytes) /* the last line may lack its line end */
        (void)take_line(s, whit_chars(&s->line), s->line.size_bytes);
    s->line.size_bytes = 0;
    if (s->failed) return whit_fail(error, WHIT_ERROR_FORMAT, "%s", s->why);
    if (!s->is_stream) {
        *answer = json_loadb(s->body.size_bytes ? whit_chars(&s->body) : "", s->body.size_bytes, JSON_ALLOW_NUL, &at);
        return *answer
            ? WHIT_OK
            : whit_fail(error, WHIT_ERROR_FORMAT, "the endpoint's answer is not JSON: line %d: %s", at.line, at.text);
    }
    if (!s->is_done)
        return whit_fail(error, WHIT_ERROR_FORMAT, "the endpoint's answer was cut off before its end; try again");
    *answer = put_together(s);
    return *answer ? WHIT_OK : whit_fail_memory(error, "an answer", s->text.size_bytes);
}

/* Discards the received data; called before each attempt. */
static void reset_stream(whit_sse *s)
{
    whit_buf *bufs[] = {&s->line, &s->body, &s->text};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) whit_buf_free(bufs[i]);
    for (size_t i = 0; i < s->n_calls; i++) {
        whit_buf_free(&s->calls[i].id);
        whit_buf_free(&s->calls[i].name);
        whit_buf_free(&s->calls[i].arguments);
    }
    json_decref(s->usage);
    json_decref(s->finish);
    *s = (whit_sse){.on_text = s->on_text, .user = s->user};
}

void whit_sse_free(whit_sse *s)
{
    reset_stream(s);
}

static void begin_answer(void *user)
{
    reset_stream(user);
}

static bool take_data(void *user, const char *data, size_t n)
{
    return whit_sse_push(user, data, n);
}

static bool has_ended(void *user)
{
    const whit_sse *s = user;
    return s->has_ended;
}

static bool is_whole(void *user)
{
    return sse_is_whole(user);
}

whit_endpoint_sink whit_sse_sink(whit_sse *s)
{
    return (whit_endpoint_sink){begin_answer, take_data, has_ended, is_whole, s};
}
