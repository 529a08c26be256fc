/* SPDX-License-Identifier: MIT
 * llama.cpp's own API: POST /completion and /infill, which editors ask. */
#include <stdlib.h>
#include <string.h>

#include "server/dialect.h"
#include "server/endpoints.h"
#include "server/fields.h"

enum { MOST_PROBS = 20 };

/* ---- requests ------------------------------------------------------------------------------------ */

/* A text that may be absent, behind what is there. */
static bool append_text(const json_t *body, const char *key, whit_buf *out, whit_web_reply *reply)
{
    const json_t *own = json_object_get(body, key);
    if (!own || json_is_null(own)) return true;
    if (!json_is_string(own)) return whit_field_refuse(reply, key, "expected a text");
    return whit_buf_append(out, json_string_value(own), json_string_length(own)) ||
        whit_field_refuse(reply, key, "out of memory");
}

/* What stands in front: other files first, then the text before the gap. */
static bool read_prefix(const json_t *body, whit_buf *prefix, whit_web_reply *reply)
{
    const json_t *files;
    if (!whit_field_list(body, "input_extra", &files, reply)) return false;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        if (!append_text(file, "text", prefix, reply)) return false;
        whit_buf_append_str(prefix, "\n");
    }
    return append_text(body, "input_prefix", prefix, reply) && append_text(body, "prompt", prefix, reply);
}

/* As OpenAI has it; NULL: refused. */
static json_t *translate(const json_t *body, bool infill, whit_web_reply *reply)
{
    json_t *own = json_copy((json_t *)body), *most = json_object_get(body, "n_predict");
    const json_t *prompt = json_object_get(body, "prompt");
    const json_t *seed = json_object_get(body, "seed");
    whit_buf prefix = {0}, suffix = {0};
    bool ok = own != NULL;
    if (ok && infill) {
        ok = read_prefix(body, &prefix, reply) && append_text(body, "input_suffix", &suffix, reply);
        if (ok) json_object_set_new(own, "prompt", whit_dialect_text(prefix.data, prefix.size_bytes));
        if (ok) json_object_set_new(own, "suffix", whit_dialect_text(suffix.data, suffix.size_bytes));
        json_object_set_new(own, "infill", json_true());
    } else if (ok && json_is_array(prompt) && !json_is_integer(json_array_get(prompt, 0))) {
        ok = whit_field_refuse(reply, "prompt", "a list of prompts is for /v1/completions");
    }
    if (most && !json_is_null(most)) /* below zero: as many as fit */
        json_object_set_new(own, "max_tokens",
                            json_is_number(most) && json_number_value(most) < 0 ? json_integer(1 << 30)
                                                                                : json_incref(most));
    else if (!json_object_get(body, "max_tokens"))
        json_object_set_new(own, "max_tokens", json_integer(1 << 30));
    double n_logged = 0;
    ok = ok && whit_field_count(body, "n_probs", 0, MOST_PROBS, &n_logged, reply);
    if (n_logged > 0) json_object_set_new(own, "logprobs", json_integer((json_int_t)n_logged));
    json_object_del(own, "n"); /* OpenAI's, as is echo: the answer is one, and alone */
    json_object_del(own, "echo");
    if (json_is_number(seed) && json_number_value(seed) < 0) json_object_del(own, "seed"); /* drawn */
    whit_buf_free(&prefix);
    whit_buf_free(&suffix);
    if (ok) return own;
    json_decref(own);
    return NULL;
}

/* ---- replies ------------------------------------------------------------------------------------- */

static json_t *piece(const void *text, size_t n, bool stop)
{
    return json_pack("{s:i, s:o, s:b}", "index", 0, "content", whit_dialect_text(text, n), "stop", stop);
}

static json_t *finished(const whit_ask *ask, json_t *own)
{
    const whit_job *job = ask->jobs[0];
    const char *type = job->finish == WHIT_FINISH_END ? "eos" : job->finish == WHIT_FINISH_STOP ? "word" : "limit";
    json_t *rest = json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:I}", "model", ask->api->name, "stop_type", type,
                             "stopping_word", job->stopped_by ? job->stopped_by : "", "truncated", 0,
                             "tokens_predicted", (json_int_t)job->n_generated, "tokens_evaluated",
                             (json_int_t)job->n_ids, "tokens_cached", (json_int_t)job->n_cached);
    if (job->first_ns) json_object_set_new(rest, "timings", whit_ask_timings(ask));
    json_object_update(own, rest);
    json_decref(rest);
    return own;
}

static json_t *whole(whit_ask *ask, const json_t *choice)
{
    const json_t *text = json_object_get(choice, "text");
    json_t *own = finished(ask, piece(json_string_value(text), json_string_length(text), true));
    return own;
}

/* Takes the event over; log-probabilities that wait go along. */
static void send(whit_ask *ask, json_t *event, whit_buf *out)
{
    whit_buf *logs = &ask->state.logs;
    whit_buf_append_str(out, "data: ");
    whit_append_open(out, event);
    if (logs->size_bytes) {
        whit_buf_append_str(out, ",\"completion_probabilities\":");
        whit_buf_append(out, logs->data, logs->size_bytes);
        logs->size_bytes = 0;
    }
    whit_buf_append_str(out, "}\n\n");
    json_decref(event);
}

static void begin(whit_ask *ask, whit_buf *out)
{
    (void)ask, (void)out;
}

static void event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    send(ask, piece(event->text, event->text_bytes, false), out);
}

static void end(whit_ask *ask, whit_buf *out)
{
    send(ask, finished(ask, piece("", 0, true)), out);
}

static void fail(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    send(ask, json_pack("{s:{s:s, s:s, s:i}}", "error", "message", error->message, "type", "server_error", "code", 500),
         out);
}

static const whit_dialect dialect = {
    .whole = whole, .begin = begin, .event = event, .end = end, .fail = fail, .logs_name = "completion_probabilities"};

static void answer_call(whit_call *call, bool infill)
{
    json_t *own = translate(call->body, infill, call->reply);
    whit_ask *ask = own ? whit_ask_open(call, own, false) : NULL;
    json_decref(own);
    if (!ask) return;
    ask->dialect = &dialect;
    ask->path = infill ? "infill" : "llama_completion";
    whit_ask_reply(ask, call->reply);
}

void whit_completion_post(whit_call *call)
{
    answer_call(call, false);
}

void whit_infill_post(whit_call *call)
{
    answer_call(call, true);
}
