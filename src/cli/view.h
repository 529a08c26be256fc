/* SPDX-License-Identifier: MIT
 * Prints an answer on stdout as it streams. On a terminal the model's thinking is dim, and lines can be wrapped
 * between words. */
#ifndef WHIT_CLI_VIEW_H
#define WHIT_CLI_VIEW_H

#include "cli/cli.h"

typedef struct cli_view {
    cli_call *call;
    bool styled; /* stdout is a terminal */
    bool dim;    /* the dim style is on */
    /* Wrapping: a word is buffered until it ends, so that it can begin a new line. */
    unsigned width;        /* columns of the terminal; 0: lines are not wrapped */
    unsigned column;       /* column of the next character */
    unsigned n_blanks;     /* blanks before the word, not yet written */
    bool verbatim, begins; /* verbatim: between lines of ```; begins: no word in the line yet */
    char word[256];
    size_t word_bytes;
} cli_view;

/* `wrap`: wrap at the terminal's present width, if stdout is one. */
cli_view cli_view_begin(cli_call *call, bool wrap);
/* A whit_part_fn with the view as user. False once writing failed. */
bool cli_view_part(void *view, const char *text, size_t text_bytes, bool thinking);
/* Ends the line and resets the style. */
bool cli_view_end(cli_view *view);

#endif
