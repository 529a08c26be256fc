/* SPDX-License-Identifier: MIT
 * Other vendors' chat APIs: their requests become OpenAI's chat requests, and what comes of them is written
 * as they have it. */
#ifndef WHIT_SERVER_DIALECT_H
#define WHIT_SERVER_DIALECT_H

#include "server/api.h"

/* "event: TYPE" and the data, which is taken; its type is the member "type". */
void whit_dialect_send(whit_buf *out, json_t *event);
/* Of bytes that may end within a character. */
json_t *whit_dialect_text(const void *text, size_t n);
/* A call's arguments as an object; NULL: they are none, as those of a call that was cut. */
json_t *whit_dialect_arguments(const json_t *text);

/* POST /v1/messages and /v1/messages/count_tokens; POST /v1/responses. False: the path is none of them. */
bool whit_messages_route(whit_api *api, const whit_web_request *request, const char *path, uint64_t key,
                         whit_web_reply *reply);
/* POST /completion and /infill, as llama.cpp has them. */
bool whit_completion_route(whit_api *api, const whit_web_request *request, const char *path, uint64_t key,
                           whit_web_reply *reply);
bool whit_responses_route(whit_api *api, const whit_web_request *request, const char *path, uint64_t key,
                          whit_web_reply *reply);

#endif
