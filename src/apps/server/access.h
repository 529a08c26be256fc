/* SPDX-License-Identifier: MIT
 * Access control: API keys, pages of other sites, CORS. */
#ifndef WHIT_SERVER_ACCESS_H
#define WHIT_SERVER_ACCESS_H

#include "server/replies.h"

/* Starts the process that rereads key files for the sandboxed server, if there are any. Call before threads are
 * started. */
whit_status whit_access_start(whit_site *site, whit_error *error);
/* Reads the API keys of the options into the site. */
whit_status whit_access_read(whit_site *site, whit_error *error);
void whit_access_free(whit_site *site);
/* Reads the key files again and replaces all keys. If a file cannot be read, has a mistake or contains no key, the
 * keys stay unchanged. Reports the result on stderr. Call on one thread. */
void whit_access_reload(whit_site *site);
/* Adds to a line of the log the first digits of the key's hash, which whit_key_allows gave, and the key's name if it
 * has one. Nothing is added for a key that is not the server's. */
void whit_access_log_key(const whit_site *site, uint64_t key, json_t *line);
/* May the key of that hash use a model or an adapter? All keys may if they have no list of models, and requests without
 * a key (0); a key that a reload has removed while its request runs may use nothing more. */
bool whit_key_may_use(const whit_site *site, uint64_t key, const char *model);
/* Replies 403: the key may not use this model. */
void whit_key_refuse_model(whit_web_reply *reply);
bool whit_key_is_limited(const whit_site *site, uint64_t key); /* whether the key is restricted to a list of models */
/* Counts one more request of the key. False: its requests of a minute are used up, and the reply (429) says until
 * when. */
bool whit_key_count(const whit_site *site, uint64_t key, whit_web_reply *reply);
/* Does the request give one of the keys, or is no key required? *key: a hash of the given key, 0 unless it is one of
 * the server's. Compares with every key, in the same time whichever fits. */
bool whit_key_allows(const whit_site *site, const whit_web_request *request, uint64_t *key);
/* Was the request sent by a page of another site? Of a POST, and of a GET that opens a model (opens_model), the browser
 * says so; that page could not read the answer, but its request would cost as much as any other. A server for this
 * machine alone without keys also refuses every method under a Host that is a public name, unless --cors has it: a page
 * whose name was made to lead here (DNS rebinding) could read the answer. */
bool whit_request_is_foreign(const whit_site *site, const whit_web_request *request, bool opens_model);
/* Refuses a request of another site's page: 403, naming the option that would allow the page. */
void whit_foreign_refuse(const whit_site *site, const whit_web_request *request, whit_web_reply *reply);
/* Lets pages of the origin of --cors read the answer. True: they only asked whether they may, and the reply tells. */
bool whit_cors_answer(const whit_site *site, const whit_web_request *request, whit_web_reply *reply);

#endif
