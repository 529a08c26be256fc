/* SPDX-License-Identifier: MIT
 * Reads the body of a request as JSON. */
#ifndef WHIT_SERVER_BODY_H
#define WHIT_SERVER_BODY_H

#include "server/replies.h"

/* Parses the body into a JSON object or array, as `type` requires; the caller owns it. Replies with an error and
 * returns NULL if the body is missing, malformed, of another type or too large, if memory cannot be claimed for it, or
 * if a text in it contains a zero byte, at which C code would end the text. */
json_t *whit_body_read(const whit_web_request *request, json_type type, whit_web_reply *reply);

#endif
