/* SPDX-License-Identifier: MIT
 * Converts requests for generated text from JSON to jobs for the engine. */
#include <ctype.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/answers.h"
#include "server/chat_tools.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/models.h"
#include "server/samplers.h"
#include "server/json_text.h"

enum { MOST_STOPS = 16, MOST_TOP = WHIT_TOP_MAX, MOST_BIASES = 1024, BIAS_TEXT_BYTES = 256, MOST_EACH = 8 };
/* Limits of a request's program, which runs for every token: a slow program delays all requests in the same step. */
enum { PROGRAM_TEXT_BYTES = 64 << 10, PROGRAM_MS = 50, PROGRAM_BYTES = 16 << 20 };

/* Reads max_tokens or max_completion_tokens; a negative number means as many tokens as the context allows. */
static bool read_most(const json_t *body, double *value, whit_web_reply *reply)
{
    if (!whit_field_count(body, "max_tokens", -1, 1 << 30, value, reply) ||
        !whit_field_count(body, "max_completion_tokens", -1, 1 << 30, value, reply))
        return false;
    if (*value < 0) *value = 1 << 30;
    return true;
}

/* Accepts "dry_sequence_breakers" only if it lists exactly the sampler's fixed breakers, in any order; without DRY the
 * member is ignored. */
static bool read_breakers(const json_t *body, const whit_sampler_options *s, whit_web_reply *reply)
{
    static const char fixed[] = "\n:\"*";
    const json_t *own = json_object_get(body, "dry_sequence_breakers");
    bool same = json_is_array(own);
    unsigned found = 0;
    if (!own || json_is_null(own) || s->dry_multiplier <= 0) return true;
    for (size_t i = 0; same && i < json_array_size(own); i++) {
        const json_t *one = json_array_get(own, i);
        const char *at = json_string_length(one) == 1 ? strchr(fixed, *json_string_value(one)) : NULL;
        same = at && *at;
        if (same) found |= 1u << (at - fixed);
    }
    return (same && found == (1u << (sizeof fixed - 1)) - 1) ||
        whit_field_refuse(reply, "dry_sequence_breakers",
                          "only the four breakers line feed, colon, double quote and asterisk together are supported; "
                          "leave the field out");
}

static bool read_sampling(const json_t *body, whit_sampler_options *s, whit_web_reply *reply)
{
    struct {
        const char *key;
        float *value;
        double min, max;
    } reals[] = {{"temperature", &s->temperature, 0, 100},
                 {"top_p", &s->top_p, 0, 1},
                 {"min_p", &s->min_p, 0, 1},
                 {"typical_p", &s->typical_p, 0, 1},
                 {"top_n_sigma", &s->top_n_sigma, -1, 1e6},
                 {"xtc_probability", &s->xtc_probability, 0, 1},
                 {"xtc_threshold", &s->xtc_threshold, 0, 1},
                 {"repeat_penalty", &s->repeat_penalty, 1e-3, 1e3},
                 {"repetition_penalty", &s->repeat_penalty, 1e-3, 1e3}, /* vLLM's name for repeat_penalty */
                 {"presence_penalty", &s->presence_penalty, -100, 100},
                 {"frequency_penalty", &s->frequency_penalty, -100, 100},
                 {"dynatemp_range", &s->dynatemp_range, 0, 100},
                 {"dynatemp_exponent", &s->dynatemp_exponent, 0, 100},
                 {"mirostat_tau", &s->mirostat_tau, 0, 100},
                 {"mirostat_eta", &s->mirostat_eta, 0, 1},
                 {"dry_multiplier", &s->dry_multiplier, 0, 100},
                 {"dry_base", &s->dry_base, 0, 100}};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        double value = (double)*reals[i].value;
        if (!whit_field_number(body, reals[i].key, reals[i].min, reals[i].max, &value, reply)) return false;
        *reals[i].value = (float)value;
    }
    struct {
        const char *key;
        int32_t *value;
        double min, max;
    } counts[] = {{"top_k", &s->top_k, -1, INT32_MAX},
                  {"repeat_last_n", &s->penalty_last_n, -1, INT32_MAX},
                  {"dry_allowed_length", &s->dry_allowed_length, 0, INT32_MAX},
                  {"dry_penalty_last_n", &s->dry_penalty_last_n, -1, INT32_MAX},
                  {"mirostat", &s->mirostat, 0, 2}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        double value = *counts[i].value;
        if (!whit_field_count(body, counts[i].key, counts[i].min, counts[i].max, &value, reply)) return false;
        *counts[i].value = (int32_t)value;
    }
    if (!read_breakers(body, s, reply) || !whit_samplers_read(body, s, reply)) return false;
    if (s->top_k < 0) s->top_k = 0;
    double seed = 0;
    if (!whit_field_count(body, "seed", -0x1p63, 0x1p64, &seed, reply)) return false;
    const json_t *own = json_object_get(body, "seed");
    if (json_is_integer(own))
        s->seed = (uint64_t)json_integer_value(own);
    else if (!json_is_real(own))
        s->seed = whit_now_ns() * 0x9E3779B97F4A7C15u;
    else if (seed < 0) /* a float: the client's language has no integers, or the number exceeds 63 bits */
        s->seed = (uint64_t)(int64_t)seed;
    else
        s->seed = seed < 0x1p64 ? (uint64_t)seed : UINT64_MAX;
    return true;
}

/* Adds the bias of one token. `value` is a number, or false, which forbids the token, as -100 does. */
static bool add_bias(whit_job *job, uint32_t n_vocab, int64_t id, const json_t *value, whit_web_reply *reply)
{
    double bias = NAN;
    if (json_is_number(value))
        bias = json_number_value(value);
    else if (json_is_false(value))
        bias = -100;
    if (id < 0 || (uint64_t)id >= n_vocab || !(bias >= -100 && bias <= 100))
        return whit_field_refuse(reply, "logit_bias",
                                 "expected token ids or texts with numbers from -100 to 100, or false, which forbids");
    if (job->sampling.n_biases == MOST_BIASES)
        return whit_field_refuse(reply, "logit_bias", "expected at most 1024 tokens");
    size_t at = job->sampling.n_biases++;
    ((int32_t *)job->sampling.bias_ids)[at] = (int32_t)id;
    ((float *)job->sampling.bias_values)[at] = bias <= -100 ? -INFINITY : (float)bias;
    return true;
}

/* Adds the bias to each token of a text, as llama.cpp does. */
static bool add_text_bias(const whit_api *api, whit_job *job, const char *text, const json_t *value,
                          whit_web_reply *reply)
{
    int32_t ids[BIAS_TEXT_BYTES + 16];
    size_t n = 0, n_bytes = strlen(text);
    uint32_t n_vocab = whit_model_vocab_size(api->model);
    if (!n_bytes || n_bytes > BIAS_TEXT_BYTES ||
        whit_tokenize(api->model, text, n_bytes, false, true, ids, BIAS_TEXT_BYTES + 16, &n, NULL) != WHIT_OK)
        return whit_field_refuse(reply, "logit_bias", "expected token ids or texts of at most 256 bytes");
    for (size_t i = 0; i < n; i++)
        if (!add_bias(job, n_vocab, ids[i], value, reply)) return false;
    return true;
}

/* Reads the biases of tokens from "logit_bias": an object {"ID": BIAS}, or llama.cpp's list of pairs [ID, BIAS]. In
 * both, a text may replace the id. */
static bool read_biases(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply)
{
    const json_t *biases = json_object_get(body, "logit_bias");
    uint32_t n_vocab = whit_model_vocab_size(api->model);
    const char *key;
    json_t *value;
    size_t i, n = json_is_array(biases) ? json_array_size(biases) : json_object_size(biases);
    if (!biases || json_is_null(biases) || ((json_is_object(biases) || json_is_array(biases)) && n == 0)) return true;
    if (!n || n > MOST_BIASES)
        return whit_field_refuse(reply, "logit_bias", "expected an object or a list of pairs, at most 1024");
    job->sampling.bias_ids = calloc(MOST_BIASES, sizeof *job->sampling.bias_ids);
    job->sampling.bias_values = calloc(MOST_BIASES, sizeof *job->sampling.bias_values);
    if (!job->sampling.bias_ids || !job->sampling.bias_values) return whit_api_fail_memory(reply);
    json_object_foreach((json_t *)biases, key, value)
    {
        char *end;
        long id = strtol(key, &end, 10);
        bool is_id = !*end && end != key && !isspace((unsigned char)*key); /* " 5" is a text */
        if (!(is_id ? add_bias(job, n_vocab, id, value, reply) : add_text_bias(api, job, key, value, reply)))
            return false;
    }
    json_array_foreach((json_t *)biases, i, value)
    {
        const json_t *id = json_array_get(value, 0), *bias = json_array_get(value, 1);
        bool is_pair = json_array_size(value) == 2, is_id = is_pair && json_is_integer(id);
        bool ok;
        if (is_pair && json_is_string(id))
            ok = add_text_bias(api, job, json_string_value(id), bias, reply);
        else
            ok = add_bias(job, n_vocab, is_id ? json_integer_value(id) : -1, bias, reply);
        if (!ok) return false;
    }
    return true;
}

static bool add_stop(whit_job *job, const char *text, size_t n)
{
    char *own = n ? malloc(n + 1) : NULL;
    if (!own) return n == 0;
    memcpy(own, text, n);
    own[n] = 0;
    job->stops[job->n_stops++] = own;
    return true;
}

static bool read_stops(const whit_ask *ask, const json_t *body, whit_job *job, whit_web_reply *reply)
{
    const json_t *stop = json_object_get(body, "stop");
    size_t n = json_is_array(stop) ? json_array_size(stop) : stop && !json_is_null(stop);
    job->stops = calloc(n + 1, sizeof *job->stops);
    if (!job->stops || n > MOST_STOPS) return whit_field_refuse(reply, "stop", "expected at most 16 stop strings");
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(stop) ? json_array_get(stop, i) : stop;
        if (!json_is_string(one) || strlen(json_string_value(one)) > 1024)
            return whit_field_refuse(reply, "stop", "expected strings of at most 1024 bytes");
        if (!add_stop(job, json_string_value(one), json_string_length(one))) return whit_api_fail_memory(reply);
    }
    job->n_own_stops = job->n_stops;
    const char *own = ask->is_chat ? whit_chat_template_stop(ask->api->chat) : NULL;
    return !own || add_stop(job, own, strlen(own)) || whit_api_fail_memory(reply);
}

/* Estimated memory of a compiled grammar: GRAMMAR_BYTES, plus GRAMMAR_TEXT_BYTES per byte of its text. Measured with an
 * enum of 90,000 words. Most of the memory of a small grammar is for its token masks. */
enum { GRAMMAR_BYTES = 12 << 20, GRAMMAR_TEXT_BYTES = 8 };

static bool refuse_form(const whit_ask *ask, whit_status status, const whit_error *error, whit_web_reply *reply)
{
    if (status == WHIT_ERROR_MEMORY) return whit_api_fail_memory(reply);
    whit_api_fail(reply, 400, "invalid_request_error", ask->form_param, "%s", error->message);
    return false;
}

/* Compiles the grammar that all answers of the request follow. It comes from response_format, json_schema (llama.cpp's)
 * or grammar, or is made for the calls of tools. Each job has its own state in the grammar. */
static bool compile_form(whit_ask *ask, const json_t *body, whit_web_reply *reply)
{
    const json_t *format, *grammar, *schema = json_object_get(body, "json_schema");
    if (!whit_field_text(body, "grammar", &grammar, reply) ||
        !whit_field_object(body, "response_format", &format, reply))
        return false;
    const char *gbnf = json_string_length(grammar) ? json_string_value(grammar) : NULL;
    const char *type = json_string_value(json_object_get(format, "type")), *param = "json_schema";
    if (format && !type) return whit_field_refuse(reply, "response_format", "expected an object with a type");
    if (type && strcmp(type, "text") != 0) {
        const json_t *own = json_object_get(format, "json_schema");
        param = "response_format";
        schema = json_object_get(own ? own : format, "schema");
        if (strcmp(type, "json_object") != 0 && strcmp(type, "json_schema") != 0)
            return whit_field_refuse(reply, param, "expected type text, json_object or json_schema");
        if (!strcmp(type, "json_schema") && (!schema || json_is_null(schema)))
            return whit_field_refuse(reply, param, "json_schema has no member schema, an object");
    }
    if (json_is_null(schema)) schema = NULL;
    bool object = type && !strcmp(type, "json_object") && !schema;
    /* calls: an answer consists of calls, or of a text, which follows the schema if there is one */
    bool calls = ask->calls.is_held || (ask->tools && (schema || object));
    ask->is_formed = (schema || object) && !calls;
    if (!object && !schema && !gbnf && !calls) return true;
    if (!ask->api->vocabulary)
        return whit_field_refuse(reply, param,
                                 "grammars and schemas do not work with this model's tokenizer: leave the field out");
    if (gbnf && (schema || object)) return whit_field_refuse(reply, "grammar", "give a grammar or a schema, not both");
    if (gbnf && calls)
        return whit_field_refuse(reply, "grammar",
                                 "a grammar cannot be combined with tools whose calls follow a schema");
    char *text = schema ? whit_json_write(schema) : NULL;
    const char *source = text;
    if (gbnf)
        source = gbnf;
    else if (object)
        source = "{\"type\":\"object\"}";
    whit_error error = {.message = "not enough memory for the schema"};
    whit_grammar *compiled = NULL;
    whit_status status = WHIT_ERROR_MEMORY;
    const char *wanted = ask->calls.is_required ? NULL : source;
    size_t n_bytes = source ? strlen(source) : 0;
    if (!whit_reply_claim(reply, GRAMMAR_BYTES + GRAMMAR_TEXT_BYTES * n_bytes)) {
        free(text);
        return false;
    }
    if (calls && (source || (!schema && !object)))
        status = whit_calls_open(ask, body, wanted, &compiled, &error);
    else if (source) {
        const char *name = gbnf ? "grammar" : param;
        status = (gbnf ? whit_grammar_open_gbnf : whit_grammar_open_json_schema)(ask->api->vocabulary, name, source,
                                                                                 n_bytes, &compiled, &error);
    }
    if (gbnf)
        ask->form_param = "grammar";
    else if (calls)
        ask->form_param = "tools";
    else
        ask->form_param = param;
    if (status == WHIT_OK && !(ask->grammar = whit_shared_grammar_open(compiled))) status = WHIT_ERROR_MEMORY;
    free(text);
    return status == WHIT_OK || refuse_form(ask, status, &error, reply);
}

/* Opens the job's own state in the request's grammar, if the request has one. */
static bool open_form(const whit_ask *ask, whit_job *job, whit_web_reply *reply)
{
    const uint64_t *bits;
    whit_error error;
    if (!ask->grammar) return true;
    job->grammar = whit_shared_grammar_hold(ask->grammar);
    whit_status status = whit_grammar_state_open(whit_shared_grammar_get(job->grammar), &job->state, &error);
    /* this refuses a grammar that allows no token before the answer begins */
    if (status == WHIT_OK) status = whit_grammar_mask(job->state, &bits, &error);
    return status == WHIT_OK || refuse_form(ask, status, &error, reply);
}

/* Reads "program": the text of a program of the array language that runs before every token. */
static bool read_program(const json_t *body, whit_job *job, whit_web_reply *reply)
{
    const json_t *own = json_object_get(body, "program");
    if (!own || json_is_null(own)) return true;
    if (!json_is_string(own)) return whit_field_refuse(reply, "program", "expected a text");
    if (json_string_length(own) > PROGRAM_TEXT_BYTES)
        return whit_field_refuse(reply, "program", "expected at most 65536 bytes");
    if (!whit_reply_claim(reply, PROGRAM_BYTES)) return false;
    whit_program_options options = whit_program_options_default();
    whit_error error;
    options.max_ms = PROGRAM_MS;
    options.max_bytes = PROGRAM_BYTES;
    options.prompt = job->ids;
    options.n_prompt = job->n_ids;
    if (whit_program_open("program", json_string_value(own), json_string_length(own), &options, &job->program,
                          &error) == WHIT_OK)
        return true;
    whit_api_fail(reply, 400, "invalid_request_error", "program", "%s", error.message);
    return false;
}

/* Reads "thinking_budget": the maximum number of tokens in the thinking section. It is ignored outside chats, and for
 * answers that follow a schema, which have no such section. */
static bool read_thinking_budget(const whit_ask *ask, const json_t *body, whit_job *job, whit_web_reply *reply)
{
    double n_tokens = -1;
    whit_error error;
    if (!whit_field_count(body, "thinking_budget", 0, 1 << 30, &n_tokens, reply)) return false;
    if (n_tokens < 0 || !ask->is_chat || ask->is_formed) return true;
    if (whit_thinking_limit_open(ask->api->chat, ask->prompt, (uint32_t)n_tokens, &job->limit, &error) == WHIT_OK)
        return true;
    whit_api_fail(reply, 400, "invalid_request_error", "thinking_budget", "%s", error.message);
    return false;
}

/* ---- reading and tokenizing prompts ------------------------------------------------------------ */

static bool tokenize(whit_ask *ask, const char *text, size_t n_bytes, int32_t **ids, size_t *n, whit_web_reply *reply)
{
    whit_error error;
    const char *suffix = ask->infill && ask->suffix ? json_string_value(ask->suffix) : "";
    size_t n_suffix = json_string_length(ask->suffix), capacity = n_bytes + n_suffix + 16;
    if (!whit_reply_claim(reply, capacity * sizeof **ids)) return false;
    *ids = malloc(capacity * sizeof **ids);
    whit_status status = WHIT_OK;
    if (!*ids)
        status = whit_fail_memory(&error, "the prompt", capacity * sizeof **ids);
    else if (ask->infill)
        status = whit_tokenize_infill(ask->api->model, text, n_bytes, suffix, n_suffix, *ids, capacity, n, &error);
    else
        status = whit_tokenize(ask->api->model, text, n_bytes, true, true, *ids, capacity, n, &error);
    if (status != WHIT_OK) whit_api_fail_error(reply, &error);
    return status == WHIT_OK;
}

/* Holds the token ids of all prompts of one request. */
struct prompts {
    int32_t *ids[WHIT_API_MOST_ANSWERS];
    size_t n_ids[WHIT_API_MOST_ANSWERS];
    uint32_t n;
};

static bool append_text_of(const whit_api *api, const int32_t *ids, size_t n_ids, whit_buf *out)
{
    whit_detokenizer *d = NULL;
    const char *text;
    size_t n;
    bool ok = whit_detokenizer_open(api->model, false, &d, NULL) == WHIT_OK;
    for (size_t i = 0; ok && i < n_ids; i++)
        ok = whit_detokenizer_push(d, ids[i], &text, &n, NULL) == WHIT_OK && whit_buf_append(out, text, n);
    ok = ok && whit_detokenizer_flush(d, &text, &n, NULL) == WHIT_OK && whit_buf_append(out, text, n);
    whit_detokenizer_close(d);
    return ok;
}

/* Returns the text of a value that is a string or {"prompt_string": TEXT}; NULL for other values and for images and
 * audio. */
static const json_t *prompt_string(const json_t *prompt)
{
    const json_t *within = json_object_get(prompt, "prompt_string");
    if (json_array_size(json_object_get(prompt, "multimodal_data"))) return NULL;
    if (json_is_string(prompt)) return prompt;
    if (json_is_string(within)) return within;
    return NULL;
}

static bool has_integer(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_integer(json_array_get(list, i))) return true;
    return false;
}

/* Reads one prompt from a list of token ids and texts. */
static bool read_list(whit_ask *ask, const json_t *list, int32_t **ids, size_t *n, whit_web_reply *reply)
{
    size_t room = 0, n_new;
    const whit_model *model = ask->api->model;
    for (size_t i = 0; i < json_array_size(list); i++) room += 16 + json_string_length(json_array_get(list, i));
    if (!whit_reply_claim(reply, (room + 1) * sizeof **ids)) return false;
    *ids = malloc((room + 1) * sizeof **ids);
    if (!json_is_array(list) || !*ids)
        return whit_field_refuse(reply, "prompt", "expected a text, token ids, or a list of either");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        json_int_t value = json_is_integer(one) ? json_integer_value(one) : -1;
        if (json_is_string(one)) { /* special tokens before a text, such as BOS, are added only for the first item */
            whit_error error;
            if (whit_tokenize(model, json_string_value(one), json_string_length(one), i == 0, true, *ids + *n,
                              room - *n, &n_new, &error) != WHIT_OK) {
                whit_api_fail_error(reply, &error);
                return false;
            }
            *n += n_new;
        } else if (value >= 0 && value < whit_model_vocab_size(model)) {
            (*ids)[(*n)++] = (int32_t)value;
        } else {
            return whit_field_refuse(reply, "prompt", "expected a text, token ids of the model, or a list of either");
        }
    }
    return true;
}

static bool read_prompt(whit_ask *ask, const json_t *prompt, struct prompts *to, whit_web_reply *reply)
{
    uint32_t at = to->n++;
    int32_t **ids = &to->ids[at];
    size_t *n = &to->n_ids[at];
    const json_t *string = prompt_string(prompt);
    if (string) {
        const char *text = json_string_value(string);
        size_t n_bytes = json_string_length(string);
        if (ask->echo && !whit_buf_append(&ask->prompt_texts[at], text, n_bytes)) return whit_api_fail_memory(reply);
        return tokenize(ask, text, n_bytes, ids, n, reply);
    }
    if (ask->infill) return whit_field_refuse(reply, "prompt", "expected a text before the suffix");
    return read_list(ask, prompt, ids, n, reply) &&
        (!ask->echo || append_text_of(ask->api, *ids, *n, &ask->prompt_texts[at]) || whit_api_fail_memory(reply));
}

/* Reads the prompts of a request: a text, a list of token ids and texts, or a list of such prompts. */
static bool read_prompts(whit_ask *ask, const json_t *body, struct prompts *to, whit_web_reply *reply)
{
    const json_t *prompt = json_object_get(body, "prompt");
    size_t n = json_array_size(prompt);
    if (!n || has_integer(prompt)) return read_prompt(ask, prompt, to, reply);
    if (n * ask->n_each > WHIT_API_MOST_ANSWERS) {
        whit_api_fail(reply, 400, "invalid_request_error", "prompt",
                      "prompt: at most %d answers in one request, not %zu", WHIT_API_MOST_ANSWERS, n * ask->n_each);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!read_prompt(ask, json_array_get(prompt, i), to, reply)) return false;
    return true;
}

static bool render_chat(whit_ask *ask, const json_t *body, struct prompts *to, whit_web_reply *reply)
{
    if (!whit_calls_read(ask, body, reply) || !whit_ask_render(ask->api, body, ask->tools, &ask->prompt, reply))
        return false;
    const int32_t *rendered = whit_chat_prompt_ids(ask->prompt, &to->n_ids[0]);
    size_t n_bytes = to->n_ids[0] * sizeof *rendered;
    to->n = 1;
    to->ids[0] = malloc(n_bytes + 1);
    if (to->ids[0]) memcpy(to->ids[0], rendered, n_bytes);
    return to->ids[0] || whit_api_fail_memory(reply);
}

/* ---- reading a request ------------------------------------------------------------------------- */

/* Reads "logprobs" (a switch, or the number of alternatives), "top_logprobs" (their number in chats), and llama.cpp's
 * "post_sampling_probs". */
static bool read_logprobs(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply)
{
    const json_t *given = json_object_get(body, "logprobs");
    double n_top = 0, n_more = 0;
    if (given && json_is_boolean(given))
        job->logprobs = json_is_true(given);
    else if (given && !json_is_null(given)) {
        if (!whit_field_count(body, "logprobs", 0, MOST_TOP, &n_top, reply)) return false;
        job->logprobs = true;
    }
    if (!whit_field_count(body, "top_logprobs", 0, MOST_TOP, &n_more, reply)) return false;
    if (n_more > 0 && !job->logprobs)
        return whit_field_refuse(reply, "top_logprobs", "top_logprobs needs logprobs: send logprobs, too");
    job->n_top = (uint32_t)(n_more > 0 ? n_more : n_top);
    if (!whit_field_switch(body, "post_sampling_probs", &job->logs_drawn, reply)) return false;
    return !job->logs_drawn || api->options->drawn ||
        whit_field_refuse(reply, "post_sampling_probs",
                          "only probabilities before sampling are supported: leave the field out");
}

/* Claims the memory that a job needs until its answer is sent: two copies of the token ids, and of the
 * log-probabilities, which the generation and the job both have. */
static bool claim_job(const whit_job *job, whit_web_reply *reply)
{
    size_t n_all = job->n_ids + (size_t)job->n_tokens, n_logged = job->logprobs ? job->n_tokens : 0;
    if (job->prompt_logprobs) n_logged += job->n_ids;
    return whit_reply_claim(reply,
                            2 * n_all * sizeof *job->ids + 2 * n_logged * (1 + job->n_top) * sizeof(whit_logprob));
}

static bool fill_job(whit_ask *ask, const json_t *body, const int32_t *ids, size_t n_ids, uint32_t i, uint64_t key,
                     whit_web_reply *reply)
{
    whit_job *job = ask->jobs[i] = whit_job_open();
    double n_tokens = ask->is_chat ? 1 << 30 : 128;
    uint32_t n_ctx = whit_engine_context_size(ask->api->engine);
    if (!job || !(job->ids = malloc(n_ids * sizeof *ids))) return whit_api_fail_memory(reply);
    memcpy(job->ids, ids, n_ids * sizeof *ids);
    job->n_ids = n_ids;
    job->key = key;
    job->sampling = whit_sampler_options_default();
    if (!read_most(body, &n_tokens, reply) || !read_sampling(body, &job->sampling, reply) ||
        !read_biases(ask->api, body, job, reply) || !read_stops(ask, body, job, reply) ||
        !whit_mounts_read(ask->api, body, job, reply) || !open_form(ask, job, reply) ||
        !read_program(body, job, reply) || !read_thinking_budget(ask, body, job, reply) ||
        !read_logprobs(ask->api, body, job, reply) || !whit_field_switch(body, "ignore_eos", &job->ignore_end, reply))
        return false;
    job->prompt_logprobs = ask->echo && job->logprobs;
    job->sampling.seed += i % ask->n_each;
    if (ask->is_chat) {
        job->end_id = whit_chat_template_end(ask->api->chat);
        job->keep_special = ask->tools && whit_chat_template_keep_special(ask->api->chat);
    }
    uint32_t room = n_ctx - (uint32_t)n_ids;
    job->n_tokens = n_tokens < room ? (uint32_t)n_tokens : room;
    job->is_clipped = n_tokens > room;
    job->tells_progress = ask->tells_progress && ask->stream;
    job->conversation = ask->conversation;
    double id_slot = -1;
    if (!whit_field_count(body, "id_slot", -1, INT32_MAX, &id_slot, reply) ||
        !whit_field_switch(body, "return_tokens", &job->keeps_tokens, reply))
        return false;
    job->id_slot = (int32_t)id_slot;
    if (ask->api->options->timeout_s)
        job->deadline_ns = whit_now_ns() + (uint64_t)ask->api->options->timeout_s * 1000000000u;
    return claim_job(job, reply);
}

static bool refuse_full(whit_web_reply *reply)
{
    whit_api_fail(reply, 503, "server_error", NULL, "the queue is full; try again later");
    whit_reply_header(reply, "Retry-After", "1");
    return false;
}

static bool submit_jobs(whit_ask *ask, whit_web_reply *reply)
{
    whit_shared_grammar_release(ask->grammar); /* the jobs hold the grammar, so the request's own hold is released */
    ask->grammar = NULL;
    return whit_engine_submit(ask->api->engine, ask->jobs, ask->n, NULL) == WHIT_OK || refuse_full(reply);
}

/* Refuses members of OpenAI's and vLLM's requests that are not supported and would change the answer. */
static bool check_served(const json_t *body, whit_web_reply *reply)
{
    static const char held[] = "this field is not supported: send response_format or grammar";
    static const whit_field_unserved members[] = {
        {"audio", "answers are only texts: leave the field out"},
        {"guided_json", held},
        {"guided_regex", held},
        {"guided_choice", held},
        {"guided_grammar", held},
        {"structured_outputs", held},
        {"min_tokens", "a minimum length is not supported; ignore_eos makes the answer as long as max_tokens"},
        {"stop_token_ids", "token ids do not end an answer: send texts as stop"},
        {"bad_words", "this field is not supported: forbid tokens by logit_bias"},
        {"allowed_token_ids", "this field is not supported: forbid tokens by logit_bias"},
        {"use_beam_search", "beam search is not supported: leave the field out"},
        {"prompt_logprobs", "not supported: /v1/completions gives them with echo and logprobs"},
        {NULL, NULL}};
    const json_t *kinds = json_object_get(body, "modalities");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const char *kind = json_string_value(json_array_get(kinds, i));
        if (!kind || strcmp(kind, "text") != 0)
            return whit_field_refuse(reply, "modalities", "only the modality text is supported: leave the others out");
    }
    return whit_fields_lack(body, members, reply);
}

/* Reads the members that determine the number and form of the answers. */
static bool read_shape(whit_ask *ask, const json_t *body, whit_web_reply *reply)
{
    double n = 1, best_of = 1;
    const json_t *stream_options, *suffix = NULL;
    if (!check_served(body, reply) || !whit_field_switch(body, "stream", &ask->stream, reply) ||
        !whit_field_object(body, "stream_options", &stream_options, reply) ||
        !whit_field_switch(stream_options, "include_usage", &ask->include_usage, reply) ||
        !whit_field_switch(body, "timings_per_token", &ask->times_tokens, reply) ||
        !whit_field_switch(body, "return_progress", &ask->tells_progress, reply) ||
        !whit_field_count(body, "n", 1, MOST_EACH, &n, reply) ||
        !whit_field_count(body, "best_of", 1, MOST_EACH, &best_of, reply))
        return false;
    if (best_of > n)
        return whit_field_refuse(reply, "best_of",
                                 "best_of must not exceed n: the server returns all answers that it computes");
    ask->n_each = (uint32_t)n;
    if (ask->is_chat) return true;
    if (!whit_field_switch(body, "echo", &ask->echo, reply) || !whit_field_text(body, "suffix", &suffix, reply) ||
        !whit_field_switch(body, "infill", &ask->infill, reply))
        return false;
    ask->suffix = json_incref((json_t *)suffix);
    ask->infill |= json_string_length(suffix) > 0;
    return true;
}

/* Returns whether the number of answers is within the server's limits, no prompt is empty, each prompt is within the
 * context, and the queue has space; otherwise fills in the reply. */
static bool check_prompts(const whit_ask *ask, const struct prompts *prompts, whit_web_reply *reply)
{
    uint32_t n_ctx = whit_engine_context_size(ask->api->engine), n = prompts->n * ask->n_each;
    const whit_server_options *options = ask->api->options;
    if (n > (uint64_t)options->n_queue + options->n_parallel) {
        whit_api_fail(reply, 400, "invalid_request_error", ask->n_each > 1 ? "n" : "prompt",
                      "%u answers in one request: this server has %u slots, and --queue lets %u wait", n,
                      options->n_parallel, options->n_queue);
        return false;
    }
    for (uint32_t i = 0; i < prompts->n; i++) {
        if (prompts->n_ids[i] == 0)
            return whit_field_refuse(reply, "prompt", "the prompt is empty: send at least one token");
        if (prompts->n_ids[i] < n_ctx) continue;
        /* The message begins with the words of OpenAI's server, by which clients recognise this error. */
        whit_api_fail(reply, 400, "invalid_request_error", ask->is_chat ? "messages" : "prompt",
                      "This model's maximum context length is %u tokens, and the prompt has %zu: shorten it, or start "
                      "the server with a larger -c",
                      n_ctx, prompts->n_ids[i]);
        whit_api_set_code(reply, "context_length_exceeded");
        return false;
    }
    return !whit_engine_is_full(ask->api->engine, n) || refuse_full(reply);
}

static bool fill_in(whit_ask *ask, const json_t *body, uint64_t key, whit_web_reply *reply)
{
    struct prompts prompts = {.n = 0};
    bool ok = read_shape(ask, body, reply) && (ask->is_chat ? render_chat : read_prompts)(ask, body, &prompts, reply) &&
        check_prompts(ask, &prompts, reply) && compile_form(ask, body, reply);
    for (uint32_t i = 0; i < prompts.n && ok; i++)
        for (uint32_t k = 0; k < ask->n_each && ok; k++)
            ok = fill_job(ask, body, prompts.ids[i], prompts.n_ids[i], ask->n++, key, reply);
    for (uint32_t i = 0; i < prompts.n; i++) free(prompts.ids[i]);
    return ok && submit_jobs(ask, reply);
}

/* Returns a hash of the conversation's name, which some clients and load balancers send in a header, and of the key: a
 * name that two keys use is two conversations. Returns 0 without such a header. */
static uint64_t name_conversation(const whit_web_request *request, uint64_t key)
{
    static const char *const headers[] = {"x-session-id",       "x-claude-code-session-id",
                                          "x-session-affinity", "session-id",
                                          "session_id",         "x-session-token"};
    uint8_t hash[crypto_generichash_BYTES_MIN] = {0};
    uint64_t result = 0;
    for (size_t i = 0; !result && i < sizeof headers / sizeof headers[0]; i++) {
        const char *name = whit_web_header(request, headers[i]);
        if (!name || !*name) continue;
        crypto_generichash_state state;
        crypto_generichash_init(&state, NULL, 0, sizeof hash);
        crypto_generichash_update(&state, (const uint8_t *)&key, sizeof key);
        crypto_generichash_update(&state, (const uint8_t *)name, strlen(name));
        crypto_generichash_final(&state, hash, sizeof hash);
        memcpy(&result, hash, sizeof result);
    }
    return result;
}

/* Makes and submits the jobs of `body`, a request in OpenAI's form: the call's own body or a converted one. On failure
 * fills in the reply and returns NULL. */
static whit_ask *open_ask(const whit_call *call, const json_t *body, bool is_chat)
{
    whit_api *api = call->api;
    whit_ask *ask = calloc(1, sizeof *ask);
    if (!ask) {
        whit_api_fail_memory(call->reply);
        return NULL;
    }
    *ask = (whit_ask){.api = api, .is_chat = is_chat, .fd = call->request->fd, .created = time(NULL), .n_each = 1};
    ask->number = whit_site_number(api->site);
    snprintf(ask->id, sizeof ask->id, "%s-%016llx", is_chat ? "chatcmpl" : "cmpl", ask->number);
    whit_models_keep(api);
    ask->conversation = name_conversation(call->request, call->key);
    ask->begun_ns = whit_now_ns();
    ask->key = call->key;
    ask->body = api->log.fd >= 0 && api->log.texts ? whit_json_write(body) : NULL;
    if (fill_in(ask, body, call->key, call->reply)) return ask;
    whit_ask_close(ask);
    return NULL;
}

whit_ask *whit_ask_open_own(const whit_call *call, json_t *own, json_t *kinds, bool is_chat)
{
    whit_ask *ask = own ? open_ask(call, own, is_chat) : NULL;
    json_decref(own);
    if (ask)
        ask->state.kinds = kinds;
    else
        json_decref(kinds);
    return ask;
}

void whit_chat_post(whit_call *call)
{
    json_t *kinds, *chat = whit_chat_tools_read(call->body, &kinds, call->reply);
    whit_ask *ask = whit_ask_open_own(call, chat, kinds, true);
    if (ask) whit_ask_reply(ask, call->reply);
}

void whit_completions_post(whit_call *call)
{
    whit_ask *ask = open_ask(call, call->body, false);
    if (ask) whit_ask_reply(ask, call->reply);
}

json_t *whit_ask_token_lists(whit_api *api, const json_t *body, whit_web_reply *reply)
{
    whit_ask ask = {.api = api, .n_each = 1};
    struct prompts prompts = {.n = 0};
    json_t *lists = read_prompts(&ask, body, &prompts, reply) ? json_array() : NULL;
    for (uint32_t i = 0; i < prompts.n; i++) {
        json_t *list = json_array();
        for (size_t k = 0; lists && k < prompts.n_ids[i]; k++)
            json_array_append_new(list, json_integer(prompts.ids[i][k]));
        json_array_append_new(lists, list);
        free(prompts.ids[i]);
    }
    return lists;
}

bool whit_ask_count(whit_api *api, const json_t *body, size_t *n_tokens, whit_web_reply *reply)
{
    whit_ask ask = {.api = api, .is_chat = true, .n_each = 1};
    struct prompts prompts = {.n = 0};
    bool ok = render_chat(&ask, body, &prompts, reply);
    *n_tokens = prompts.n_ids[0];
    free(prompts.ids[0]);
    whit_chat_prompt_close(ask.prompt);
    json_decref(ask.calls.name);
    return ok;
}

void whit_ask_close(whit_ask *ask)
{
    if (!ask) return;
    for (uint32_t i = 0; i < WHIT_API_MOST_ANSWERS; i++) {
        if (ask->jobs[i]) atomic_store(&ask->jobs[i]->cancelled, true);
        whit_job_close(ask->jobs[i]);
    }
    whit_shared_grammar_release(ask->grammar);
    whit_chat_prompt_close(ask->prompt);
    json_decref(ask->suffix), json_decref(ask->calls.name);
    json_decref(ask->state.output), json_decref(ask->state.request), json_decref(ask->state.kinds);
    whit_buf_free(&ask->state.text);
    whit_buf_free(&ask->state.logs);
    whit_buf_free(&ask->state.tokens);
    free(ask->body);
    for (uint32_t i = 0; i < WHIT_API_MOST_ANSWERS; i++) whit_buf_free(&ask->prompt_texts[i]);
    whit_models_release(ask->api);
    free(ask);
}
