/* SPDX-License-Identifier: MIT
 * Texts into vectors. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "server/ask.h"
#include "server/embeddings.h"
#include "server/endpoints.h"

enum { MOST_TEXTS = 2048 };

static bool fail(whit_web_reply *reply, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", "input", "input: %s", what);
    return false;
}

/* One text's tokens, the caller's. */
static bool read_text(whit_api *api, const json_t *one, int32_t **ids, size_t *n, whit_web_reply *reply)
{
    uint32_t n_ctx = whit_engine_context_size(api->engine);
    size_t room = json_is_string(one) ? json_string_length(one) + 16 : json_array_size(one);
    whit_error error;
    *n = 0;
    *ids = malloc((room + 1) * sizeof **ids);
    if (!*ids) return fail(reply, "out of memory");
    if (json_is_string(one)) {
        if (json_string_length(one) == 0) return fail(reply, "a text is empty");
        if (whit_tokenize(api->model, json_string_value(one), json_string_length(one), true, true, *ids, room, n,
                          &error) != WHIT_OK) {
            whit_api_fail_error(reply, &error);
            return false;
        }
    } else {
        if (room == 0) return fail(reply, "expected a text, token ids, or a list of either");
        for (; *n < room; ++*n) {
            const json_t *id = json_array_get(one, *n);
            json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
            if (value < 0 || value >= whit_model_vocab_size(api->model))
                return fail(reply, "expected a text, token ids, or a list of either");
            (*ids)[*n] = (int32_t)value;
        }
    }
    if (*n <= n_ctx) return *n > 0 || fail(reply, "a text has no tokens");
    whit_api_fail(reply, 400, "invalid_request_error", "input", "a text has %zu tokens, the context %u", *n, n_ctx);
    return false;
}

/* Vectors are computed without adapters: refused rather than those of another model. */
static bool has_no_adapters(const whit_api *api, const json_t *body, whit_web_reply *reply)
{
    whit_job job = {0};
    if (!whit_mounts_read(api, body, &job, reply)) return false;
    if (!job.n_mounts) return true;
    whit_api_fail(reply, 400, "invalid_request_error", "adapters",
                  "adapters: vectors are computed without any; ask by the name of the model, %s", api->name);
    return false;
}

bool whit_api_embed(whit_api *api, const json_t *body, const char *key, int fd, float **values, size_t *n,
                    size_t *n_tokens, whit_web_reply *reply)
{
    const json_t *input = json_object_get(body, key);
    const json_t *first = json_array_get(input, 0);
    bool several = json_is_string(first) || json_is_array(first);
    size_t width = whit_model_embedding_size(api->model);
    *n = several ? json_array_size(input) : 1;
    *n_tokens = 0;
    *values = NULL;
    if (!json_is_string(input) && !json_is_array(input))
        return fail(reply, "expected a text, token ids, or a list of either");
    if (*n > MOST_TEXTS) return fail(reply, "at most 2048 texts");
    if (!has_no_adapters(api, body, reply)) return false;
    *values = malloc(*n * width * sizeof **values);
    bool ok = *values || fail(reply, "out of memory");
    for (size_t i = 0; i < *n && ok; i++) {
        int32_t *ids = NULL;
        size_t n_ids;
        whit_error error;
        ok = read_text(api, several ? json_array_get(input, i) : input, &ids, &n_ids, reply);
        if (ok && whit_web_client_left(fd)) ok = fail(reply, "the client left");
        if (ok && whit_engine_embed(api->engine, ids, n_ids, *values + i * width, &error) != WHIT_OK) {
            whit_api_fail_error(reply, &error);
            ok = false;
        }
        if (ok) *n_tokens += n_ids;
        free(ids);
    }
    if (!ok) {
        free(*values);
        *values = NULL;
    }
    return ok;
}

static json_t *vector_json(const float *values, size_t width, bool base64)
{
    if (base64) { /* little-endian floats, as every machine that this runs on has them */
        size_t room = sodium_base64_encoded_len(width * sizeof *values, sodium_base64_VARIANT_ORIGINAL);
        char *text = malloc(room);
        json_t *own = NULL;
        if (text)
            own = json_string(sodium_bin2base64(text, room, (const uint8_t *)values, width * sizeof *values,
                                                sodium_base64_VARIANT_ORIGINAL));
        free(text);
        return own;
    }
    json_t *list = json_array();
    for (size_t k = 0; k < width; k++) json_array_append_new(list, json_real((double)values[k]));
    return list;
}

void whit_embeddings_post(whit_call *call)
{
    whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    const json_t *body = call->body;
    const json_t *format = json_object_get(body, "encoding_format"), *size = json_object_get(body, "dimensions");
    const char *name = json_string_value(format);
    size_t width = whit_model_embedding_size(api->model), n, n_tokens;
    float *values;
    if (format && !json_is_null(format) && (!name || (strcmp(name, "float") != 0 && strcmp(name, "base64") != 0))) {
        whit_api_fail(reply, 400, "invalid_request_error", "encoding_format",
                      "encoding_format: expected float or base64");
    } else if (size && !json_is_null(size) && json_integer_value(size) != (json_int_t)width) {
        whit_api_fail(reply, 400, "invalid_request_error", "dimensions",
                      "dimensions: the model's vectors have %zu, and no others are given", width);
    } else if (whit_api_embed(api, body, "input", call->request->fd, &values, &n, &n_tokens, reply)) {
        json_t *data = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(data,
                                  json_pack("{s:s, s:I, s:o}", "object", "embedding", "index", (json_int_t)i,
                                            "embedding",
                                            vector_json(values + i * width, width, name && !strcmp(name, "base64"))));
        free(values);
        whit_api_reply(reply,
                       json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data, "model", api->name,
                                 "usage", "prompt_tokens", (json_int_t)n_tokens, "total_tokens", (json_int_t)n_tokens));
    }
}
