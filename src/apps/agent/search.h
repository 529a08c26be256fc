/* SPDX-License-Identifier: MIT
 * Searches the lines of files for a model's regular expression, with limited time and memory for any expression. */
#ifndef WHIT_AGENT_SEARCH_H
#define WHIT_AGENT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#define WHIT_SEARCH_PATTERN_MAX 200 /* maximum number of bytes of a pattern */

typedef struct whit_search whit_search;

typedef enum whit_search_found {
    WHIT_SEARCH_NO,
    WHIT_SEARCH_YES,
    WHIT_SEARCH_COSTLY, /* undecided: matching this line takes too many steps */
    WHIT_SEARCH_SPENT,  /* undecided, and so is every later line: the steps of all lines are used up */
} whit_search_found;

/* Compiles a pattern (Perl's syntax, by PCRE2). Returns NULL with a reason in `why` if the pattern is malformed, too
 * long or too large. */
whit_search *whit_search_open(const char *pattern, char *why, size_t why_bytes);
/* Searches one line, given without its end, for the pattern. */
whit_search_found whit_search_line(whit_search *search, const char *line, size_t n_bytes);
void whit_search_close(whit_search *search);

#endif
