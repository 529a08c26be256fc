/* SPDX-License-Identifier: MIT
 * Reads members of a request's body by type. Absent members and null leave the value unchanged; an invalid value gives
 * a 400 reply that names the member. */
#ifndef WHIT_SERVER_FIELDS_H
#define WHIT_SERVER_FIELDS_H

#include "server/replies.h"

/* Replies 400 about the member `key`; returns false. */
bool whit_field_refuse(whit_web_reply *reply, const char *key, const char *what);
/* Reads a number from min to max. */
bool whit_field_number(const json_t *body, const char *key, double min, double max, double *value,
                       whit_web_reply *reply);
/* Reads a whole number from min to max; it may be written as 3.0. */
bool whit_field_count(const json_t *body, const char *key, double min, double max, double *value,
                      whit_web_reply *reply);
bool whit_field_switch(const json_t *body, const char *key, bool *value, whit_web_reply *reply);
/* Returns whether a value counts as given: it is not null, false, 0 or empty, which clients send for members without a
 * value. */
bool whit_field_is_given(const json_t *value);
/* Describes a member whose value is not supported, and the reason; `key` NULL ends a list. */
typedef struct whit_field_unserved {
    const char *key, *why;
} whit_field_unserved;
/* Replies 400 about the first of the members that is present; returns false then. */
bool whit_fields_lack(const json_t *body, const whit_field_unserved *members, whit_web_reply *reply);
/* Reads a string member; *value is NULL if it is absent or null. */
bool whit_field_text(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply);
bool whit_field_object(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply);
bool whit_field_list(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply);

#endif
