/* SPDX-License-Identifier: MIT
 * Declares searching and replacing. */
#ifndef WHIT_EDITOR_FIND_H
#define WHIT_EDITOR_FIND_H

#include "editor/window.h"

struct ed_search;

/* The search pattern and its replacement. */
struct ed_find {
    char pattern[512];
    bool regex;
    struct ed_search *search; /* the compiled pattern; NULL: there was no search yet */
    char by[1024];            /* replacement; its size is that of a prompt's text */
    size_t n_replaced;
    char **files; /* files that a replacement in the project visits; files_at: index of the next one */
    size_t n_files, files_at;
    size_t n_left_out; /* files of them that cannot be changed */
    bool has_more;     /* more files than can be visited have a match */
    uint64_t to;       /* offset at which replacing ends; ED_NONE: end of the text */
    uint64_t line;     /* offset of the last match; ED_NONE: no match yet */
    uint64_t after;    /* offset after the last match or its replacement */
    bool ended;        /* the last match was empty and at the end of the text, so there is no further match */
    bool once_line;    /* only the first match of each line is replaced */
};

/* These functions are in find.c. */
bool ed_search_set(ed *e, const char *pattern, bool regex, char *why, size_t why_bytes);
void ed_search_free(struct ed_search *search);
bool ed_search_forward(ed *e, const whit_text *text, uint64_t from, uint64_t to, whit_range *match);
bool ed_search_backward(ed *e, const whit_text *text, uint64_t before, whit_range *match);
/* Searches from `from`, if necessary around the end of the text, and selects the match. Returns false, with a message,
 * if nothing matches. */
bool ed_search_next(ed *e, bool back, uint64_t from);
void ed_replace_here(ed *e);
void ed_replace_skip(ed *e);
void ed_replace_begin(ed *e);
bool ed_replace_step(ed *e);
void ed_replace_all(ed *e);
void ed_replace_in_project(ed *e);
void ed_replace_forget(ed *e); /* ends a replacement: drops the remaining files and the last match */
/* Asks about each match, or about the first match of each line, from the cursor to the offset `to`. */
void ed_replace_range(ed *e, uint64_t to, bool once_a_line);
void ed_project_search(ed *e);

#endif
