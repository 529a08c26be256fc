/* SPDX-License-Identifier: MIT
 * Parses the body of a request as JSON, with a limit on the memory that the values need. */
#include <stdio.h>
#include <string.h>

#include "server/body.h"
#include "server/json_text.h"

/* A JSON value needs about 40 bytes of memory and at least two of text. A list or an object needs 250 bytes of memory
 * and at least three of text, and therefore counts as HOLDER_VALUES values. MOST_VALUES values need 40 MB; a prompt of
 * as many ids as the largest context needs an eighth of that. */
enum { MOST_STEPS = 8, MOST_KEY_BYTES = 40, MOST_VALUES = 1 << 20, HOLDER_VALUES = 8, VALUE_BYTES = 40 };

/* Describes the path to a value, innermost step first. Only MOST_STEPS steps of a longer path are stored, but all are
 * counted in `n`. */
struct place {
    struct {
        const char *key; /* member of an object; NULL: the step is index `i` of a list */
        size_t i;
    } steps[MOST_STEPS];
    size_t n;
};

static bool found_in(struct place *place, const char *key, size_t i)
{
    if (place->n < MOST_STEPS) place->steps[place->n].key = key, place->steps[place->n].i = i;
    place->n++;
    return true;
}

/* Returns whether a text in the value contains a zero byte, and the path of the first one. Recurses as deep as the
 * parser allows values to nest. */
static bool find_zero(const json_t *value, struct place *place)
{
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_string(value)) return strlen(json_string_value(value)) < json_string_length(value);
    json_array_foreach((json_t *)value, i, one)
    {
        if (find_zero(one, place)) return found_in(place, NULL, i);
    }
    json_object_foreach((json_t *)value, key, one)
    {
        if (find_zero(one, place)) return found_in(place, key, 0);
    }
    return false;
}

/* Writes a JSON path as text, such as messages[0].content. */
static void write_place(const struct place *place, char *text, size_t room)
{
    size_t at = (size_t)snprintf(text, room, "%s", place->n > MOST_STEPS ? "..." : "");
    for (size_t k = place->n < MOST_STEPS ? place->n : MOST_STEPS; k-- > 0 && at < room;) {
        const char *key = place->steps[k].key;
        if (key && strlen(key) > MOST_KEY_BYTES) key = "...";
        if (key)
            at += (size_t)snprintf(text + at, room - at, "%s%s", at ? "." : "", key);
        else
            at += (size_t)snprintf(text + at, room - at, "[%zu]", place->steps[k].i);
    }
}

/* Estimates the number of JSON values in the text; lists and objects count as HOLDER_VALUES each. This is called before
 * the text is parsed, because parsing allocates the memory. */
static size_t count_values(const char *body, size_t n)
{
    size_t n_values = 1;
    bool in_text = false;
    for (size_t i = 0; i < n; i++) {
        if (in_text && body[i] == '\\')
            i++;
        else if (body[i] == '"')
            in_text = !in_text;
        else if (!in_text && (body[i] == '{' || body[i] == '['))
            n_values += HOLDER_VALUES;
        else if (!in_text && body[i] == ',')
            n_values++;
    }
    return n_values;
}

json_t *whit_body_read(const whit_web_request *request, json_type type, whit_web_reply *reply)
{
    struct place place = {.n = 0};
    char text[MOST_STEPS * (MOST_KEY_BYTES + 1) + 4];
    json_error_t reason = {.text = "the body is empty"};
    whit_json_forget();
    if (request->body_claim != WHIT_CLAIM_TAKEN) {
        whit_reply_unclaimed(reply, request->body_claim);
        return NULL;
    }
    if (request->is_too_long) {
        whit_api_fail(reply, 413, "invalid_request_error", NULL, "the body is larger than %u MiB",
                      WHIT_WEB_MAX_BODY_BYTES >> 20);
        return NULL;
    }
    size_t n_values = request->body ? count_values(request->body, request->body_bytes) : 0;
    if (n_values > MOST_VALUES) {
        whit_api_fail(reply, 413, "invalid_request_error", NULL,
                      "the body has more than %d values, or more than %d lists and objects", MOST_VALUES,
                      MOST_VALUES / HOLDER_VALUES);
        return NULL;
    }
    if (!whit_reply_claim(reply, n_values * VALUE_BYTES + request->body_bytes)) return NULL;
    /* The parser accepts zero bytes in texts, so that the error below can name their place. */
    json_t *body = request->body ? whit_json_read(request->body, request->body_bytes, &reason) : NULL;
    if (!body && json_error_code(&reason) == json_error_null_byte_in_key) {
        whit_api_fail(reply, 400, "invalid_request_error", NULL,
                      "line %d of the request: a key contains a zero byte (\\u0000): leave it out", reason.line);
    } else if (!body || json_typeof(body) != type) {
        const char *wanted = type == JSON_OBJECT ? "object" : "list";
        whit_api_fail(reply, 400, "invalid_request_error", NULL, "the body is not a JSON %s: %s", wanted,
                      body ? "another value" : reason.text);
    } else if (find_zero(body, &place)) {
        write_place(&place, text, sizeof text);
        whit_api_fail(reply, 400, "invalid_request_error", text,
                      "%s: a text contains a zero byte (\\u0000): leave it out", text);
    } else {
        return body;
    }
    json_decref(body);
    return NULL;
}
