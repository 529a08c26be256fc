/* SPDX-License-Identifier: MIT
 * Runs a language server: its process, and JSON-RPC in both directions without ever waiting. language.c has the
 * questions and the uses of the answers. The protocol is LSP 3.17,
 * https://microsoft.github.io/language-server-protocol. */
#ifndef WHIT_EDITOR_LSP_H
#define WHIT_EDITOR_LSP_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_LSP_MESSAGE_BYTES (64u << 20)

/* ---- messages ------------------------------------------------------------------------------ */

/* Parses the first whole message of the bytes read so far. The caller owns *message, which is NULL if the content is no
 * JSON object. Returns the number of bytes consumed, 0 if more must come, or WHIT_LSP_BROKEN if the bytes are no header
 * of a message, or announce over 64 MiB: the messages after it cannot be found then. */
#define WHIT_LSP_BROKEN SIZE_MAX
size_t whit_lsp_next(const void *data, size_t n_bytes, json_t **message);

/* These functions convert a column of the protocol to a byte offset in a line of UTF-8 (without its end), and back:
 * `character` counts units of UTF-16, or bytes if `utf8` is set. Columns after the line's end become its end. */
size_t whit_lsp_to_byte(const char *line, size_t n_bytes, uint64_t character, bool utf8);
uint64_t whit_lsp_from_byte(const char *line, size_t n_bytes, size_t byte, bool utf8);

/* These functions convert a URI such as "file:///a%20b" to an absolute path, and back; they return false if the text is
 * not one, or if the result does not fit. */
bool whit_lsp_path(const char *uri, char *path, size_t path_bytes);
bool whit_lsp_uri(const char *path, char *uri, size_t uri_bytes);

/* ---- the process --------------------------------------------------------------------------- */

typedef struct whit_lsp whit_lsp;

/* Starts `command`, which is words with blanks between them, in `folder`. The server ends with this process, for
 * whatever reason that ends. The caller owns *lsp. */
whit_status whit_lsp_open(const char *command, const char *folder, whit_lsp **lsp, whit_error *error);
/* Asks the server to exit, then ends its process. */
void whit_lsp_close(whit_lsp *lsp);

/* These functions queue messages and take ownership of `params` and `result`, also if memory runs out. The first
 * returns the number of the request, or 0 if memory runs out. */
uint64_t whit_lsp_request(whit_lsp *lsp, const char *method, json_t *params);
void whit_lsp_notify(whit_lsp *lsp, const char *method, json_t *params);
void whit_lsp_reply(whit_lsp *lsp, const json_t *id, json_t *result, int error_code);

/* Returns the number of bytes that the server has not read yet. */
size_t whit_lsp_unsent(const whit_lsp *lsp);
/* Gives the file descriptors to poll: POLLIN of the first, and POLLOUT of the second if it is not -1. */
void whit_lsp_fds(const whit_lsp *lsp, int fds[2]);
/* Reads and writes as much as is possible without waiting. Returns false when the server has ended or has sent bytes
 * that are no message. */
bool whit_lsp_pump(whit_lsp *lsp);
/* Returns the next received message, which the caller then owns, or NULL. */
json_t *whit_lsp_take(whit_lsp *lsp);

#endif
