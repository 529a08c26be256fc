/* SPDX-License-Identifier: MIT
 * Language servers as the rest of the editor uses them; language.h has the protocol. */
#ifndef WHIT_EDITOR_SERVERS_H
#define WHIT_EDITOR_SERVERS_H

#include "editor/doc.h"

/* servers.c: installed language servers. The first is for when no key waits: true where something was done. The
 * second takes the key that answers; false: the key is for the text. */
bool ed_servers_look(ed *e);
bool ed_servers_answer(ed *e, whit_key key);

/* language.c, language_ask.c: see language.h */
struct ed_server *ed_server_of(ed *e, const struct ed_doc *doc); /* NULL: none is configured */
/* Starts the server if needed and opens the text in it; false if the server does not have the text (yet). */
bool ed_server_has_text(ed *e, struct ed_doc *doc, bool asked);
uint64_t ed_server_offset(const struct ed_server *server, const whit_text *text, const json_t *position);
json_t *ed_server_position(const struct ed_server *server, const whit_text *text, uint64_t offset);
const char *ed_server_error(const json_t *message);
void ed_language_ask_now(ed *e);
void ed_language_answer(ed *e, const json_t *message);
void ed_complete_with(ed *e, const char *text, uint64_t from, uint64_t to);

#endif
