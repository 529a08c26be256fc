/* SPDX-License-Identifier: MIT
 * Reads members of a request's body by type. If a number or a switch is absent or null, the value stays unchanged. An
 * invalid value gives a 400 reply that names the member, and the function returns false. */
#ifndef WHIT_SERVER_FIELDS_H
#define WHIT_SERVER_FIELDS_H

#include "server/replies.h"

/* Replies 400: the member `key`, and `what` is wrong with it. Returns false. */
bool whit_field_refuse(whit_web_reply *reply, const char *key, const char *what);
/* Reads a number in [min, max]; *value stays the same if the member is absent or null. If it has another value, replies
 * 400 and returns false. */
bool whit_field_number(const json_t *body, const char *key, double min, double max, double *value,
                       whit_web_reply *reply);
/* Reads a whole number in [min, max]; it may be written as 3.0. */
bool whit_field_count(const json_t *body, const char *key, double min, double max, double *value,
                      whit_web_reply *reply);
bool whit_field_switch(const json_t *body, const char *key, bool *value, whit_web_reply *reply);
/* Returns whether a member has a value other than null, false, 0 or empty, which clients send for members that they do
 * not use. */
bool whit_field_is_given(const json_t *value);
/* A member whose values are not supported, and the reason; the last item of a list has key NULL. */
typedef struct whit_field_unserved {
    const char *key, *why;
} whit_field_unserved;
/* If one of the members is given (whit_field_is_given), replies 400 about the first of them and returns false. */
bool whit_fields_lack(const json_t *body, const whit_field_unserved *members, whit_web_reply *reply);
/* Read a member of one type; *value belongs to `body`, and is NULL if the member is absent or null. */
bool whit_field_text(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply);
bool whit_field_object(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply);
bool whit_field_list(const json_t *body, const char *key, const json_t **value, whit_web_reply *reply);

#endif
