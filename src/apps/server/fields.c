/* SPDX-License-Identifier: MIT */
#include "server/fields.h"

#include <math.h>

bool whit_field_refuse(whit_web_reply *reply, const char *key, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", key, "%s: %s", key, what);
    return false;
}

bool whit_field_number(const json_t *body, const char *key, double min, double max, double *value,
                       whit_web_reply *reply)
{
    const json_t *given = json_object_get(body, key);
    if (!given || json_is_null(given)) return true;
    double number = json_is_number(given) ? json_number_value(given) : NAN;
    if (!(number >= min && number <= max)) {
        /* whole limits are printed as integers, since %g would print 1.07374e+09 */
        bool is_whole = min == floor(min) && max == floor(max);
        whit_api_fail(reply, 400, "invalid_request_error", key,
                      is_whole ? "%s: expected a number from %.0f to %.0f" : "%s: expected a number from %g to %g", key,
                      min, max);
        return false;
    }
    *value = number;
    return true;
}

bool whit_field_count(const json_t *body, const char *key, double min, double max, double *value, whit_web_reply *reply)
{
    double number = *value;
    if (!whit_field_number(body, key, min, max, &number, reply)) return false;
    if (number != floor(number)) return whit_field_refuse(reply, key, "expected a whole number");
    *value = number;
    return true;
}

bool whit_field_switch(const json_t *body, const char *key, bool *value, whit_web_reply *reply)
{
    const json_t *given = json_object_get(body, key);
    if (!given || json_is_null(given)) return true;
    *value = json_is_true(given);
    return json_is_boolean(given) || whit_field_refuse(reply, key, "expected true or false");
}

static bool read_typed(const json_t *body, const char *key, json_type type, const char *what, const json_t **value,
                       whit_web_reply *reply)
{
    const json_t *given = json_object_get(body, key);
    *value = given && json_typeof(given) == type ? given : NULL;
    return !given || *value || json_is_null(given) || whit_field_refuse(reply, key, what);
}

bool whit_field_text(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply)
{
    return read_typed(body, key, JSON_STRING, "expected a text", value, reply);
}

bool whit_field_object(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply)
{
    return read_typed(body, key, JSON_OBJECT, "expected an object", value, reply);
}

bool whit_field_list(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply)
{
    return read_typed(body, key, JSON_ARRAY, "expected a list", value, reply);
}

bool whit_field_is_given(const json_t *value)
{
    if (json_is_string(value)) return json_string_length(value) > 0;
    if (json_is_array(value)) return json_array_size(value) > 0;
    if (json_is_object(value)) return json_object_size(value) > 0;
    return json_is_true(value) || (json_is_number(value) && json_number_value(value) != 0);
}

bool whit_fields_lack(const json_t *body, const whit_field_unserved *members, whit_web_reply *reply)
{
    for (; members->key; members++)
        if (whit_field_is_given(json_object_get(body, members->key)))
            return whit_field_refuse(reply, members->key, members->why);
    return true;
}
