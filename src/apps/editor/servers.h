/* SPDX-License-Identifier: MIT
 * Declares language servers for the rest of the editor; language.h has the servers' state and requests. */
#ifndef WHIT_EDITOR_SERVERS_H
#define WHIT_EDITOR_SERVERS_H

#include "editor/doc.h"

/* servers.c: looks for installed language servers. ed_servers_look is called when no key waits; it returns true if it
 * has added a server or opened its question. ed_servers_answer handles a key after the question; it returns false if
 * the key is not an answer but meant for the text. */
bool ed_servers_look(ed *e);
bool ed_servers_answer(ed *e, whit_key key);

/* These functions are in language.c and language_ask.c. */
/* returns NULL if the document has no file or no server is known for its language, or only one found on PATH that may
 * not get this text */
struct ed_server *ed_server_of(ed *e, const struct ed_doc *doc);
/* Starts the server and sends it the document if necessary. Unless `asked`, new versions of a large document with
 * unsaved changes, or while the server is slow to read, are not sent. Returns false if the server does not have the
 * document (yet). */
bool ed_server_has_text(ed *e, struct ed_doc *doc, bool asked);
/* Starts a server that has ended. Returns false after a message if that fails, or if it was started again
 * ED_RESTARTS_MAX times within the last minute. */
bool ed_server_restart(ed *e, struct ed_server *server);
uint64_t ed_server_offset(const struct ed_server *server, const whit_text *text, const json_t *position);
json_t *ed_server_position(const struct ed_server *server, const whit_text *text, uint64_t offset);
const char *ed_server_error(const json_t *message);
void ed_language_ask_now(ed *e);
void ed_language_answer(ed *e, const json_t *message);
void ed_complete_with(ed *e, const char *text, uint64_t from, uint64_t to);

#endif
