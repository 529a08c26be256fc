/* SPDX-License-Identifier: MIT
 * Searches with limits on time and memory. Each line is first matched with few steps, which suffice for nearly all
 * patterns, and if necessary again with many; the number of lines that are matched again is limited. PCRE2 limits
 * the memory: a compiled pattern has at most 64 KiB, and the heap of a match has a maximum. */
#include "agent/search.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_FEW  1000u
#define STEPS_MANY 50000u
#define COSTLY_MAX 4096u /* maximum number of lines, over one search, that may need more than STEPS_FEW steps */
#define HEAP_KIB   4096u

struct whit_search {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    unsigned n_costly;
};

void whit_search_close(whit_search *search)
{
    if (!search) return;
    pcre2_code_free(search->code);
    pcre2_match_data_free(search->match);
    pcre2_match_context_free(search->limits);
    free(search);
}

whit_search *whit_search_open(const char *pattern, char *why, size_t why_bytes)
{
    whit_search *search = calloc(1, sizeof *search);
    int number;
    PCRE2_SIZE at;
    if (strlen(pattern) > WHIT_SEARCH_PATTERN_MAX) {
        snprintf(why, why_bytes, "it is longer than %d bytes", WHIT_SEARCH_PATTERN_MAX);
        whit_search_close(search);
        return NULL;
    }
    snprintf(why, why_bytes, "not enough memory for the pattern");
    if (!search) return NULL;
    search->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                 PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &number, &at, NULL);
    if (!search->code) {
        char reason[120] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
        snprintf(why, why_bytes, "%s at byte %zu", reason, at);
    } else {
        search->match = pcre2_match_data_create(1, NULL);
        search->limits = pcre2_match_context_create(NULL);
    }
    if (!search->match || !search->limits) {
        whit_search_close(search);
        return NULL;
    }
    pcre2_set_heap_limit(search->limits, HEAP_KIB);
    return search;
}

static int match_within(whit_search *search, const char *line, size_t n_bytes, uint32_t steps)
{
    pcre2_set_match_limit(search->limits, steps);
    pcre2_set_depth_limit(search->limits, steps);
    return pcre2_match(search->code, (PCRE2_SPTR)line, n_bytes, 0, 0, search->match, search->limits);
}

whit_search_found whit_search_line(whit_search *search, const char *line, size_t n_bytes)
{
    if (search->n_costly >= COSTLY_MAX) return WHIT_SEARCH_SPENT;
    int found = match_within(search, line, n_bytes, STEPS_FEW);
    if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_DEPTHLIMIT) {
        search->n_costly++;
        found = match_within(search, line, n_bytes, STEPS_MANY);
    }
    if (found >= 0) return WHIT_SEARCH_YES; /* 0 means a match whose groups do not all fit into `match` */
    return found == PCRE2_ERROR_NOMATCH ? WHIT_SEARCH_NO : WHIT_SEARCH_COSTLY;
}
