/* SPDX-License-Identifier: MIT
 * Prints a page of the manual, which is described once, as plain text or for man(7). */
#ifndef WHIT_CLI_PAGE_H
#define WHIT_CLI_PAGE_H

#include "cli/cli.h"

typedef struct cli_page {
    cli_call *call;
    bool man;   /* true: troff for man(1); false: text for a terminal */
    bool begun; /* a section was printed already */
} cli_page;

/* Begins the man page of this name, such as "whit-run"; writes nothing if the page is text. */
void cli_page_head(cli_page *page, const char *name);
void cli_page_section(cli_page *page, const char *title);
/* Prints paragraphs, which end with newlines. A line that begins with two spaces is an example and is printed without
 * wrapping. */
void cli_page_text(cli_page *page, const char *text);
void cli_page_item(cli_page *page, const char *tag, const char *text);

#endif
