/* SPDX-License-Identifier: MIT
 * Reads the body of a request as JSON. */
#ifndef WHIT_SERVER_BODY_H
#define WHIT_SERVER_BODY_H

#include "server/replies.h"

/* Parses the body into a value of the type JSON_OBJECT or JSON_ARRAY, which the caller owns. Returns NULL if it has
 * another type, or if a text contains a zero byte, which would end the text for readers of C strings; the reply names
 * the place. */
json_t *whit_body_read(const whit_web_request *request, json_type type, whit_web_reply *reply);

#endif
