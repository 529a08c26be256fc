/* SPDX-License-Identifier: MIT
 * Declares language servers for the rest of the editor; language.h has the protocol. */
#ifndef WHIT_EDITOR_SERVERS_H
#define WHIT_EDITOR_SERVERS_H

#include "editor/doc.h"

/* The functions of servers.c look for installed language servers. The first is called when no key waits, and returns
 * true if it did something. The second takes the key that answers its question, and returns false if the key is for the
 * text. */
bool ed_servers_look(ed *e);
bool ed_servers_answer(ed *e, whit_key key);

/* language.h describes the functions of language.c and language_ask.c. */
struct ed_server *ed_server_of(ed *e, const struct ed_doc *doc); /* returns NULL if no server is configured */
/* Starts the server if needed and opens the text in it; returns false if the server does not have the text (yet). */
bool ed_server_has_text(ed *e, struct ed_doc *doc, bool asked);
uint64_t ed_server_offset(const struct ed_server *server, const whit_text *text, const json_t *position);
json_t *ed_server_position(const struct ed_server *server, const whit_text *text, uint64_t offset);
const char *ed_server_error(const json_t *message);
void ed_language_ask_now(ed *e);
void ed_language_answer(ed *e, const json_t *message);
void ed_complete_with(ed *e, const char *text, uint64_t from, uint64_t to);

#endif
