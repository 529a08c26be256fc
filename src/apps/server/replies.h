/* SPDX-License-Identifier: MIT
 * Makes JSON replies, and errors in the form that the clients of each vendor expect. */
#ifndef WHIT_SERVER_REPLIES_H
#define WHIT_SERVER_REPLIES_H

#include <jansson.h>

#include "server/routes.h"

/* Sets the reply's body; takes ownership of `body`. The status becomes 200 if it was 0, and 500 if memory runs out. */
void whit_api_reply(whit_web_reply *reply, json_t *body);
/* Adds a header; both strings must outlive the reply. */
void whit_reply_header(whit_web_reply *reply, const char *name, const char *value);
/* Makes the error reply {"error": {...}}. type: one of OpenAI's error types; param: the member that caused the error,
 * or NULL. */
void whit_api_fail(whit_web_reply *reply, int status, const char *type, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void whit_api_fail_error(whit_web_reply *reply, const whit_error *error);
/* Replies 500 because memory ran out; returns false. */
bool whit_api_fail_memory(whit_web_reply *reply);
/* Claims memory for the request before it is allocated. If a limit refuses the claim, replies 413 or 503 and returns
 * false. */
bool whit_reply_claim(whit_web_reply *reply, size_t n_bytes);
/* Replies 413 or 503 for a claim of memory that was refused. */
void whit_reply_unclaimed(whit_web_reply *reply, whit_claim_result result);
/* Sets the member "code" of an error reply, by which clients distinguish errors. */
void whit_api_set_code(whit_web_reply *reply, const char *code);
/* Converts an error reply of the functions above to the vendor's form. */
void whit_api_translate_error(whit_vendor vendor, whit_web_reply *reply);
/* Makes a JSON string from bytes. Invalid UTF-8, including an incomplete character at the end, is replaced. */
json_t *whit_api_any_text(const char *text);

#endif
