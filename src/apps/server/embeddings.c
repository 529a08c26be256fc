/* SPDX-License-Identifier: MIT
 * Serves embeddings: computes vectors of texts, and writes them in the form of each API. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/phrase.h"
#include "server/ask.h"
#include "base/sockets.h"
#include "server/embedder.h"
#include "server/embeddings.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/pieces.h"
#include "server/json_text.h"

enum { MOST_TEXTS = 2048, PIECE_VALUES = 512 };

static bool refuse_input(whit_web_reply *reply, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", "input", "input: %s", what);
    return false;
}

/* Returns the text of an input: a string, {"prompt_string": TEXT}, {"content": TEXT} or {"content": [{"text": TEXT}]}.
 * Returns NULL for other inputs. */
static const json_t *input_text(const json_t *one)
{
    const json_t *string = json_object_get(one, "prompt_string"), *content = json_object_get(one, "content");
    if (json_is_string(one)) return one;
    if (json_is_string(string)) return string;
    if (json_is_string(content)) return content;
    const json_t *text = json_object_get(json_array_get(content, 0), "text");
    return json_array_size(content) == 1 && json_is_string(text) ? text : NULL;
}

/* A prompt of an embedding model, such as "query: ", that is put before every text. */
struct prompt {
    const char *text; /* NULL: no prompt is used */
    /* number of tokens of the prompt and of the special tokens before it, which the pooling leaves out; 0: nothing is
     * left out */
    size_t n_ids;
};

/* Sets the prompt's n_ids: counts its tokens and the special tokens before it, but not those after it. */
static bool count_prompt(const whit_api *api, struct prompt *prompt, whit_web_reply *reply)
{
    const size_t n_bytes = strlen(prompt->text), room = n_bytes + 16;
    whit_error error;
    size_t n_all = 0, n_bare = 0, first = 0;
    int32_t *all = malloc(2 * room * sizeof *all), *bare = all + room;
    if (!all) return whit_api_fail_memory(reply);
    bool ok = whit_tokenize(api->model, prompt->text, n_bytes, true, true, all, room, &n_all, &error) == WHIT_OK &&
        whit_tokenize(api->model, prompt->text, n_bytes, false, true, bare, room, &n_bare, &error) == WHIT_OK;
    if (!ok) whit_api_fail_error(reply, &error);
    while (ok && first + n_bare < n_all && memcmp(all + first, bare, n_bare * sizeof *bare) != 0) first++;
    prompt->n_ids = first + n_bare;
    free(all);
    return ok;
}

/* Finds the prompt that the request names in "prompt_name" in the model's metadata. */
static bool find_prompt(const whit_api *api, const json_t *body, struct prompt *prompt, whit_web_reply *reply)
{
    const json_t *name;
    char key[96];
    *prompt = (struct prompt){0};
    if (!whit_field_text(body, "prompt_name", &name, reply)) return false;
    if (!name) return true;
    snprintf(key, sizeof key, "embedding.prompt.%.64s", json_string_value(name));
    prompt->text = whit_model_metadata(api->model, key);
    if (prompt->text && (!*prompt->text || whit_model_pools_prompt(api->model))) return true;
    if (prompt->text) return count_prompt(api, prompt, reply);
    whit_field_refuse(reply, "prompt_name",
                      "the model has no prompt of this name: leave the field out, or put the prompt into the text");
    return false;
}

/* Appends the tokens of a text, preceded by the prompt if it is not NULL, or one token given by its id. */
static bool append_tokens(whit_api *api, const json_t *one, const char *prompt, bool first, int32_t *ids, size_t room,
                          size_t *n, whit_web_reply *reply)
{
    const json_t *text = input_text(one);
    json_int_t value = json_is_integer(one) ? json_integer_value(one) : -1;
    whit_error error;
    size_t n_new = 0;
    if (!text && (value < 0 || value >= whit_model_vocab_size(api->model)))
        return refuse_input(reply, "expected a text, token ids, or a list of either");
    if (text && json_string_length(text) == 0)
        return refuse_input(reply, "a text is empty: send at least one character");
    if (prompt && !text) return refuse_input(reply, "a prompt can be put before texts only, not before token ids");
    if (text) {
        whit_buf whole = {0};
        bool ok = (!prompt || whit_buf_append_str(&whole, prompt)) &&
            whit_buf_append(&whole, json_string_value(text), json_string_length(text));
        if (!ok) whit_api_fail_memory(reply);
        if (ok &&
            whit_tokenize(api->model, whit_chars(&whole), whole.size_bytes, first, true, ids + *n, room - *n, &n_new,
                          &error) != WHIT_OK) {
            whit_api_fail_error(reply, &error);
            ok = false;
        }
        whit_buf_free(&whole);
        if (!ok) return false;
    }
    if (!text) ids[*n] = (int32_t)value, n_new = 1;
    *n += n_new;
    return true;
}

/* Reads the tokens of one input: a text, or a list of token ids and texts. The caller frees *ids, also after a
 * failure. */
static bool read_text(whit_api *api, const json_t *one, const char *prompt, int32_t **ids, size_t *n,
                      whit_web_reply *reply)
{
    uint32_t n_ctx = whit_engine_context_size(api->engine);
    const json_t *text = input_text(one);
    size_t room = 16 + json_string_length(text) + (prompt ? strlen(prompt) : 0), n_parts = json_array_size(one);
    for (size_t i = 0; i < n_parts; i++) room += 16 + json_string_length(input_text(json_array_get(one, i)));
    *n = 0;
    *ids = NULL;
    if (!whit_reply_claim(reply, (room + 1) * sizeof **ids))
        return false; /* claims are not released text by text, but their sum stays small */
    *ids = malloc((room + 1) * sizeof **ids);
    if (!*ids) return whit_api_fail_memory(reply);
    if (!text && !n_parts) return refuse_input(reply, "expected a text, token ids, or a list of either");
    if (text && !append_tokens(api, text, prompt, true, *ids, room, n, reply)) return false;
    for (size_t i = 0; i < n_parts; i++)
        if (!append_tokens(api, json_array_get(one, i), prompt, i == 0, *ids, room, n, reply)) return false;
    if (*n <= n_ctx) return *n > 0 || refuse_input(reply, "a text is empty: send at least one token");
    whit_api_fail(reply, 400, "invalid_request_error", "input",
                  "input: a text has %zu tokens, but the context has only %u: shorten the text", *n, n_ctx);
    return false;
}

/* Returns whether the input is a list of inputs. A list that contains a token id is one input. */
static bool is_several(const json_t *input)
{
    for (size_t i = 0; i < json_array_size(input); i++)
        if (json_is_integer(json_array_get(input, i))) return false;
    return json_array_size(input) > 0;
}

/* Returns whether the request names no adapters; otherwise refuses it, because it would be answered without them. */
bool whit_api_has_no_adapters(const whit_api *api, const json_t *body, whit_web_reply *reply)
{
    whit_job job = {0};
    if (!whit_mounts_are_named(api, body)) return true; /* strengths set by POST /lora-adapters are not for vectors */
    if (!whit_mounts_read(api, body, &job, reply)) return false;
    if (!job.n_mounts) return true;
    whit_api_fail(reply, 400, "invalid_request_error", "adapters",
                  "adapters: vectors are computed without adapters; use the model's name, %s", api->name);
    return false;
}

/* Computes the vectors of the inputs [first, first + n) of a list; `several` false: of the only input. */
static bool embed_some(whit_api *api, const json_t *input, const struct prompt *prompt, bool several, size_t first,
                       size_t n, size_t width, float *values, size_t *n_tokens, whit_web_reply *reply)
{
    whit_embed_text texts[WHIT_VECTOR_TEXTS] = {{0}};
    whit_embed_options options = whit_embed_options_default();
    const whit_vector_work work = {.texts = texts, .n = n, .embed = &options, .values = values};
    whit_error error;
    bool ok = true;
    options.n_dimensions = (uint32_t)width;
    for (size_t i = 0; i < n && ok; i++) {
        int32_t *ids;
        ok = read_text(api, several ? json_array_get(input, first + i) : input, prompt->text, &ids, &texts[i].n_ids,
                       reply);
        texts[i].n_prompt = prompt->n_ids;
        texts[i].ids = ids;
        *n_tokens += texts[i].n_ids;
    }
    if (ok && whit_engine_vectors(api->engine, &work, &error) != WHIT_OK) {
        whit_api_fail_error(reply, &error);
        ok = false;
    }
    for (size_t i = 0; i < n; i++) free((int32_t *)(uintptr_t)texts[i].ids);
    return ok;
}

bool whit_api_embed(whit_api *api, const json_t *body, const char *key, size_t width, int fd, float **values, size_t *n,
                    size_t *n_tokens, whit_web_reply *reply)
{
    const json_t *input = json_object_get(body, key);
    if (!input) input = json_object_get(body, "content"); /* llama.cpp's name for "input" */
    bool several = is_several(input);
    struct prompt prompt;
    *n = several ? json_array_size(input) : 1;
    *n_tokens = 0;
    *values = NULL;
    if (whit_model_n_labels(api->model)) return refuse_input(reply, "the model computes scores: use /v1/rerank");
    if (!input_text(input) && !json_is_array(input))
        return refuse_input(reply, "expected a text, token ids, or a list of either");
    if (*n > MOST_TEXTS) return refuse_input(reply, "expected at most 2048 texts");
    if (!whit_api_has_no_adapters(api, body, reply) || !find_prompt(api, body, &prompt, reply)) return false;
    if (!whit_reply_claim(reply, *n * width * sizeof **values)) return false;
    *values = malloc(*n * width * sizeof **values);
    bool ok = *values || whit_api_fail_memory(reply);
    for (size_t i = 0; i < *n && ok; i += WHIT_VECTOR_TEXTS) {
        const size_t n_some = *n - i < WHIT_VECTOR_TEXTS ? *n - i : WHIT_VECTOR_TEXTS;
        if (whit_socket_peer_left(fd)) ok = refuse_input(reply, "the client closed the connection");
        if (ok) ok = embed_some(api, input, &prompt, several, i, n_some, width, *values + i * width, n_tokens, reply);
    }
    if (!ok) {
        free(*values);
        *values = NULL;
    }
    return ok;
}

/* For each form of a reply: its text before the first vector, a vector's text before its index, the text after the
 * index, and the texts after each vector and after the last one. */
static const struct {
    const char *begin, *vector, *after_index, *vector_end, *end; /* after_index NULL: the vectors have no index */
} forms[] = {
    [WHIT_VECTORS_OPENAI] = {"{\"object\":\"list\",\"data\":[",
                             "{\"object\":\"embedding\",\"index\":", ",\"embedding\":", "}", "]"},
    [WHIT_VECTORS_OLLAMA] = {"{\"embeddings\":[", "", NULL, "", "]"},
    [WHIT_VECTORS_ONE] = {"{\"embedding\":", "", NULL, "", ""},
    [WHIT_VECTORS_LIST] = {"[", "{\"index\":", ",\"embedding\":[", "]}", "]"},
    [WHIT_VECTORS_GEMINI] = {"{\"embeddings\":[", "{\"values\":", NULL, "}", "]"},
    [WHIT_VECTORS_GEMINI_ONE] = {"{\"embedding\":{\"values\":", "", NULL, "", "}"},
};

/* The vectors of a reply that is being written. */
struct vectors {
    float *values;         /* (n, width), one row per vector */
    size_t n, width, i, k; /* i, k: row and column of the next number */
    whit_vectors_form form;
    bool base64;
    whit_buf end; /* text after the last vector */
};

static void free_vectors(void *user)
{
    struct vectors *v = user;
    whit_buf_free(&v->end);
    free(v->values);
    free(v);
}

static void write_base64(const float *values, size_t width, whit_buf *out)
{
    /* clients expect little-endian floats, which is the byte order of all supported machines */
    size_t n_bytes = width * sizeof *values;
    size_t room = sodium_base64_encoded_len(n_bytes, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(room);
    if (text) sodium_bin2base64(text, room, (const uint8_t *)values, n_bytes, sodium_base64_VARIANT_ORIGINAL);
    whit_buf_printf(out, "\"%s\"", whit_or_empty(text));
    if (!text) out->failed = true;
    free(text);
}

static void write_real(float value, whit_buf *out)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", (double)value);
    whit_buf_append_str(out, text);
    if (!text[strcspn(text, ".e")]) whit_buf_append_str(out, ".0"); /* the number must be recognisable as a float */
}

static bool write_vectors(void *user, whit_buf *out)
{
    struct vectors *v = user;
    const float *values = v->values + v->i * v->width;
    const char *after_index = forms[v->form].after_index;
    if (!v->k) {
        whit_buf_append_str(out, v->i ? "," : forms[v->form].begin);
        whit_buf_append_str(out, forms[v->form].vector);
        if (after_index) whit_buf_printf(out, "%zu%s", v->i, after_index);
    }
    if (v->base64) {
        write_base64(values, v->width, out);
        v->k = v->width;
    }
    for (size_t n = 0; n < PIECE_VALUES && v->k < v->width; n++, v->k++) {
        whit_buf_append_str(out, v->k ? "," : "[");
        write_real(values[v->k], out);
    }
    if (v->k < v->width) return true;
    if (!v->base64) whit_buf_append_str(out, "]");
    whit_buf_append_str(out, forms[v->form].vector_end);
    v->k = 0;
    if (++v->i < v->n) return true;
    whit_buf_append(out, v->end.data, v->end.size_bytes);
    return false;
}

void whit_reply_vectors(whit_web_reply *reply, whit_vectors_form form, bool base64, float *values, size_t n,
                        size_t width, json_t *rest)
{
    struct vectors *v = calloc(1, sizeof *v);
    char *text = whit_json_write(rest);
    bool ok = v && text && n && width;
    if (v) *v = (struct vectors){.values = values, .n = n, .width = width, .form = form, .base64 = base64};
    /* The reply's other members follow the list of vectors: of {"a": 1} the text ,"a":1} is appended. */
    ok = ok && whit_buf_append_str(&v->end, forms[form].end);
    if (ok && form != WHIT_VECTORS_LIST) /* the form LIST has no other members */
        ok = whit_buf_append_str(&v->end, json_object_size(rest) ? "," : "") && whit_buf_append_str(&v->end, text + 1);
    free(text);
    json_decref(rest);
    if (ok) {
        whit_reply_pieces(reply, write_vectors, free_vectors, v);
        return;
    }
    if (v)
        free_vectors(v);
    else
        free(values);
    whit_api_fail_memory(reply);
}

void whit_embeddings_post(whit_call *call)
{
    whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    const json_t *format;
    size_t width = whit_model_embedding_size(api->model), n, n_tokens;
    double n_dimensions = (double)width;
    float *values;
    if (!whit_field_text(call->body, "encoding_format", &format, reply) ||
        !whit_field_count(call->body, "dimensions", 1, (double)width, &n_dimensions, reply))
        return;
    width = (size_t)n_dimensions;
    const char *name = format ? json_string_value(format) : "float";
    if (strcmp(name, "float") != 0 && strcmp(name, "base64") != 0) {
        whit_field_refuse(reply, "encoding_format", "expected float or base64");
    } else if (whit_api_embed(api, call->body, "input", width, call->request->fd, &values, &n, &n_tokens, reply)) {
        whit_reply_vectors(reply, WHIT_VECTORS_OPENAI, !strcmp(name, "base64"), values, n, width,
                           json_pack("{s:s, s:{s:I, s:I}}", "model", api->name, "usage", "prompt_tokens",
                                     (json_int_t)n_tokens, "total_tokens", (json_int_t)n_tokens));
    }
}

/* Serves llama.cpp's POST /embedding, whose reply is a list of {"index", "embedding": [[...]]}. */
void whit_embedding_post(whit_call *call)
{
    whit_api *api = call->api;
    size_t width = whit_model_embedding_size(api->model), n, n_tokens;
    float *values;
    if (!whit_api_embed(api, call->body, "input", width, call->request->fd, &values, &n, &n_tokens, call->reply))
        return;
    whit_reply_vectors(call->reply, WHIT_VECTORS_LIST, false, values, n, width, json_object());
}
