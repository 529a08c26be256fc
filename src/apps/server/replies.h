/* SPDX-License-Identifier: MIT
 * Makes replies of JSON, and errors in the form that each vendor's clients expect. */
#ifndef WHIT_SERVER_REPLIES_H
#define WHIT_SERVER_REPLIES_H

#include <jansson.h>

#include "server/routes.h"

void whit_api_reply(whit_web_reply *reply, json_t *body); /* takes ownership of `body` */
/* Adds a header; both texts must outlive the reply. */
void whit_reply_header(whit_web_reply *reply, const char *name, const char *value);
/* Makes the reply {"error": {...}}; `type` is one of OpenAI's error types. */
void whit_api_fail(whit_web_reply *reply, int status, const char *type, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void whit_api_fail_error(whit_web_reply *reply, const whit_error *error);
/* Replies 500 because memory ran out; returns false. */
bool whit_api_fail_memory(whit_web_reply *reply);
/* Claims memory for the request; false: the reply is a 413 or a 503, and the memory must not be used. */
bool whit_reply_claim(whit_web_reply *reply, size_t n_bytes);
/* Writes the 413 or 503 reply for a claim that was refused. */
void whit_reply_unclaimed(whit_web_reply *reply, whit_claim_result result);
/* Sets the error's "code", by which clients distinguish errors. */
void whit_api_set_code(whit_web_reply *reply, const char *code);
/* Rewrites an error reply of the functions above in the vendor's form. */
void whit_api_translate_error(whit_vendor vendor, whit_web_reply *reply);
/* Makes a JSON string of bytes that may be invalid UTF-8 or end inside a character: invalid bytes are replaced. */
json_t *whit_api_any_text(const char *text);

#endif
