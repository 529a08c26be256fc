/* SPDX-License-Identifier: MIT
 * Prints an answer on stdout while it is generated. On a terminal the model's thinking is dim, Markdown becomes styles,
 * and lines can be wrapped between words. */
#ifndef WHIT_CLI_VIEW_H
#define WHIT_CLI_VIEW_H

#include "cli/cli.h"
#include "cli/markup.h"
#include "whit/conversation.h"

typedef struct cli_view {
    cli_call *call;
    bool styled;  /* stdout is a terminal that has styles */
    bool dim;     /* the dim style is on */
    bool thought; /* the part shown last was thinking */
    /* The members below wrap text. A word is buffered until it is complete, so that it can begin a new line if it does
     * not fit. */
    unsigned width;        /* columns of the terminal; 0: lines are not wrapped */
    unsigned column;       /* column of the next character, from 0 */
    unsigned n_blanks;     /* blanks before the pending word, not yet written */
    bool verbatim, begins; /* verbatim: the text is in a block of code; begins: the line has no word yet */
    char word[256];
    size_t word_bytes;
    bool is_joined; /* the pending word continues the written one in another style, without a blank */
    /* The members below show Markdown, on a terminal with colours. */
    bool has_markup;
    cli_markup markup;
    unsigned style; /* style of the text written last */
} cli_view;

/* Begins a view. wrap: break lines at the terminal's width, if stdout is a terminal. has_markup: show Markdown as
 * styles if stdout is a terminal with colours; otherwise the model's text is printed verbatim. */
cli_view cli_view_begin(cli_call *call, bool wrap, bool has_markup);
/* Writes a part of a text; thinking is dim on a terminal. Returns false if writing failed. */
bool cli_view_part(cli_view *view, const char *text, size_t text_bytes, bool thinking);
/* Sets the callbacks of `options` so that the view prints an answer: its events on a terminal or with tools, otherwise
 * the model's text verbatim. The view must not move afterwards. */
void cli_view_receive(cli_view *view, bool has_tools, whit_answer_options *options);
/* Writes all pending text, resets the style and ends the line. Returns false if writing failed. */
bool cli_view_end(cli_view *view);

#endif
