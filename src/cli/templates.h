/* SPDX-License-Identifier: MIT
 * Chat templates that are known by name (--chat-template), under the names of other programs. */
#ifndef WHIT_CLI_TEMPLATES_H
#define WHIT_CLI_TEMPLATES_H

#include "cli/flags.h"

/* Reads the template that an option names: a file, else one of the known names, else the option's text, if it is Jinja.
 * The result is CLI_OK or a status already reported. The caller frees *text. */
int cli_read_template(cli_call *call, const char *given, cli_text *text);

#endif
