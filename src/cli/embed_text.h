/* SPDX-License-Identifier: MIT
 * Tokenizes a text and its prompt for embedding models. */
#ifndef WHIT_CLI_EMBED_TEXT_H
#define WHIT_CLI_EMBED_TEXT_H

#include "cli/cli.h"

/* Tokenizes a text of n_bytes bytes after a prompt (NULL: no prompt). Also counts the prompt's tokens if the model
 * leaves them out of the mean. Returns CLI_OK, or a status that was already reported; the caller must call
 * cli_embed_text_free in both cases. */
int cli_embed_text(cli_call *call, const whit_model *model, const char *prompt, const char *text, size_t n_bytes,
                   whit_embed_text *made);
void cli_embed_text_free(whit_embed_text *text);

#endif
