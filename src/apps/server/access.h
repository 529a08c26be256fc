/* SPDX-License-Identifier: MIT
 * Controls access: checks API keys, refuses requests of other sites' pages, and answers CORS. */
#ifndef WHIT_SERVER_ACCESS_H
#define WHIT_SERVER_ACCESS_H

#include "server/replies.h"

/* Starts the process that rereads key files for the sandboxed server, if there are any. Call before threads are
 * started. */
whit_status whit_access_start(whit_site *site, whit_error *error);
/* Reads the API keys of the options into the site. */
whit_status whit_access_read(whit_site *site, whit_error *error);
void whit_access_free(whit_site *site);
/* Reads the key files again and replaces all keys. If a file cannot be read, contains a mistake or contains no key, the
 * keys stay unchanged. Reports the result on stderr. Must be called by one thread at a time. */
void whit_access_reload(whit_site *site);
/* Adds to a line of the log the first digits of the key's hash, which whit_key_allows returned, and the key's name if
 * it has one. Adds nothing for a key that is not one of the server's. */
void whit_access_log_key(const whit_site *site, uint64_t key, json_t *line);
/* Returns whether the key with that hash may use a model or an adapter. Keys without a list of models, and requests
 * without a key (0), may use all; a key that a reload has removed while its request runs may use nothing more. */
bool whit_key_may_use(const whit_site *site, uint64_t key, const char *model);
/* Replies 403: the key may not use this model. */
void whit_key_refuse_model(whit_web_reply *reply);
/* Returns whether the key is restricted to a list of models. */
bool whit_key_is_limited(const whit_site *site, uint64_t key);
/* Counts one more request of the key. Returns false if its requests per minute are used up; the reply (429) then says
 * until when. */
bool whit_key_count(const whit_site *site, uint64_t key, whit_web_reply *reply);
/* Returns whether the request gives one of the keys, or no key is required. *key: a hash of the given key, 0 unless it
 * is one of the server's. The key is compared with every key of the server, so that the time does not depend on which
 * one is equal. */
bool whit_key_allows(const whit_site *site, const whit_web_request *request, uint64_t *key);
/* Returns whether the request was sent by a page of another site. The browser says so in a POST, and in a GET that
 * opens a model (opens_model); that page could not read the answer, but its request would cost as much as any other. A
 * server for this machine alone without keys also refuses every method if Host is a public name, unless --cors allows
 * it: a page whose name was made to resolve to this machine (DNS rebinding) could read the answer. */
bool whit_request_is_foreign(const whit_site *site, const whit_web_request *request, bool opens_model);
/* Refuses a request of another site's page with 403; the message names the option that would allow the page. */
void whit_foreign_refuse(const whit_site *site, const whit_web_request *request, whit_web_reply *reply);
/* Lets pages of the origin of --cors read the answer. Returns true if the request only asked whether it may (a
 * preflight), which the reply answers. */
bool whit_cors_answer(const whit_site *site, const whit_web_request *request, whit_web_reply *reply);

#endif
