/* SPDX-License-Identifier: MIT
 * An answer on stdout as it streams. On a terminal the model's thinking is dim, and lines can be
 * wrapped between words. */
#ifndef WHIT_CLI_VIEW_H
#define WHIT_CLI_VIEW_H

#include "cli/cli.h"

typedef struct cli_view {
    cli_call *call;
    bool styled; /* stdout is a terminal */
    bool dim;    /* the style that is on */
    /* Wrapping: a word is held until it ends, so that it can begin a line. */
    unsigned width;        /* of the terminal; 0: lines are not wrapped */
    unsigned column;       /* where the next character goes */
    unsigned n_blanks;     /* in front of the word, not yet written */
    bool verbatim, begins; /* between lines of ```; no word stands in the line yet */
    char word[256];
    size_t word_bytes;
} cli_view;

/* `wrap`: as wide as the terminal is now, where there is one. */
cli_view cli_view_begin(cli_call *call, bool wrap);
/* Is whit_part_fn, with the view as user. False once writing failed. */
bool cli_view_part(void *view, const char *text, size_t text_bytes, bool thinking);
/* Ends the line and the style. */
bool cli_view_end(cli_view *view);

#endif
