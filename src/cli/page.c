/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/page.h"

enum { WIDTH = 80, INDENT = 4, ITEM_INDENT = 8 };

/* Writes text for troff: escapes backslashes, hyphens, and a dot or quote at the beginning. */
static void troff(cli_page *page, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0 && (text[i] == '.' || text[i] == '\'')) cli_print(page->call, "\\&");
        if (text[i] == '\\')
            cli_print(page->call, "\\e");
        else if (text[i] == '-')
            cli_print(page->call, "\\-");
        else
            cli_write(page->call, text + i, 1);
    }
}

/* Prints the words of text[0..n) in lines of at most WIDTH columns that begin with `indent` spaces. begun: how many
 * columns of the first line are already printed. */
static void wrap_text(cli_page *page, const char *text, size_t n, int begun, int indent)
{
    int column = 0;
    for (size_t i = 0; i < n;) {
        size_t length = 0;
        int columns = 0;
        while (i + length < n && text[i + length] != ' ') {
            columns += ((unsigned char)text[i + length] & 0xC0) != 0x80;
            length++;
        }
        if (column && column + 1 + columns > WIDTH) {
            cli_print(page->call, "\n");
            column = 0;
        }
        if (column) {
            cli_print(page->call, " ");
            column++;
        } else {
            cli_print(page->call, "%*s", indent - begun, "");
            column = indent;
            begun = 0;
        }
        cli_write(page->call, text + i, length);
        column += columns;
        i += length;
        while (i < n && text[i] == ' ') i++;
    }
    if (column) cli_print(page->call, "\n");
}

void cli_page_head(cli_page *page, const char *name)
{
    if (page->man) cli_print(page->call, ".TH %s 1 \"\" \"whit %s\" \"User Commands\"\n", name, whit_version());
}

void cli_page_section(cli_page *page, const char *title)
{
    if (page->man)
        cli_print(page->call, ".SH \"%s\"\n", title);
    else
        cli_print(page->call, "%s%s\n", page->begun ? "\n" : "", title);
    page->begun = true;
}

void cli_page_text(cli_page *page, const char *text)
{
    bool verbatim = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool example = n > 2 && text[0] == ' ' && text[1] == ' ';
        if (page->man) {
            if (example != verbatim)
                cli_print(page->call, example ? ".PP\n.nf\n" : ".fi\n.PP\n");
            else if (!example)
                cli_print(page->call, ".PP\n");
            troff(page, text, n);
            cli_print(page->call, "\n");
        } else if (example) {
            cli_print(page->call, "%*s%.*s\n", INDENT, "", (int)n, text);
        } else {
            wrap_text(page, text, n, 0, INDENT);
        }
        verbatim = example;
        text += n;
        if (*text == '\n') text++;
    }
    if (page->man && verbatim) cli_print(page->call, ".fi\n");
}

void cli_page_item(cli_page *page, const char *tag, const char *text)
{
    if (page->man) {
        cli_print(page->call, ".TP\n\\fB");
        troff(page, tag, strlen(tag));
        cli_print(page->call, "\\fR\n");
        troff(page, text, strlen(text));
        cli_print(page->call, "\n");
    } else {
        cli_print(page->call, "%*s%s", INDENT, "", tag);
        /* A short tag is on the same line as the beginning of its text. */
        int column = INDENT + (int)strlen(tag);
        if (column >= ITEM_INDENT) cli_print(page->call, "\n");
        wrap_text(page, text, strlen(text), column < ITEM_INDENT ? column : 0, ITEM_INDENT);
    }
}
