/* SPDX-License-Identifier: MIT
 * Runs a language server: its process, and JSON-RPC in both directions without ever waiting. language.c,
 * language_ask.c and language_edit.c have the requests and the uses of the answers. The protocol is LSP 3.17,
 * https://microsoft.github.io/language-server-protocol. */
#ifndef WHIT_EDITOR_LSP_H
#define WHIT_EDITOR_LSP_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_LSP_MESSAGE_BYTES (64u << 20)

/* ---- messages ------------------------------------------------------------------------------ */

/* Parses the first message in the bytes received so far. The caller owns *message, which is NULL if the content is not
 * a JSON object. Returns the number of bytes consumed; 0 if the message is incomplete; WHIT_LSP_BROKEN if the bytes are
 * not a message header, or announce more than 64 MiB, since later messages cannot be found then. */
#define WHIT_LSP_BROKEN SIZE_MAX
size_t whit_lsp_next(const void *data, size_t n_bytes, json_t **message);

/* Convert a column of the protocol to a byte offset in a line of UTF-8 (without its line end), and back. `character`
 * counts UTF-16 units, or bytes if `utf8` is set. A column beyond the line's end becomes the end. */
size_t whit_lsp_to_byte(const char *line, size_t n_bytes, uint64_t character, bool utf8);
uint64_t whit_lsp_from_byte(const char *line, size_t n_bytes, size_t byte, bool utf8);

/* ---- the process --------------------------------------------------------------------------- */

typedef struct whit_lsp whit_lsp;

/* Starts `command`, whose words are separated by blanks, in `folder`. The server ends when this process ends, however
 * that happens. The caller owns *lsp. */
whit_status whit_lsp_open(const char *command, const char *folder, whit_lsp **lsp, whit_error *error);
/* Asks the server to exit, and kills it if it does not. */
void whit_lsp_close(whit_lsp *lsp);

/* Queue messages. They take ownership of `params` and `result`, also on failure. whit_lsp_request returns the id of the
 * request, or 0 if memory runs out or too many bytes are queued. */
uint64_t whit_lsp_request(whit_lsp *lsp, const char *method, json_t *params);
void whit_lsp_notify(whit_lsp *lsp, const char *method, json_t *params);
void whit_lsp_reply(whit_lsp *lsp, const json_t *id, json_t *result, int error_code);

/* Returns the number of queued bytes that were not written yet. */
size_t whit_lsp_unsent(const whit_lsp *lsp);
/* Sets the descriptors to poll: fds[0] for POLLIN, and fds[1] for POLLOUT unless it is -1. */
void whit_lsp_fds(const whit_lsp *lsp, int fds[2]);
/* Writes as much as possible and reads at most 1 MiB, without waiting. Returns false when the server has ended, has
 * sent bytes that are not a message, or has left too many queued bytes unread, and when memory has run out. */
bool whit_lsp_pump(whit_lsp *lsp);
/* Removes and returns the next received message, which the caller then owns, or NULL. */
json_t *whit_lsp_take(whit_lsp *lsp);

#endif
