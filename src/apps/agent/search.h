/* SPDX-License-Identifier: MIT
 * Searches the lines of files for a model's regular expression, with limited time and memory for any expression. */
#ifndef WHIT_AGENT_SEARCH_H
#define WHIT_AGENT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#define WHIT_SEARCH_PATTERN_MAX 200 /* maximum length of a pattern in bytes */

typedef struct whit_search whit_search;

typedef enum whit_search_found {
    WHIT_SEARCH_NO,
    WHIT_SEARCH_YES,
    WHIT_SEARCH_COSTLY, /* undecided: matching this line takes too many steps */
    WHIT_SEARCH_SPENT,  /* undecided, like every later line: too many lines have needed many steps */
} whit_search_found;

/* Compiles a regular expression (Perl syntax, by PCRE2). Returns NULL with the reason in `why` if the pattern is
 * malformed, too long or too large. */
whit_search *whit_search_open(const char *pattern, char *why, size_t why_bytes);
/* Searches one line, without its line end, for the pattern. */
whit_search_found whit_search_line(whit_search *search, const char *line, size_t n_bytes);
void whit_search_close(whit_search *search);

#endif
