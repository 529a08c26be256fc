/* SPDX-License-Identifier: MIT
 * Declares lists of places, the tree of files, and jumps between files. */
#ifndef WHIT_EDITOR_RESULTS_H
#define WHIT_EDITOR_RESULTS_H

#include "editor/command.h"
#include "editor/prompt.h"

/* holds the tree of the project's files */
struct ed_files {
    struct ed_doc *doc; /* text of the tree; NULL: the tree was not shown yet */
    /* paths: the files; open: the open folders, each with a slash; lines: a path for each line of the tree */
    char **paths, **open, **lines;
    size_t n_paths, n_open, n_lines;
};

/* holds the last list of places, and the preview for the list that is open */
struct ed_results {
    char label[64];
    struct ed_item *items;
    size_t n, at;
    bool was_at;                  /* the person has visited this place */
    struct ed_doc *from, *peeked; /* from: the text that was shown before, NULL: no preview; peeked: a copy of a file */
    struct ed_cursor from_cursor;
    uint64_t from_top;
};

struct ed_jump {
    struct ed_doc *doc;
    uint64_t offset;
};

/* These functions are in results.c. */
void ed_results_begin(ed *e, const char *label); /* begins a list that no prompt shows yet */
bool ed_results_add(ed *e, const char *label, const char *path, uint64_t line);
void ed_results_go(ed *e, size_t at);
void ed_results_preview(ed *e); /* shows the place that is selected in the prompt */
void ed_results_keep(ed *e);    /* keeps the list of a prompt that closes */
void ed_results_close(ed *e);
extern ed_command_fn ed_results_next, ed_results_previous, ed_results_list;

/* The functions of files.c handle the tree of files. ed_files_enter returns true if the key was for the tree. */
extern ed_command_fn ed_files_toggle;
bool ed_files_enter(ed *e);
void ed_files_forget(ed *e, const struct ed_doc *doc);
void ed_files_close(ed *e);

/* These functions are in jump.c. */
void ed_symbols_open(ed *e);
void ed_definition(ed *e);
void ed_definition_by_graph(ed *e);
void ed_references(ed *e);
/* tells the code graph, an index of the project's definitions, that the text was saved */
void ed_graph_saved(ed *e, const struct ed_doc *doc);
void ed_graph_close(ed *e);

#endif
