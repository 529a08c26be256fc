/* SPDX-License-Identifier: MIT
 * A language server: its process, and JSON-RPC in both directions without ever waiting. What it is asked
 * and what is done with the answers is in language.c. The protocol is LSP 3.17,
 * https://microsoft.github.io/language-server-protocol. */
#ifndef WHIT_EDITOR_LSP_H
#define WHIT_EDITOR_LSP_H

#include "base/mem.h"

#include <jansson.h>

#define WHIT_LSP_MESSAGE_BYTES (64u << 20)

/* ---- messages ------------------------------------------------------------------------------ */

/* Parses the first whole message of the bytes read so far: *message is the caller's, or NULL if the content is no
 * JSON object. Returns the number of bytes consumed, 0 if more must come, or WHIT_LSP_BROKEN if the bytes
 * are no header of a message, or announce over 64 MiB: the messages after it cannot be found. */
#define WHIT_LSP_BROKEN SIZE_MAX
size_t whit_lsp_next(const void *data, size_t n_bytes, json_t **message);

/* Converts a column of the protocol to a byte offset in a line of UTF-8 (without its end), and back: `character`
 * counts UTF-16 units, or bytes if `utf8`. Columns after the line's end become its end. */
size_t whit_lsp_to_byte(const char *line, size_t n_bytes, uint64_t character, bool utf8);
uint64_t whit_lsp_from_byte(const char *line, size_t n_bytes, size_t byte, bool utf8);

/* Convert between a URI such as "file:///a%20b" and an absolute path; false if it is not one, or does not fit. */
bool whit_lsp_path(const char *uri, char *path, size_t path_bytes);
bool whit_lsp_uri(const char *path, char *uri, size_t uri_bytes);

/* ---- the process --------------------------------------------------------------------------- */

typedef struct whit_lsp whit_lsp;

/* Starts `command`, words with blanks between them, in `folder`. It ends with this process, whatever
 * ends that. *lsp is the caller's. */
whit_status whit_lsp_open(const char *command, const char *folder, whit_lsp **lsp, whit_error *error);
/* Asks the server to exit, then ends its process. */
void whit_lsp_close(whit_lsp *lsp);

/* Queue messages; `params` is taken, also without memory. The request's number, 0 without memory. */
uint64_t whit_lsp_request(whit_lsp *lsp, const char *method, json_t *params);
void whit_lsp_notify(whit_lsp *lsp, const char *method, json_t *params);
void whit_lsp_reply(whit_lsp *lsp, const json_t *id, json_t *result, int error_code);

/* Returns the number of bytes that the server has not read yet. */
size_t whit_lsp_unsent(const whit_lsp *lsp);
/* File descriptors to poll: POLLIN of the first, and POLLOUT of the second if it is not -1. */
void whit_lsp_fds(const whit_lsp *lsp, int fds[2]);
/* Reads and writes as much as is possible without waiting. False once the server is gone or has sent nonsense. */
bool whit_lsp_pump(whit_lsp *lsp);
/* Returns the next received message, which is the caller's, or NULL. */
json_t *whit_lsp_take(whit_lsp *lsp);

#endif
