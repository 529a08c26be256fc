/* SPDX-License-Identifier: MIT
 * Serves llama.cpp's own completion API: POST /completion, and POST /infill, which editors use. */
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "server/dialect.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/settings.h"

/* ---- requests ------------------------------------------------------------------------------------ */

/* Appends the text of a member of the request to `out`; an absent member is empty. If it is not a text, fills in the
 * reply and returns false. */
static bool append_text(const json_t *body, const char *key, whit_buf *out, whit_web_reply *reply)
{
    const json_t *own = json_object_get(body, key);
    if (!own || json_is_null(own)) return true;
    if (!json_is_string(own)) return whit_field_refuse(reply, key, "expected a text");
    return whit_buf_append(out, json_string_value(own), json_string_length(own)) || whit_api_fail_memory(reply);
}

/* Builds the text before the gap: first the other files (input_extra), then input_prefix and prompt. */
static bool read_prefix(const json_t *body, whit_buf *prefix, whit_web_reply *reply)
{
    const json_t *files;
    if (!whit_field_list(body, "input_extra", &files, reply)) return false;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i), *name = json_object_get(file, "filename");
        if (!json_is_string(json_object_get(file, "text")) || (name && !json_is_string(name))) {
            whit_api_fail(reply, 400, "invalid_request_error", "input_extra",
                          "input_extra[%zu]: expected an object with the string `text` and, optionally, `filename`", i);
            return false;
        }
        if (!append_text(file, "text", prefix, reply)) return false;
        whit_buf_append_str(prefix, "\n");
    }
    return append_text(body, "input_prefix", prefix, reply) && append_text(body, "prompt", prefix, reply);
}

/* Returns whether a prompt is a list of several prompts. A list that contains a token id is one prompt. */
static bool is_list(const json_t *prompt)
{
    for (size_t i = 0; i < json_array_size(prompt); i++)
        if (json_is_integer(json_array_get(prompt, i))) return false;
    return json_array_size(prompt) > 1;
}

/* Converts the request to OpenAI's form; the caller owns the result. If the request is refused, fills in the reply and
 * returns NULL. */
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
    }
    if (most && !json_is_null(most)) /* a negative number: as many tokens as the context allows */
        json_object_set_new(own, "max_tokens",
                            json_is_number(most) && json_number_value(most) < 0 ? json_integer(1 << 30)
                                                                                : json_incref(most));
    else if (!json_object_get(body, "max_tokens"))
        json_object_set_new(own, "max_tokens", json_integer(1 << 30));
    double n_logged = 0, n_answers = 1;
    ok = ok && whit_field_count(body, "n_probs", 0, WHIT_TOP_MAX, &n_logged, reply) &&
        whit_field_count(body, "n_cmpl", 1, INT32_MAX, &n_answers, reply);
    const bool is_several = n_answers > 1 || (!infill && is_list(prompt));
    if (ok && is_several && (n_logged > 0 || json_is_true(json_object_get(body, "stream"))))
        ok = whit_field_refuse(reply, n_answers > 1 ? "n_cmpl" : "prompt",
                               "several answers cannot be combined with stream or n_probs: ask for one at a time");
    if (n_logged > 0) json_object_set_new(own, "logprobs", json_integer((json_int_t)n_logged));
    /* OpenAI's members n and echo are removed: llama.cpp's number of answers is n_cmpl, and its answers do not repeat
     * the prompt */
    json_object_del(own, "n");
    if (n_answers > 1) json_object_set_new(own, "n", json_integer((json_int_t)n_answers));
    json_object_del(own, "echo");
    /* without a seed the server draws one, which is what a negative seed means */
    if (json_is_number(seed) && json_number_value(seed) < 0) json_object_del(own, "seed");
    whit_buf_free(&prefix);
    whit_buf_free(&suffix);
    if (ok) return own;
    json_decref(own);
    return NULL;
}

/* ---- replies ------------------------------------------------------------------------------------- */

static json_t *piece(const whit_ask *ask, const void *text, size_t n, bool stop)
{
    return json_pack("{s:i, s:o, s:b}", "index", (int)ask->state.i_job, "content", whit_dialect_text(text, n), "stop",
                     stop);
}

static json_t *tokens_json(const whit_buf *tokens)
{
    json_t *list = json_array();
    for (size_t i = 0; i + sizeof(int32_t) <= tokens->size_bytes; i += sizeof(int32_t)) {
        int32_t id;
        memcpy(&id, tokens->data + i, sizeof id);
        json_array_append_new(list, json_integer(id));
    }
    return list;
}

/* Returns the sampling settings of an answer, including the seed that was drawn. */
static json_t *settings_json(const whit_job *job)
{
    json_t *settings = whit_settings_json(&job->sampling), *stops = json_array();
    for (size_t i = 0; i < job->n_own_stops; i++)
        json_array_append_new(stops, whit_dialect_text(job->stops[i], strlen(job->stops[i])));
    json_object_set_new(settings, "stop", stops);
    json_object_set_new(settings, "n_predict", json_integer(job->is_clipped ? -1 : (json_int_t)job->n_tokens));
    json_object_set_new(settings, "post_sampling_probs", json_boolean(job->logs_drawn));
    json_object_set_new(settings, "n_probs", json_integer(job->logprobs ? job->n_top : 0));
    json_object_set_new(settings, "ignore_eos", json_boolean(job->ignore_end));
    return settings;
}

static json_t *finished(const whit_ask *ask, json_t *own)
{
    const whit_job *job = ask->jobs[ask->state.i_job];
    const char *type = "limit";
    if (job->finish == WHIT_FINISH_END)
        type = "eos";
    else if (job->finish == WHIT_FINISH_STOP)
        type = "word";
    json_t *rest =
        json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:I}", "model", ask->api->name, "stop_type", type, "stopping_word",
                  whit_or_empty(job->stopped_by), "truncated", job->finish == WHIT_FINISH_LENGTH && job->is_clipped,
                  "tokens_predicted", (json_int_t)job->n_generated, "tokens_evaluated", (json_int_t)job->n_ids,
                  "tokens_cached", (json_int_t)job->n_cached);
    if (job->first_ns) json_object_set_new(rest, "timings", whit_ask_timings(ask));
    json_object_set_new(rest, "generation_settings", settings_json(job));
    json_object_update(own, rest);
    json_decref(rest);
    return own;
}

static json_t *whole_answer(whit_ask *ask, const json_t *choice)
{
    const json_t *text = json_object_get(choice, "text");
    const whit_job *job = ask->jobs[ask->state.i_job];
    json_t *own = finished(ask, piece(ask, json_string_value(text), json_string_length(text), true));
    json_object_set_new(own, "tokens", tokens_json(&job->tokens)); /* empty unless the request has return_tokens */
    return own;
}

/* Appends the event to the stream, with the pending log-probabilities. Takes ownership of the event. */
static void send_event(whit_ask *ask, json_t *event, whit_buf *out)
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

static void begin_stream(whit_ask *ask, whit_buf *out)
{
    (void)ask, (void)out;
}

static void write_event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    json_t *own = piece(ask, event->text, event->text_bytes, false);
    json_object_set_new(own, "tokens", tokens_json(&ask->state.tokens));
    ask->state.tokens.size_bytes = 0;
    if (ask->times_tokens && ask->jobs[0]->first_ns) json_object_set_new(own, "timings", whit_ask_timings(ask));
    send_event(ask, own, out);
}

static void end_stream(whit_ask *ask, whit_buf *out)
{
    json_t *own = finished(ask, piece(ask, "", 0, true));
    /* The last event has all tokens that no earlier event has sent: tokens without text do not cause events. */
    json_object_set_new(own, "tokens", tokens_json(&ask->state.tokens));
    send_event(ask, own, out);
}

static void write_failure(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    send_event(
        ask, json_pack("{s:{s:s, s:s, s:i}}", "error", "message", error->message, "type", "server_error", "code", 500),
        out);
}

static const whit_dialect dialect = {.whole = whole_answer,
                                     .begin = begin_stream,
                                     .event = write_event,
                                     .end = end_stream,
                                     .fail = write_failure,
                                     .logs_name = "completion_probabilities"};

static void answer_call(whit_call *call, bool infill)
{
    json_t *own = translate(call->body, infill, call->reply);
    whit_ask *ask = whit_ask_open_own(call, own, NULL, false);
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
