/* SPDX-License-Identifier: MIT
 * Provides chat templates by name (--chat-template); other programs use the same names. */
#ifndef WHIT_CLI_TEMPLATES_H
#define WHIT_CLI_TEMPLATES_H

#include "cli/flags.h"

/* Reads the template that an option gives: a file ("-": stdin) or else the template of that name or else, if it
 * contains "{%" or "{{", the option's text itself. Returns CLI_OK, or an exit status after a message. The caller frees
 * text->data. */
int cli_read_template(cli_call *call, const char *given, cli_text *text);

#endif
