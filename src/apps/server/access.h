/* SPDX-License-Identifier: MIT
 * Controls access: checks API keys, refuses requests from pages of other sites, and answers CORS requests of
 * browsers. */
#ifndef WHIT_SERVER_ACCESS_H
#define WHIT_SERVER_ACCESS_H

#include "server/replies.h"

/* If the options name key files, starts the helper process that opens these files again for the sandboxed server. Must
 * be called before threads are started. */
whit_status whit_access_start(whit_site *site, whit_error *error);
/* Reads the API keys of the options into the site. Also checks the value of --cors. */
whit_status whit_access_read(whit_site *site, whit_error *error);
void whit_access_free(whit_site *site);
/* Reads the key files again and replaces all keys; does nothing if the options name no key files. If a file cannot be
 * read, contains a mistake or contains no key, the keys stay unchanged. Prints the result on stderr. Must be called by
 * one thread at a time. */
void whit_access_reload(whit_site *site);
/* Adds eight hexadecimal digits that identify the key (the first four bytes of its hash in reversed order), and its
 * name if it has one, to a line of the log. `key` comes from whit_key_allows. Adds nothing if the server has no such
 * key. */
void whit_access_log_key(const whit_site *site, uint64_t key, json_t *line);
/* Returns whether the key with this hash may use a model or an adapter. Keys without a list of models, and requests
 * without a key (0), may use all. A key that was removed by a reload while its request runs may use none. */
bool whit_key_may_use(const whit_site *site, uint64_t key, const char *model);
/* Replies 403: the request's key may not use this model. */
void whit_key_refuse_model(whit_web_reply *reply);
/* Returns whether the key may use only a list of models; true, too, for a key that a reload has removed. */
bool whit_key_is_limited(const whit_site *site, uint64_t key);
/* Counts one more request of the key. Returns false if its requests per minute are used up, and replies 429 with the
 * time to wait. */
bool whit_key_count(const whit_site *site, uint64_t key, whit_web_reply *reply);
/* Returns whether the request has a valid key or no key is required. *key: the first bytes of the key's hash, 0 without
 * a valid key. All keys of the server are compared, so that the time does not reveal which one matches. */
bool whit_key_allows(const whit_site *site, const whit_web_request *request, uint64_t *key);
/* Returns whether the request was sent by a page of another site, which --cors does not allow, and must be refused.
 * OPTIONS is not refused for this, and GET only if it opens a model (opens_model): the page could not read an answer,
 * but its request would cost as much as any other. A server for this machine alone without keys also refuses every
 * request whose Host is a public name that --cors does not allow: a page whose name was made to resolve to this machine
 * (DNS rebinding) could read the answer. */
bool whit_request_is_foreign(const whit_site *site, const whit_web_request *request, bool opens_model);
/* Refuses a request of another site's page with 403. The message names the option that would allow the page. */
void whit_foreign_refuse(const whit_site *site, const whit_web_request *request, whit_web_reply *reply);
/* Allows pages of the origin of --cors to read the answer, by reply headers. Does nothing and returns false without
 * --cors. Returns true if the request is OPTIONS, which no handler answers: the call with headers_only adds only a
 * header, the second call completes the reply. */
bool whit_cors_answer(const whit_site *site, const whit_web_request *request, whit_web_reply *reply);

#endif
