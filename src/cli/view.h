/* SPDX-License-Identifier: MIT
 * An answer on stdout as it streams. On a terminal the model's thinking is dim. */
#ifndef WHIT_CLI_VIEW_H
#define WHIT_CLI_VIEW_H

#include "cli/cli.h"

typedef struct cli_view {
    cli_call *call;
    bool styled; /* stdout is a terminal */
    bool dim;    /* the style that is on */
} cli_view;

cli_view cli_view_begin(cli_call *call);
/* Is whit_part_fn, with the view as user. False once writing failed. */
bool cli_view_part(void *view, const char *text, size_t text_bytes, bool thinking);
/* Ends the line and the style. */
bool cli_view_end(cli_view *view);

#endif
