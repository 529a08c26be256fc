/* SPDX-License-Identifier: MIT
 * Converts a text with its instruction to tokens for embedding models. */
#ifndef WHIT_CLI_EMBED_TEXT_H
#define WHIT_CLI_EMBED_TEXT_H

#include "cli/cli.h"

/* Tokenises a text of n bytes after a prompt (NULL: no prompt), and counts the prompt's tokens for models that leave
 * them out of the mean. The result is CLI_OK or a status already reported; free the text with cli_embed_text_free in
 * every case. */
int cli_embed_text(cli_call *call, const whit_model *model, const char *prompt, const char *text, size_t n_bytes,
                   whit_embed_text *made);
void cli_embed_text_free(whit_embed_text *text);

#endif
